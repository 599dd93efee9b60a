//go:build release

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/test/image"
)

const checkout = "../../.."

// dist is the release that was made before these tests: RELEASE_DIST, or dist/.
func dist(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RELEASE_DIST")
	if dir == "" {
		dir = filepath.Join(checkout, "dist")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, sumsFile), "make release-dry-run makes it")
	return dir
}

// released is the version, as the files' names tell it.
func released(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist(t), product+"_*_image.tar"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), product+"_"), "_image.tar")
}

func named(t *testing.T, ending string) string {
	t.Helper()
	return filepath.Join(dist(t), product+"_"+released(t)+"_"+ending)
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// answer is what a command prints.
func answer(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s %q:\n%s", name, args, said)
	return strings.TrimSpace(string(said))
}

func TestEveryFileHasItsSum(t *testing.T) {
	answer(t, dist(t), nil, "sha256sum", "--check", "--strict", sumsFile)

	var summed, there []string
	for line := range strings.Lines(string(content(t, filepath.Join(dist(t), sumsFile)))) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		summed = append(summed, name)
	}
	files, err := os.ReadDir(dist(t))
	require.NoError(t, err)
	for _, file := range files {
		if file.Name() != sumsFile {
			there = append(there, file.Name())
		}
	}
	assert.Equal(t, there, summed)
	v := released(t)
	assert.ElementsMatch(t, []string{
		plugin + "_" + v + "_linux_amd64.tar.gz", plugin + "_" + v + "_linux_arm64.tar.gz", plugin + "_" + v + "_windows_amd64.tar.gz",
		plugin + "_" + v + "_darwin_amd64.tar.gz", plugin + "_" + v + "_darwin_arm64.tar.gz", krewFile,
		product + "_" + v + "_image.tar",
		product + "_" + v + "_linux_amd64", product + "_" + v + "_linux_amd64.cdx.json",
		product + "_" + v + "_linux_arm64", product + "_" + v + "_linux_arm64.cdx.json",
		product + "_" + v + "_crds.yaml", product + "_" + v + "_guard.yaml", product + "_" + v + "_guard-denying.yaml",
		product + "-" + strings.TrimPrefix(v, "v") + ".tgz", notesFile,
	}, there)
}

func TestProgramsNeedNothingButTheirMachine(t *testing.T) {
	for platform, machine := range map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64} {
		program, err := elf.Open(named(t, underscored(platform)))
		require.NoError(t, err)
		assert.Equal(t, machine, program.Machine)
		assert.Equal(t, elf.ET_EXEC, program.Type)
		assert.False(t, slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC }), "%s is not static", platform)
		assert.NoError(t, program.Close())
	}
}

func TestProgramsTellTheirVersion(t *testing.T) {
	assert.Contains(t, answer(t, ".", nil, named(t, "linux_"+runtime.GOARCH), "--version"), released(t))
	for _, platform := range platforms {
		assert.True(t, bytes.Contains(content(t, named(t, underscored(platform))), []byte(released(t))), platform)
	}
}

func TestProgramsHoldNoPathOfTheirBuilder(t *testing.T) {
	root, err := filepath.Abs(checkout)
	require.NoError(t, err)
	places := map[string]string{"the checkout": root}
	for _, name := range []string{"GOROOT", "GOMODCACHE", "GOCACHE"} {
		places[name] = answer(t, ".", nil, "go", "env", name)
		require.NotEmpty(t, places[name])
	}
	for _, platform := range platforms {
		program := content(t, named(t, underscored(platform)))
		for what, path := range places {
			assert.False(t, bytes.Contains(program, []byte(path+"/")), "%s: %s, %s", platform, what, path)
		}
		info, err := buildinfo.ReadFile(named(t, underscored(platform)))
		require.NoError(t, err)
		for _, setting := range info.Settings {
			assert.NotContains(t, setting.Key, "vcs", "the state of the checkout must not make another program")
		}
	}
}

// bill is what is read of a bill of materials.
type bill struct {
	BOMFormat string `json:"bomFormat"`
	Metadata  struct {
		Timestamp string
		Component component
	}
	Components []component
}

