package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// platformImage is the image of one platform.
type platformImage struct {
	platform platform
	image    v1.Image
}

// newImage has the base in one layer and the programs in another, so that two
// versions share the first.
func newImage(programs []program, target platform, made time.Time, labels map[string]string) (v1.Image, error) {
	entries, closeAll, err := executables(programs)
	if err != nil {
		return nil, err
	}
	defer closeAll() //nolint:errcheck // they were only read
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, part := range []struct {
		comment string
		entries []entry
	}{{"user, certificates of public authorities", base()}, {"programs", entries}} {
		layer, err := newLayer(part.entries, made, types.OCILayer)
		if err != nil {
			return nil, err
		}
		img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: made}, CreatedBy: "test/tools/image", Comment: part.comment}})
		if err != nil {
			return nil, err
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = target.OS, target.Architecture
	config.Created = v1.Time{Time: made}
	id := strconv.Itoa(user)
	config.Config = v1.Config{
		User:       id + ":" + id,
		WorkingDir: "/",
		Entrypoint: []string{"/" + programs[0].name},
		Labels:     labels,
	}
	return mutate.ConfigFile(img, config)
}

// write makes the archive and returns the digest that the image is known by. The file
// gets its name when it is whole.
func write(output, scratch, reference string, images []platformImage) (string, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return "", err
	}
	partial, err := os.CreateTemp(filepath.Dir(output), filepath.Base(output)+".partial-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(partial.Name()) // After a success it is not there.
	var digest v1.Hash
	if len(images) == 1 {
		digest, err = writeOne(partial, tag, images[0].image)
	} else {
		digest, err = writeSeveral(partial, filepath.Join(scratch, "layout"), tag, images)
	}
	if err = errors.Join(err, partial.Chmod(0o644), partial.Close()); err != nil {
		return "", fmt.Errorf("writing %s: %w", output, err)
	}
	return digest.String(), os.Rename(partial.Name(), output)
}

// writeOne writes what `docker load` and every containerd read.
func writeOne(w io.Writer, tag name.Tag, img v1.Image) (v1.Hash, error) {
	if err := tarball.Write(tag, img, w); err != nil {
		return v1.Hash{}, err
	}
	return img.ConfigName()
}

// writeSeveral writes an OCI layout whose one index has an image for each platform.
func writeSeveral(w io.Writer, dir string, tag name.Tag, images []platformImage) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: p.image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.platform.OS, Architecture: p.platform.Architecture},
		}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(),
		"io.containerd.image.name":          canonical(tag),
	}))
	if err != nil {
		return v1.Hash{}, err
	}
	if err := pack(w, dir); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// canonical is the name that containerd stores an image by: a pod's `name:tag` means
// docker.io/library/name:tag.
func canonical(tag name.Tag) string {
	return strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// pack writes a folder's files, in the order of their names and without what differs
// from build to build.
func pack(w io.Writer, dir string) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&tar.Header{Name: filepath.ToSlash(relative), Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = io.Copy(out, f)
		return err
	})
	return errors.Join(err, out.Close())
}
