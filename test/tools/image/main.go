// Command image wraps static programs in a container image, without Docker and without
// a registry. It builds what it is given as a package, for each platform, and writes one
// archive: for one platform as `docker save` writes it, for several an OCI layout. Both
// can be loaded with `ctr --namespace k8s.io images import` (the latter with
// --all-platforms to get more than one's own), and the same sources give the same bytes.
//
//	go run -C test/tools/image . --binary=cmd/manager --name=autoscale-operator \
//		--tag=v0.1.0 --platform=linux/amd64,linux/arm64 --output=dist/image.tar
//
// It is a module of its own, so that the product's go.mod does not hold what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		err = errors.New("interrupted; nothing was written")
	}
	fmt.Fprintln(os.Stderr, "image:", err)
	return 1
}

// options are the flags.
type options struct {
	// binaries are the programs; the first one is the entry point.
	binaries  []string
	name      string
	tag       string
	platforms []string
	output    string
	labels    map[string]string
}

// parse reads the command line. Paths that are relative are relative to the checkout,
// as `go run -C` has changed the working directory.
func parse(args []string, out io.Writer) (*options, error) {
	o := options{labels: map[string]string{}}
	var platforms string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Func("binary", "a program: a static executable, or the folder of its package, which is built; may be repeated, the first one is the entry point", func(value string) error {
		o.binaries = append(o.binaries, value)
		return nil
	})
	flags.StringVar(&o.name, "name", "", "the image's name, with or without a registry")
	flags.StringVar(&o.tag, "tag", "", "the image's tag; packages that are built get it as main.version")
	flags.StringVar(&platforms, "platform", hostPlatform(), "the platforms, separated by commas")
	flags.StringVar(&o.output, "output", "", "the archive to write")
	flags.Func("label", "a label as key=value; may be repeated", func(value string) error {
		key, text, found := strings.Cut(value, "=")
		if !found || key == "" {
			return errors.New("want key=value")
		}
		o.labels[key] = text
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for name, value := range map[string]string{"name": o.name, "tag": o.tag, "output": o.output, "binary": strings.Join(o.binaries, "")} {
		if value == "" {
			return nil, fmt.Errorf("--%s is needed", name)
		}
	}
	o.platforms = strings.Split(platforms, ",")
	return &o, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	made, err := created()
	if err != nil {
		return err
	}
	root, err := checkoutRoot()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	b := builder{root: root, scratch: scratch, version: o.tag, out: out}
	images := make([]platformImage, 0, len(o.platforms))
	for _, text := range o.platforms {
		target, err := parsePlatform(text)
		if err != nil {
			return err
		}
		programs, err := b.programs(ctx, o.binaries, target)
		if err != nil {
			return err
		}
		img, err := newImage(programs, target, made, labels(o))
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		images = append(images, platformImage{platform: target, image: img})
	}
	digest, err := write(absolute(root, o.output), scratch, o.name+":"+o.tag, images)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "image: wrote %s: %s:%s for %s, %s\n", o.output, o.name, o.tag, strings.Join(o.platforms, " and "), digest)
	return nil
}

// labels are what the image says of itself, in the OCI's words.
func labels(o *options) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":   title(o.name),
		"org.opencontainers.image.version": o.tag,
	}
	for key, value := range o.labels {
		all[key] = value
	}
	return all
}

// title is the last part of the image's name.
func title(name string) string { return name[strings.LastIndex(name, "/")+1:] }
