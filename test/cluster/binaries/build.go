package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/filelock"
)

// builder builds the recipes of one checkout into one cache.
type builder struct {
	root    string
	cache   string
	out     io.Writer
	recipes map[Tool]recipe
}

// job is one program of a build: where it goes and how it is made.
type job struct {
	tool   Tool
	recipe recipe
	flags  []string
	path   string
}

func (b builder) build(ctx context.Context, tools []Tool) (Set, error) {
	set := Set{}
	var jobs []job
	for _, tool := range tools {
		j, err := b.plan(tool)
		if err != nil {
			return nil, err
		}
		set[tool] = j.path
		jobs = append(jobs, j)
	}
	if jobs = missing(jobs); len(jobs) == 0 {
		return set, nil
	}

	// One build at a time on one machine: two would only slow each other down.
	lock, err := filelock.Acquire(ctx, filepath.Join(b.cache, "build.lock"), b.root, func(holder string) {
		fmt.Fprintf(b.out, "waiting for the build that runs in %s\n", holder)
	})
	if err != nil {
		return nil, err
	}
	defer lock.Release() //nolint:errcheck // the kernel drops it in any case
	if err := b.run(ctx, missing(jobs)); err != nil {
		return nil, err
	}
	return set, nil
}

// plan finds out where a program is, or will be.
func (b builder) plan(tool Tool) (job, error) {
	r, ok := b.recipes[tool]
	if !ok {
		return job{}, fmt.Errorf("there is no recipe for building %q", tool)
	}
	dir := b.moduleDir(r)
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return job{}, err
	}
	gosum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return job{}, err
	}
	version, err := requiredVersion(gomod, r.versionOf)
	if err != nil {
		return job{}, fmt.Errorf("test/tools/%s/go.mod: %w", r.module, err)
	}
	sources, err := ownSources(dir)
	if err != nil {
		return job{}, err
	}
	flags := r.flags(version)
	key := cacheKey(gomod, gosum, runtime.Version(), flags, sources...)
	folder := fmt.Sprintf("%s-%s-%s", r.module, version, key)
	return job{tool: tool, recipe: r, flags: flags, path: filepath.Join(b.cache, folder, string(tool))}, nil
}

func (b builder) moduleDir(r recipe) string {
	return filepath.Join(b.root, "test", "tools", r.module)
}

// SourceDir is the folder with the sources of the module that a program is from, for
// what a project ships beside its code. It fetches them if they are not there.
func SourceDir(ctx context.Context, tool Tool) (string, error) {
	root, err := CheckoutRoot()
	if err != nil {
		return "", err
	}
	r, ok := recipes[tool]
	if !ok {
		return "", fmt.Errorf("there is no recipe for building %q", tool)
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", r.versionOf)
	cmd.Dir = builder{root: root}.moduleDir(r)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the sources of %s: %w\n%s", r.versionOf, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", fmt.Errorf("the sources of %s: %w", r.versionOf, err)
	}
	return module.Dir, nil
}

// ownSources are the sources of a module's own main package, if it has one.
func ownSources(dir string) ([][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var sources [][]byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sources = append(sources, data)
	}
	return sources, nil
}

// requiredVersion is the version of module that a go.mod requires.
func requiredVersion(gomod []byte, module string) (string, error) {
	for line := range strings.Lines(string(gomod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("no version of %s is required", module)
}

// cacheKey tells results apart that one version of a tool can have: other
// dependencies, another compiler, another platform, other flags, other sources of ours.
func cacheKey(gomod, gosum []byte, compiler string, flags []string, sources ...[]byte) string {
	h := sha256.New()
	for _, part := range append([][]byte{
		gomod, gosum, []byte(compiler), []byte(runtime.GOOS), []byte(runtime.GOARCH), []byte(strings.Join(flags, "\x00")),
	}, sources...) {
		// The length keeps neighbors from running into each other.
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

func missing(jobs []job) []job {
	var left []job
	for _, j := range jobs {
		if executable(j.path) != nil {
			left = append(left, j)
		}
	}
	return left
}

func (b builder) run(ctx context.Context, jobs []job) error {
	if len(jobs) == 0 {
		return nil
	}
	minutes := 0
	names := make([]string, 0, len(jobs))
	for _, j := range jobs {
		minutes += j.recipe.minutes
		names = append(names, string(j.tool))
	}
	fmt.Fprintf(b.out, "Building %s from source, once for these versions: with empty caches\n"+
		"up to %d min on 2 cores. The results are kept in %s.\n", strings.Join(names, ", "), minutes, b.cache)
	for i, j := range jobs {
		if err := b.compile(ctx, j, fmt.Sprintf("%s (%d of %d)", j.tool, i+1, len(jobs))); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) compile(ctx context.Context, j job, title string) error {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o755); err != nil {
		return err
	}
	p := startProgress(b.out, title)
	defer p.stop()

	// Listing first fetches the sources and says how many packages there are.
	list := append(append([]string{"list", "-deps"}, j.flags...), j.recipe.pkg)
	packages, err := b.goCommand(ctx, j, p, list...)
	if err != nil {
		return err
	}
	p.compiling(bytes.Count(packages, []byte("\n")))

	// The name changes only when the file is whole. A name of its own keeps this
	// build apart from a go command that outlived a killed builder; what such
	// ones left is swept away.
	partial := fmt.Sprintf("%s.partial-%d", j.path, os.Getpid())
	if err := removeAll(j.path + ".partial-*"); err != nil {
		return err
	}
	defer os.Remove(partial) // After a success it is not there.
	build := append(append([]string{"build", "-v", "-o", partial}, j.flags...), j.recipe.pkg)
	if _, err := b.goCommand(ctx, j, p, build...); err != nil {
		return err
	}
	if err := os.Rename(partial, j.path); err != nil {
		return err
	}
	p.finished()
	return nil
}

func removeAll(pattern string) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// goCommand runs the go command in the module of the job and returns what it
// printed; its messages go to the progress.
func (b builder) goCommand(ctx context.Context, j job, p *progress, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.moduleDir(j.recipe)
	// What is built depends on the checkout alone: not on a workspace around
	// it, nor may it change the pinned versions.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -mod=readonly -buildvcs=false"))
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, p
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("building %s was interrupted, the same command goes on from here: %w", j.tool, context.Cause(ctx))
		}
		return nil, fmt.Errorf("building %s (%s, pinned by test/tools/%s/go.mod) failed: %w\n%s\n"+
			"What was compiled so far is kept: run the same command again to go on", j.tool, j.recipe.pkg, j.recipe.module, err, p.quote())
	}
	return stdout.Bytes(), nil
}
