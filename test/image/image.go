// Package image makes container images of this checkout's programs, without Docker.
// The work is done by a program of a module of its own, test/tools/image.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// User is the number of the user that images run as.
const User = 65532

// Operator are the programs of the operator's image, the entry point first.
var Operator = []string{"cmd/manager"}

// Options say what image is made.
type Options struct {
	// Binaries are static executables, or folders of packages, which are built.
	// Relative paths are relative to the checkout. The first one is the entry point;
	// each is in the image's root folder under the last part of its path.
	Binaries []string
	// Name and Tag are what a pod names the image by.
	Name, Tag string
	// Platforms such as linux/arm64; that of this machine if there are none.
	Platforms []string
	// Output is the archive to write.
	Output string
	// Labels beside the version and the title.
	Labels map[string]string
	// Env is added to this process's, as SOURCE_DATE_EPOCH=1700000000.
	Env []string
	// Progress is what tells of the builds; nil for nobody.
	Progress io.Writer
}

// Build writes the archive. For one platform it is as `docker save` writes it, for
// several an OCI layout.
func Build(ctx context.Context, o Options) error {
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return err
	}
	args := []string{"run", "-C", filepath.Join(root, "test", "tools", "image"), ".", "--name=" + o.Name, "--tag=" + o.Tag, "--output=" + o.Output}
	for _, binary := range o.Binaries {
		args = append(args, "--binary="+binary)
	}
	if len(o.Platforms) > 0 {
		args = append(args, "--platform="+strings.Join(o.Platforms, ","))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		args = append(args, "--label="+key+"="+o.Labels[key])
	}
	var said bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Env = append(append(os.Environ(), "GOWORK=off"), o.Env...)
	command.Stdout, command.Stderr = &said, &said
	if o.Progress != nil {
		command.Stderr = io.MultiWriter(&said, o.Progress)
	}
	// The go command does not pass a signal on: its group gets it, so that the program
	// behind it ends too and removes what it has begun.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("making the image %s:%s was interrupted: %w", o.Name, o.Tag, context.Cause(ctx))
		}
		return errors.Join(fmt.Errorf("making the image %s:%s: %w", o.Name, o.Tag, err), errors.New(strings.TrimSpace(said.String())))
	}
	return nil
}