type component struct {
	Name     string
	Version  string
	Hashes   []struct{ Alg, Content string }
	Evidence struct {
		Licenses []any
	}
}

func TestBillsListTheModulesOfThePrograms(t *testing.T) {
	direct := regexp.MustCompile(`(?m)^\t(\S+ v\S+)$`).FindAllStringSubmatch(string(content(t, filepath.Join(checkout, "go.mod"))), -1)
	require.NotEmpty(t, direct)
	for _, platform := range platforms {
		var b bill
		require.NoError(t, json.Unmarshal(content(t, named(t, underscored(platform)+".cdx.json")), &b))
		info, err := buildinfo.ReadFile(named(t, underscored(platform)))
		require.NoError(t, err)
		want, got := map[string]string{"std": info.GoVersion}, map[string]string{}
		for _, module := range info.Deps {
			want[module.Path] = module.Version
		}
		for _, c := range b.Components {
			got[c.Name] = c.Version
			if c.Name != "std" {
				assert.NotEmpty(t, c.Hashes, c.Name)
				assert.NotEmpty(t, c.Evidence.Licenses, "%s: no license was found", c.Name)
			}
		}

		assert.Equal(t, "CycloneDX", b.BOMFormat)
		assert.Equal(t, info.Main.Path, b.Metadata.Component.Name)
		assert.Equal(t, released(t), b.Metadata.Component.Version)
		assert.Equal(t, want, got, platform)
		listed := 0
		for _, d := range direct {
			path, version, _ := strings.Cut(d[1], " ")
			if got[path] == version {
				listed++
			}
		}
		assert.Greater(t, listed, len(direct)/2, "most of what go.mod requires is for the program, the rest for tests")
	}
}

func TestTheImageRunsTheProgramsThatAreDownloaded(t *testing.T) {
	images, err := image.Read(named(t, "image.tar"))
	require.NoError(t, err)

	require.Len(t, images, len(platforms))
	for n, i := range images {
		assert.Equal(t, platforms[n], i.Platform)
		assert.Equal(t, []string{"docker.io/library/" + product + ":" + released(t)}, i.Names)
		assert.Equal(t, []string{"/" + filepath.Base(image.Operator[0])}, i.Config.Config.Entrypoint)
		program := i.Files[filepath.Base(image.Operator[0])]
		assert.True(t, bytes.Equal(program.Content, content(t, named(t, underscored(i.Platform)))), i.Platform)
		labels := i.Config.Config.Labels
		assert.Equal(t, released(t), labels["org.opencontainers.image.version"])
		assert.Regexp(t, `^[0-9a-f]{40}(-dirty)?$`, labels["org.opencontainers.image.revision"])
		assert.Equal(t, i.Config.Created.UTC().Format("2006-01-02T15:04:05Z"), labels["org.opencontainers.image.created"])
	}
}

// Whoever has Docker gets the same program as whoever has not.
func TestTheDockerfilesCommandBuildsTheSameProgram(t *testing.T) {
	dockerfile := string(content(t, filepath.Join(checkout, "Dockerfile")))
	command := regexp.MustCompile(`(?s)CGO_ENABLED=0.*?-o /out/ \S+`).FindString(dockerfile)
	require.NotEmpty(t, command)
	output := t.TempDir()
	command = strings.ReplaceAll(command, "-o /out/", "-o "+output+"/")

	answer(t, checkout, []string{"TARGETOS=linux", "TARGETARCH=amd64", "VERSION=" + released(t), "GOWORK=off"}, "sh", "-e", "-c", command)

	built := content(t, filepath.Join(output, filepath.Base(image.Operator[0])))
	assert.True(t, bytes.Equal(built, content(t, named(t, "linux_amd64"))))
}

func TestTheChartBearsTheVersion(t *testing.T) {
	files := unpacked(t, content(t, filepath.Join(dist(t), product+"-"+strings.TrimPrefix(released(t), "v")+".tgz")))

	var chart struct{ Name, Version, AppVersion string }
	require.NoError(t, yaml.Unmarshal(files[product+"/Chart.yaml"], &chart))
	assert.Equal(t, product, chart.Name)
	assert.Equal(t, strings.TrimPrefix(released(t), "v"), chart.Version)
	assert.Equal(t, released(t), chart.AppVersion, "the image's tag by default")
	assert.Contains(t, slices.Collect(maps.Keys(files)), product+"/values.schema.json")
}

