package binaries

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/filelock"
)

const (
	hello  Tool = "hello"
	broken Tool = "broken"
)

// newBuilder is a builder for a checkout with two tools, one of which does not
// compile. The module requires nothing that would have to be fetched.
func newBuilder(t *testing.T) (builder, *bytes.Buffer) {
	t.Helper()
	root := t.TempDir()
	write(t, root, "test/tools/greet/go.mod", "module example.com/greet\n\ngo 1.26\n\nrequire example.com/lib v1.2.3\n\nreplace example.com/lib => ./lib\n")
	write(t, root, "test/tools/greet/lib/go.mod", "module example.com/lib\n\ngo 1.26\n")
	write(t, root, "test/tools/greet/lib/lib.go", "package lib\n\nvar Version = \"unstamped\"\n")
	write(t, root, "test/tools/greet/hello/main.go", "package main\n\nimport \"example.com/lib\"\n\nfunc main() { print(lib.Version) }\n")
	write(t, root, "test/tools/greet/broken/main.go", "package main\n\nfunc main() { undefinedFunction() }\n")
	stamp := func(version string) []string { return []string{"-ldflags=-X example.com/lib.Version=" + version} }
	var out bytes.Buffer
	return builder{root: root, cache: t.TempDir(), out: &out, recipes: map[Tool]recipe{
		hello:  {"greet", "example.com/lib", "example.com/greet/hello", stamp, 1},
		broken: {"greet", "example.com/lib", "example.com/greet/broken", stamp, 2},
	}}, &out
}

