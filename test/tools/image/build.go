package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// modulePath is how the checkout's root is recognized.
const modulePath = "example.com/platform/autoscale-operator"

// program is an executable of an image.
type program struct {
	// name is the file's name in the image, in its root folder.
	name string
	// path is where the file is now.
	path string
}

// builder gets hold of the programs.
type builder struct {
	// root is the checkout's.
	root string
	// scratch is where what is built goes.
	scratch string
	// version is stamped into what is built.
	version string
	out     io.Writer
}

// programs are the named ones for one platform, in this order.
func (b *builder) programs(ctx context.Context, binaries []string, target platform) ([]program, error) {
	all := make([]program, 0, len(binaries))
	taken := map[string]string{}
	for _, binary := range binaries {
		p, err := b.program(ctx, binary, target)
		if err != nil {
			return nil, err
		}
		if other, found := taken[p.name]; found {
			return nil, fmt.Errorf("%s and %s would both be /%s", other, binary, p.name)
		}
		taken[p.name] = binary
		if err := runsAlone(p.path, target); err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// program is a file as it is, or built if it is a folder.
func (b *builder) program(ctx context.Context, binary string, target platform) (program, error) {
	path := absolute(b.root, binary)
	info, err := os.Stat(path)
	if err != nil {
		return program{}, err
	}
	name := filepath.Base(path)
	if !info.IsDir() {
		return program{name: name, path: path}, nil
	}
	fmt.Fprintf(b.out, "image: building %s for %s (the first time takes minutes)\n", binary, target)
	built := filepath.Join(b.scratch, target.OS+"-"+target.Architecture, name)
	return program{name: name, path: built}, b.build(ctx, path, built, target)
}

// build compiles the package of a folder, in the module that the folder is in. The
// result depends on the sources, the compiler and the version alone: it holds no path
// of the builder (-trimpath) and no state of the checkout (-buildvcs), and nothing of
// the environment decides. CGO_ENABLED=0 makes it one that needs no other file.
func (b *builder) build(ctx context.Context, dir, output string, target platform) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X main.version="+b.version, "-o", output, ".")
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+target.OS, "GOARCH="+target.Architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GODEBUG=", "GOWORK=off")
	command.Stdout, command.Stderr = b.out, b.out
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 10 * time.Second
	if err := command.Run(); err != nil {
		return fmt.Errorf("building %s for %s: %w", dir, target, err)
	}
	return nil
}

// checkoutRoot is the root of the checkout that the working directory lies in.
func checkoutRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+modulePath+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s", start, modulePath)
		}
	}
}

// absolute is a path of the command line.
func absolute(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
