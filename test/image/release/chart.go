package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// chart packs the chart with the version of the release.
func (r *release) chart(ctx context.Context) error {
	helm, err := binaries.Build(ctx, r.out, binaries.Helm4)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "helm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	number := strings.TrimPrefix(r.version, "v")
	command := exec.CommandContext(ctx, helm.Path(binaries.Helm4), "package", filepath.Join(r.root, "charts", product),
		"--version="+number, "--app-version="+r.version, "--destination="+r.dir)
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm package: %w\n%s", err, said)
	}
	file := filepath.Join(r.dir, product+"-"+number+".tgz")
	packed, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if packed, err = retimed(packed, r.source.made); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, packed, 0o644)
}

// retimed is a packed chart whose files all bear one time. Helm gives them that of
// the checkout or of the moment, which makes every package another one.
func retimed(packed []byte, made time.Time) ([]byte, error) {
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var again bytes.Buffer
	out := gzip.NewWriter(&again)
	// Helm knows its packages by these.
	out.Extra, out.Comment = in.Extra, in.Comment
	to := tar.NewWriter(out)
	for from := tar.NewReader(in); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		header = &tar.Header{Name: header.Name, Mode: header.Mode, Size: header.Size, Typeflag: header.Typeflag, ModTime: made}
		if err := to.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.CopyN(to, from, header.Size); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(to.Close(), out.Close()); err != nil {
		return nil, err
	}
	return again.Bytes(), nil
}