func write(t *testing.T, root, path, content string) {
	t.Helper()
	path = filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestBuild(t *testing.T) {
	t.Run("builds a program with its version stamped, and says so", func(t *testing.T) {
		b, out := newBuilder(t)

		set, err := b.build(t.Context(), []Tool{hello})

		require.NoError(t, err)
		said, err := exec.Command(set.Path(hello)).CombinedOutput()
		require.NoError(t, err)
		assert.Equal(t, "v1.2.3", string(said))
		assert.Contains(t, set.Path(hello), filepath.Join(b.cache, "greet-v1.2.3-"))
		assert.Contains(t, out.String(), "Building hello from source")
		assert.Contains(t, out.String(), "up to 1 min on 2 cores")
		assert.Contains(t, out.String(), "hello (1 of 1): built")
	})

	t.Run("finds the result again at once: silently, without the go command", func(t *testing.T) {
		b, out := newBuilder(t)
		first, err := b.build(t.Context(), []Tool{hello})
		require.NoError(t, err)
		out.Reset()
		t.Setenv("PATH", t.TempDir())

		second, err := b.build(t.Context(), []Tool{hello})

		require.NoError(t, err)
		assert.Equal(t, first, second)
		assert.Empty(t, out.String())
	})

	t.Run("says what failed, why and how to go on, and keeps what was finished", func(t *testing.T) {
		b, _ := newBuilder(t)

		_, err := b.build(t.Context(), []Tool{hello, broken})

		require.Error(t, err)
		assert.ErrorContains(t, err, "building broken (example.com/greet/broken, pinned by test/tools/greet/go.mod) failed")
		assert.ErrorContains(t, err, "undefined: undefinedFunction")
		assert.ErrorContains(t, err, "run the same command again")
		files, err := filepath.Glob(filepath.Join(b.cache, "greet-*", "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		assert.Equal(t, "hello", filepath.Base(files[0]))
	})

	t.Run("sweeps away what a killed build left half done", func(t *testing.T) {
		b, _ := newBuilder(t)
		j, err := b.plan(hello)
		require.NoError(t, err)
		write(t, "/", j.path+".partial-1", "half a program")

		_, err = b.build(t.Context(), []Tool{hello})

		require.NoError(t, err)
		files, err := filepath.Glob(j.path + "*")
		require.NoError(t, err)
		assert.Equal(t, []string{j.path}, files)
	})

	t.Run("stops when it is canceled, without a trace of the unfinished", func(t *testing.T) {
		b, _ := newBuilder(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		_, err := b.build(ctx, []Tool{hello})

		require.ErrorIs(t, err, context.Canceled)
		files, err := filepath.Glob(filepath.Join(b.cache, "greet-*", "*"))
		require.NoError(t, err)
		assert.Empty(t, files)
	})

	t.Run("refuses a tool that it has no recipe for", func(t *testing.T) {
		b, _ := newBuilder(t)

		_, err := b.build(t.Context(), []Tool{"docker"})

		assert.ErrorContains(t, err, `no recipe for building "docker"`)
	})
}

// Two checkouts with the same pins share one cache: the second waits for the
// first's build, and then takes its result.
func TestBuildsAtTheSameTimeBuildOnce(t *testing.T) {
	b, _ := newBuilder(t)
	held, err := filelock.Try(filepath.Join(b.cache, "build.lock"), "another checkout")
	require.NoError(t, err)
	outs := make([]bytes.Buffer, 2)
	waiting := make([]builder, 2)
	var done sync.WaitGroup
	for i := range waiting {
		waiting[i] = b
		told := &notifying{to: &outs[i], told: make(chan struct{})}
		waiting[i].out = told
		done.Go(func() {
			_, err := waiting[i].build(t.Context(), []Tool{hello})
			assert.NoError(t, err)
		})
		<-told.told
	}

	require.NoError(t, held.Release())
	done.Wait()

	both := outs[0].String() + outs[1].String()
	assert.Equal(t, 2, strings.Count(both, "waiting for the build that runs in another checkout"))
	assert.Equal(t, 1, strings.Count(both, "Building hello"))
}

// notifying closes told at the first write.
type notifying struct {
	to   io.Writer
	once sync.Once
	told chan struct{}
}

func (n *notifying) Write(data []byte) (int, error) {
	defer n.once.Do(func() { close(n.told) })
	return n.to.Write(data)
}

func TestTheCacheKeyChangesWithEverythingThatChangesTheResult(t *testing.T) {
	base := cacheKey([]byte("mod"), []byte("sum"), "go1.26.7", []string{"-tags=x"})

	assert.Equal(t, base, cacheKey([]byte("mod"), []byte("sum"), "go1.26.7", []string{"-tags=x"}))
	others := map[string]string{
		"go.mod":      cacheKey([]byte("mod2"), []byte("sum"), "go1.26.7", []string{"-tags=x"}),
		"go.sum":      cacheKey([]byte("mod"), []byte("sum2"), "go1.26.7", []string{"-tags=x"}),
		"compiler":    cacheKey([]byte("mod"), []byte("sum"), "go1.26.8", []string{"-tags=x"}),
		"flags":       cacheKey([]byte("mod"), []byte("sum"), "go1.26.7", []string{"-tags=y"}),
		"more flags":  cacheKey([]byte("mod"), []byte("sum"), "go1.26.7", []string{"-tags=x", "-race"}),
		"own sources": cacheKey([]byte("mod"), []byte("sum"), "go1.26.7", []string{"-tags=x"}, []byte("package main")),
		"shifted by1": cacheKey([]byte("mods"), []byte("um"), "go1.26.7", []string{"-tags=x"}),
	}
	for what, key := range others {
		assert.NotEqual(t, base, key, what)
	}
}

func TestRequiredVersion(t *testing.T) {
	for name, gomod := range map[string]string{
		"in a block":       "module m\n\nrequire (\n\ta.example/x v1.0.0\n\tk8s.io/kubernetes v1.37.2 // indirect\n)\n",
		"on its own line":  "module m\n\nrequire k8s.io/kubernetes v1.37.2\n",
		"beside a replace": "module m\n\nrequire k8s.io/kubernetes v1.37.2\n\nreplace k8s.io/kubernetes => ../kubernetes\n",
		"after a tool":     "module m\n\ntool k8s.io/kubernetes/cmd/kubectl\n\nrequire k8s.io/kubernetes v1.37.2\n",
	} {
		t.Run(name, func(t *testing.T) {
			version, err := requiredVersion([]byte(gomod), "k8s.io/kubernetes")

			require.NoError(t, err)
			assert.Equal(t, "v1.37.2", version)
		})
	}

	_, err := requiredVersion([]byte("module m\n"), "k8s.io/kubernetes")
	assert.ErrorContains(t, err, "k8s.io/kubernetes")
}

// Every recipe must name a package that its module pins as a tool, or a tidy
// of the module would drop what the build needs.
func TestEveryRecipeIsPinned(t *testing.T) {
	root, err := CheckoutRoot()
	require.NoError(t, err)
	b := builder{root: root, cache: t.TempDir(), recipes: recipes}
	for tool, r := range recipes {
		j, err := b.plan(tool)
		require.NoError(t, err, tool)
		assert.NotEmpty(t, j.flags, tool)
		if r.pkg == ownPackage {
			assert.FileExists(t, filepath.Join(b.moduleDir(r), "main.go"), "its imports pin what it needs")
			continue
		}
		gomod, err := os.ReadFile(filepath.Join(b.moduleDir(r), "go.mod"))
		require.NoError(t, err)
		assert.Regexp(t, `(?m)^(tool )?\s*`+r.pkg+`$`, string(gomod), tool)
	}
}

func TestKubernetesFlagsStampTheVersion(t *testing.T) {
	flags := kubernetesFlags("v1.37.2")

	require.Len(t, flags, 1)
	assert.Contains(t, flags[0], "version.gitVersion=v1.37.2")
	assert.Contains(t, flags[0], "version.gitMajor=1")
	assert.Contains(t, flags[0], "version.gitMinor=37")
}

func TestFromDir(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kubectl"), nil, 0o600))

	set, err := FromDir(dir, Etcd)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(dir, "etcd"), set.Path(Etcd))

	_, err = FromDir(dir, Etcd, KubeAPIServer)
	assert.ErrorContains(t, err, "kube-apiserver is not in "+dir)
	_, err = FromDir(dir, Kubectl)
	assert.ErrorContains(t, err, "not an executable file")
	assert.Panics(t, func() { set.Path(Kubectl) }, "a tool that was not asked for")
}

func TestCacheDirCanBeMoved(t *testing.T) {
	t.Setenv(CacheEnv, "/elsewhere")
	dir, err := CacheDir()
	require.NoError(t, err)
	assert.Equal(t, "/elsewhere", dir)

	t.Setenv(CacheEnv, "")
	dir, err = CacheDir()
	require.NoError(t, err)
	assert.Equal(t, "autoscale-operator", filepath.Base(dir))
}

func TestProgressCountsPackagesAndKeepsMessages(t *testing.T) {
	p := startProgress(io.Discard, "kubectl (1 of 1)")
	defer p.stop()
	say := func(text string) {
		_, err := p.Write([]byte(text))
		require.NoError(t, err)
	}

	say("go: downloading k8s.io/api v0.37.2\ngo: down")
	say("loading k8s.io/klog/v2 v2.140.0\n")
	assert.Equal(t, "fetching sources, 2 modules so far", p.state())

	p.compiling(400)
	say("k8s.io/api/core/v1\nk8s.io/klog/v2\n# k8s.io/kubectl\nx.go:3:1: undefined: y\n")
	assert.Equal(t, "2 of at most 400 packages compiled", p.state())
	assert.Equal(t, "  | # k8s.io/kubectl\n  | x.go:3:1: undefined: y", p.quote())
}
