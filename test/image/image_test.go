package image

import (
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// says is a program that prints the version that it was built with.
const says = "package main\n\nvar version = \"unstamped\"\n\nfunc main() { print(version) }\n"

// source is a folder with a program, in a module of its own, named as the program.
func source(t *testing.T, name, code string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/"+name+"\n\ngo 1.26\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600))
	return dir
}

// compiled is an executable, made with these settings.
func compiled(t *testing.T, name, code string, settings ...string) string {
	t.Helper()
	dir := source(t, name, code)
	output := filepath.Join(dir, name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", output, ".")
	build.Dir = dir
	build.Env = append(append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux"), settings...)
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	return output
}

// made is the image of these options, read again.
func made(t *testing.T, o Options) []Image {
	t.Helper()
	if o.Output == "" {
		o.Output = filepath.Join(t.TempDir(), "image.tar")
	}
	require.NoError(t, Build(t.Context(), o))
	images, err := Read(o.Output)
	require.NoError(t, err)
	return images
}

func TestAnImageOfOnePlatformHoldsTheProgramAndLittleElse(t *testing.T) {
	images := made(t, Options{
		Binaries: []string{source(t, "says", says), compiled(t, "other", says)}, Name: "says", Tag: "v1.2.3",
		Labels: map[string]string{"org.opencontainers.image.licenses": "Apache-2.0"},
	})

	require.Len(t, images, 1)
	i := images[0]
	assert.Equal(t, []string{"says:v1.2.3"}, i.Names)
	assert.Equal(t, "linux/"+runtime.GOARCH, i.Platform)
	assert.Equal(t, []string{"/says"}, i.Config.Config.Entrypoint)
	assert.Empty(t, i.Config.Config.Cmd)
	assert.Equal(t, "65532:65532", i.Config.Config.User, "a number, which runAsNonRoot can be held against")
	assert.Equal(t, map[string]string{
		"org.opencontainers.image.title": "says", "org.opencontainers.image.version": "v1.2.3",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}, i.Config.Config.Labels)
	assert.Equal(t, []string{
		"etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt",
		"home/", "home/nonroot/", "other", "says", "tmp/",
	}, slices.Sorted(maps.Keys(i.Files)), "no shell, no library")
	for name, file := range i.Files {
		assert.Equal(t, time.Unix(0, 0).UTC(), file.ModTime, name)
		if name != "tmp/" {
			assert.Zero(t, file.Mode&0o022, "%s can be written by others", name)
		}
	}
	assert.Contains(t, string(i.Files["etc/passwd"].Content), "nonroot:x:65532:65532:")
	assert.Equal(t, User, i.Files["home/nonroot/"].UID)
	assert.Equal(t, int64(0o555), i.Files["says"].Mode)
	assert.Equal(t, 0, i.Files["says"].UID, "the program cannot be replaced by itself")
}

func TestWhatIsBuiltTellsTheTagAsItsVersion(t *testing.T) {
	images := made(t, Options{Binaries: []string{source(t, "says", says)}, Name: "says", Tag: "v1.2.3"})
	program := filepath.Join(t.TempDir(), "says")
	require.NoError(t, os.WriteFile(program, images[0].Files["says"].Content, 0o700))

	said, err := exec.CommandContext(t.Context(), program).CombinedOutput()

	require.NoError(t, err)
	assert.Equal(t, "v1.2.3", string(said))
}

func TestAnImageOfSeveralPlatformsHasAProgramForEach(t *testing.T) {
	images := made(t, Options{
		Binaries: []string{source(t, "says", says)}, Name: "registry.example.com/tools/says", Tag: "v1.2.3",
		Platforms: []string{"linux/amd64", "linux/arm64"},
	})

	require.Len(t, images, 2)
	for n, want := range []struct {
		platform string
		machine  elf.Machine
	}{{"linux/amd64", elf.EM_X86_64}, {"linux/arm64", elf.EM_AARCH64}} {
		i := images[n]
		assert.Equal(t, want.platform, i.Platform)
		assert.Equal(t, want.platform, i.Config.OS+"/"+i.Config.Architecture)
		assert.Equal(t, []string{"registry.example.com/tools/says:v1.2.3"}, i.Names)
		program, err := elf.NewFile(bytes.NewReader(i.Files["says"].Content))
		require.NoError(t, err)
		assert.Equal(t, want.machine, program.Machine)
	}
}

// A pod that names an image without a registry means docker.io/library, and that is
// the name that containerd has to have it under.
func TestAnImageWithoutARegistryIsNamedAsContainerdLooksForIt(t *testing.T) {
	images := made(t, Options{
		Binaries: []string{source(t, "says", says)}, Name: "says", Tag: "v1", Platforms: []string{"linux/amd64", "linux/arm64"},
	})

	assert.Equal(t, []string{"docker.io/library/says:v1"}, images[0].Names)
}

func TestTheSameSourcesGiveTheSameImageWhereverTheyLie(t *testing.T) {
	for name, platforms := range map[string][]string{"of one platform": nil, "of several platforms": {"linux/amd64", "linux/arm64"}} {
		t.Run(name, func(t *testing.T) {
			var archives [2][]byte
			for n, flags := range []string{"", "-gcflags=-N"} {
				t.Setenv("GOFLAGS", flags)
				output := filepath.Join(t.TempDir(), "image.tar")
				// Each time in another folder, with other settings around it.
				require.NoError(t, Build(t.Context(), Options{
					Binaries: []string{source(t, "says", says)}, Name: "says", Tag: "v1", Platforms: platforms, Output: output,
				}))
				content, err := os.ReadFile(output)
				require.NoError(t, err)
				archives[n] = content
			}

			assert.True(t, bytes.Equal(archives[0], archives[1]), "%s is not %s", digest(archives[0]), digest(archives[1]))
		})
	}
}

func TestEverythingBearsTheTimeOfTheSources(t *testing.T) {
	images := made(t, Options{
		Binaries: []string{source(t, "says", says)}, Name: "says", Tag: "v1", Env: []string{"SOURCE_DATE_EPOCH=1700000000"},
	})

	want := time.Unix(1_700_000_000, 0).UTC()
	assert.Equal(t, want, images[0].Config.Created.UTC())
	for name, file := range images[0].Files {
		assert.Equal(t, want, file.ModTime, name)
	}
}

// Without them an endpoint with a public certificate could not be asked.
func TestAnImageKnowsPublicAuthorities(t *testing.T) {
	images := made(t, Options{Binaries: []string{source(t, "says", says)}, Name: "says", Tag: "v1"})
	names := map[string]bool{}
	for rest := images[0].Files["etc/ssl/certs/ca-certificates.crt"].Content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			assert.Empty(t, rest)
			break
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		assert.True(t, authority.IsCA, authority.Subject)
		names[authority.Subject.CommonName] = true
	}

	assert.Greater(t, len(names), 80)
	assert.Contains(t, names, "ISRG Root X1")
}

func TestAnImageThatWouldNotRunIsRefused(t *testing.T) {
	program := source(t, "says", says)
	text := filepath.Join(t.TempDir(), "notes")
	require.NoError(t, os.WriteFile(text, []byte("not a program"), 0o600))
	fine := Options{Binaries: []string{program}, Name: "says", Tag: "v1", Platforms: []string{"linux/amd64"}}
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"a program that needs libraries": {
			func(o *Options) {
				o.Binaries = []string{compiled(t, "linked", says, "GOARCH=amd64", "GOFLAGS=-buildmode=pie")}
			}, "dynamically linked",
		},
		"a program of another machine": {
			func(o *Options) { o.Binaries = []string{compiled(t, "elsewhere", says, "GOARCH=arm64")} }, "made for EM_AARCH64, and linux/amd64 needs EM_X86_64",
		},
		"a file that is no program":   {func(o *Options) { o.Binaries = []string{text} }, "not a Linux executable"},
		"a program that is not there": {func(o *Options) { o.Binaries = []string{"cmd/nothing"} }, "no such file"},
		"a program that does not compile": {func(o *Options) {
			o.Binaries = []string{source(t, "broken", "package main\n\nfunc main() { missing() }\n")}
		}, "undefined: missing"},
		"two programs of one name":          {func(o *Options) { o.Binaries = []string{program, source(t, "says", says)} }, "would both be /says"},
		"no program":                        {func(o *Options) { o.Binaries = nil }, "--binary is needed"},
		"no name":                           {func(o *Options) { o.Name = "" }, "--name is needed"},
		"no tag":                            {func(o *Options) { o.Tag = "" }, "--tag is needed"},
		"a tag that registries do not take": {func(o *Options) { o.Tag = "v1+dirty" }, "tag"},
		"a platform that nobody has tried":  {func(o *Options) { o.Platforms = []string{"windows/amd64"} }, `platform "windows/amd64"`},
		"a time that is none":               {func(o *Options) { o.Env = []string{"SOURCE_DATE_EPOCH=today"} }, "SOURCE_DATE_EPOCH"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fine
			o.Output = filepath.Join(t.TempDir(), "image.tar")
			tc.change(&o)

			err := Build(t.Context(), o)

			assert.ErrorContains(t, err, tc.want)
			left, err := os.ReadDir(filepath.Dir(o.Output))
			require.NoError(t, err)
			assert.Empty(t, left, "nothing is left behind")
		})
	}
}
