package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user that the programs run as; the number is what Kubernetes compares with
// runAsNonRoot, and the same as in distroless images.
const (
	user     = 65532
	userName = "nonroot"
)

// created is the time that everything in the image bears. SOURCE_DATE_EPOCH sets it;
// without it images bear no time, for the time of the build would make each another.
func created() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// entry is a file or, with a mode that says so, a folder of an image.
type entry struct {
	name    string
	mode    int64
	owner   int
	content io.Reader
	size    int64
}

func folder(name string, mode int64, owner int) entry {
	return entry{name: name + "/", mode: mode, owner: owner}
}

func file(name string, content []byte) entry {
	return entry{name: name, mode: 0o444, content: bytes.NewReader(content), size: int64(len(content))}
}

// base is what programs expect of a system: the name of their user, the certificates
// that public servers are trusted by, and a place for temporary files. There is no
// shell and no library. Time zones are in the programs that need them.
func base() []entry {
	id := strconv.Itoa(user)
	return []entry{
		folder("etc", 0o755, 0),
		file("etc/group", []byte("root:x:0:\n"+userName+":x:"+id+":\n")),
		file("etc/passwd", []byte("root:x:0:0:root:/:/sbin/nologin\n"+userName+":x:"+id+":"+id+":"+userName+":/home/"+userName+":/sbin/nologin\n")),
		folder("etc/ssl", 0o755, 0),
		folder("etc/ssl/certs", 0o755, 0),
		file("etc/ssl/certs/ca-certificates.crt", authorities()),
		folder("home", 0o755, 0),
		folder("home/"+userName, 0o700, user),
		folder("tmp", 0o1777, 0),
	}
}

// authorities are the certificates of Mozilla's list as PEM. They come from a module,
// whose version go.mod pins, and not from the machine that builds. Those that Mozilla
// trusts with a restriction are left out: a file of certificates cannot express it.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A buffer's writes do not fail.
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// executables are the programs, in the root folder.
func executables(programs []program) ([]entry, func() error, error) {
	var (
		entries []entry
		files   []*os.File
	)
	closeAll := func() error {
		var err error
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	for _, p := range programs {
		f, err := os.Open(p.path)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
		entries = append(entries, entry{name: path.Base(p.name), mode: 0o555, content: f, size: info.Size()})
	}
	return entries, closeAll, nil
}

// newLayer packs entries; all of them bear the same time.
func newLayer(entries []entry, made time.Time, media types.MediaType) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: e.size, ModTime: made, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if e.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if e.content != nil {
			if _, err := io.Copy(w, e.content); err != nil {
				return nil, fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithCompressedCaching, tarball.WithMediaType(media))
}
