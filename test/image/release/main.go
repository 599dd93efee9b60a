// Command release makes everything that a release consists of, and publishes nothing:
// the programs and the image for each platform, the chart, the manifests, what the
// programs are made of, the notes, and the sums of all of it. make release-dry-run
// calls it and then tests what came out; docs/release.md tells what it is for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// product begins the name of every file.
const product = "autoscale-operator"

// platforms are those that are released.
var platforms = []string{"linux/amd64", "linux/arm64"}

// versions are the semantic ones without build metadata, which no image tag may hold.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var version, output string
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&version, "version", "", "the version, as v0.1.0")
	flags.StringVar(&output, "output", "dist", "the folder that gets the files; what an earlier run put there is replaced")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !versions.MatchString(version) {
		return fmt.Errorf("--version=%s: want a semantic version such as v0.1.0 or v0.1.0-rc.1", version)
	}
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return err
	}
	source, err := readSource(ctx, root)
	if err != nil {
		return err
	}
	if output, err = filepath.Abs(output); err != nil {
		return err
	}
	if err := replaceable(output); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(output), ".release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // After a success it is not there.
	r := release{root: root, dir: dir, version: version, source: source, out: out}
	if err := r.write(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.RemoveAll(output), os.Rename(dir, output)); err != nil {
		return err
	}
	fmt.Fprintf(out, "release: %s is in %s; nothing was published\n", version, output)
	return nil
}

// replaceable reports whether a folder may be removed: if this program made it.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, sumsFile)); err != nil {
		return fmt.Errorf("%s holds something that is no release; name another folder", dir)
	}
	return nil
}
