package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// Image is what an archive holds for one platform. It is read with the standard
// library alone: what wrote the archive does not vouch for it.
type Image struct {
	// Platform is the one that the archive's index gives, or the configuration's own.
	Platform string
	// Names are what the archive calls the image.
	Names  []string
	Config Config
	// Files by their path, without a slash before it; those of folders end in one.
	Files map[string]File
}

// Config is the part of an image's configuration that decides how it runs.
type Config struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       struct {
		User       string
		Env        []string
		Entrypoint []string
		Cmd        []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// File is a file or folder of an image.
type File struct {
	Mode    int64
	UID     int
	GID     int
	ModTime time.Time
	Content []byte
}

// Read reads an archive with one image or, as an OCI layout, with several. Everything
// in it must be what its digest says.
func Read(archive string) ([]Image, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	members := blobs{}
	err = untar(f, func(h *tar.Header, content []byte) { members[h.Name] = content })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	var images []Image
	switch {
	case members["index.json"] != nil:
		images, err = members.layout()
	case members["manifest.json"] != nil:
		images, err = members.docker()
	default:
		err = errors.New("neither index.json nor manifest.json is in it")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	return images, nil
}

// blobs are the members of an archive by their name.
type blobs map[string][]byte

// descriptor is how one part of an OCI layout names another.
type descriptor struct {
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// layout reads an OCI layout with one index of images in it.
func (b blobs) layout() ([]Image, error) {
	var top, index struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(b["index.json"], &top); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	if len(top.Manifests) != 1 {
		return nil, fmt.Errorf("index.json names %d images", len(top.Manifests))
	}
	if err := b.decode(top.Manifests[0], &index); err != nil {
		return nil, err
	}
	images := make([]Image, 0, len(index.Manifests))
	for _, d := range index.Manifests {
		var manifest struct {
			Config descriptor   `json:"config"`
			Layers []descriptor `json:"layers"`
		}
		if err := b.decode(d, &manifest); err != nil {
			return nil, err
		}
		i := Image{Platform: d.Platform.OS + "/" + d.Platform.Architecture, Names: []string{top.Manifests[0].Annotations["io.containerd.image.name"]}}
		if err := b.decode(manifest.Config, &i.Config); err != nil {
			return nil, err
		}
		var layers [][]byte
		for _, l := range manifest.Layers {
			content, err := b.blob(l)
			if err != nil {
				return nil, err
			}
			layers = append(layers, content)
		}
		if err := i.unpack(layers); err != nil {
			return nil, err
		}
		images = append(images, i)
	}
	return images, nil
}

// docker reads what `docker save` writes.
func (b blobs) docker() ([]Image, error) {
	var manifests []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(b["manifest.json"], &manifests); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var images []Image
	for _, m := range manifests {
		i := Image{Names: m.RepoTags}
		if got := digest(b[m.Config]); got != m.Config {
			return nil, fmt.Errorf("the configuration %s has the digest %s", m.Config, got)
		}
		if err := json.Unmarshal(b[m.Config], &i.Config); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Config, err)
		}
		i.Platform = i.Config.OS + "/" + i.Config.Architecture
		var layers [][]byte
		for _, l := range m.Layers {
			layers = append(layers, b[l])
		}
		if err := i.unpack(layers); err != nil {
			return nil, err
		}
		images = append(images, i)
	}
	return images, nil
}

// blob is a part of an OCI layout, if it is what the descriptor says.
func (b blobs) blob(d descriptor) ([]byte, error) {
	content, found := b[path.Join("blobs", strings.Replace(d.Digest, ":", "/", 1))]
	if !found {
		return nil, fmt.Errorf("%s is not in it", d.Digest)
	}
	if got := digest(content); got != d.Digest || len(content) != d.Size {
		return nil, fmt.Errorf("%s of %d bytes has the digest %s and %d bytes", d.Digest, d.Size, got, len(content))
	}
	return content, nil
}

func (b blobs) decode(d descriptor, into any) error {
	content, err := b.blob(d)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", d.Digest, err)
	}
	return nil
}

// unpack reads the layers, the lowest first.
func (i *Image) unpack(layers [][]byte) error {
	i.Files = map[string]File{}
	if len(layers) != len(i.Config.RootFS.DiffIDs) {
		return fmt.Errorf("%d layers, and the configuration names %d", len(layers), len(i.Config.RootFS.DiffIDs))
	}
	for n, layer := range layers {
		zipped, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
		content, err := io.ReadAll(zipped)
		if err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
		if got, want := digest(content), i.Config.RootFS.DiffIDs[n]; got != want {
			return fmt.Errorf("layer %d has the digest %s, and the configuration says %s", n, got, want)
		}
		err = untar(bytes.NewReader(content), func(h *tar.Header, content []byte) {
			i.Files[h.Name] = File{Mode: h.Mode, UID: h.Uid, GID: h.Gid, ModTime: h.ModTime.UTC(), Content: content}
		})
		if err != nil {
			return fmt.Errorf("layer %d: %w", n, err)
		}
	}
	return nil
}

func untar(r io.Reader, each func(*tar.Header, []byte)) error {
	for members := tar.NewReader(r); ; {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(members)
		if err != nil {
			return err
		}
		each(header, content)
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