// The plugin is what the manifest of krew says: each archive has the sum, and the program.
func TestTheManifestOfKrewNamesTheArchivesOfThePlugin(t *testing.T) {
	var manifest struct {
		APIVersion string
		Metadata   struct{ Name string }
		Spec       struct {
			Version   string
			Platforms []krewPlatform
		}
	}
	require.NoError(t, yaml.Unmarshal(content(t, filepath.Join(dist(t), krewFile)), &manifest))
	require.Len(t, manifest.Spec.Platforms, len(pluginPlatforms))
	assert.Equal(t, "autoscaler", manifest.Metadata.Name)
	assert.Equal(t, released(t), manifest.Spec.Version)
	for _, p := range manifest.Spec.Platforms {
		archive := content(t, filepath.Join(dist(t), filepath.Base(p.URI)))
		sum := sha256.Sum256(archive)
		assert.Equal(t, hex.EncodeToString(sum[:]), p.SHA256, p.URI)
		files := unpacked(t, archive)
		assert.Contains(t, files, "LICENSE")
		require.Contains(t, files, p.Bin)
		if labels := p.Selector.MatchLabels; labels.OS == "linux" && labels.Arch == runtime.GOARCH {
			program := filepath.Join(t.TempDir(), p.Bin)
			require.NoError(t, os.WriteFile(program, files[p.Bin], 0o700))
			assert.Contains(t, answer(t, ".", nil, program, "--version"), released(t))
		}
	}
}

// Krew itself takes the manifest and the archive, and the program is where kubectl looks.
func TestKrewInstallsThePlugin(t *testing.T) {
	root := t.TempDir()
	krew := filepath.Join(root, "krew")
	answer(t, filepath.Join("..", "..", "tools", "krew"), []string{"GOWORK=off"}, "go", "build", "-o", krew, "sigs.k8s.io/krew/cmd/krew")
	archive := filepath.Join(dist(t), plugin+"_"+released(t)+"_linux_"+runtime.GOARCH+".tar.gz")
	env := []string{"KREW_ROOT=" + root, "KREW_NO_UPGRADE_CHECK=1"}

	answer(t, ".", env, krew, "install", "--manifest="+filepath.Join(dist(t), krewFile), "--archive="+archive)

	assert.Contains(t, answer(t, ".", nil, filepath.Join(root, "bin", "kubectl-autoscaler"), "--version"), released(t))
}

// unpacked are the files of a packed archive.
func unpacked(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	in, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	for members := tar.NewReader(in); ; {
		header, err := members.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		files[header.Name], err = io.ReadAll(members)
		require.NoError(t, err)
	}
}

func TestTheManifestsHoldKindsAndGuard(t *testing.T) {
	for ending, want := range map[string][]string{
		"crds.yaml":          {"CustomResourceDefinition"},
		"guard.yaml":         {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"guard-denying.yaml": {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	} {
		kinds := map[string]bool{}
		for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(string(content(t, named(t, ending))), -1) {
			var object struct{ Kind string }
			require.NoError(t, yaml.Unmarshal([]byte(document), &object))
			if object.Kind != "" {
				kinds[object.Kind] = true
			}
		}
		assert.Equal(t, want, slices.Sorted(maps.Keys(kinds)), ending)
	}
}

func TestTheNotesTellWhatIsNew(t *testing.T) {
	notes := string(content(t, filepath.Join(dist(t), notesFile)))

	assert.Contains(t, notes, "# "+product+" "+released(t)+"\n")
	assert.Contains(t, notes, "\n- ")
}

func TestASecondRunMakesTheSameFiles(t *testing.T) {
	again := filepath.Join(t.TempDir(), "dist")

	require.NoError(t, run(t.Context(), []string{"--version=" + released(t), "--output=" + again}, io.Discard))

	assert.Equal(t, string(content(t, filepath.Join(dist(t), sumsFile))), string(content(t, filepath.Join(again, sumsFile))))
}
