package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(content)
}

// only is the one match of a pattern's first group.
func only(t *testing.T, pattern, in string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(in, -1)
	require.Len(t, found, 1, pattern)
	return found[0][1]
}

// goList asks the go command about the operator's programs, as they are built.
func goList(t *testing.T, format string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, packages()...)...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	listed, err := command.Output()
	require.NoError(t, err)
	return strings.Fields(string(listed))
}

// packages are the operator's programs as the go command names them.
func packages() []string {
	var all []string
	for _, program := range Operator {
		all = append(all, "./"+program)
	}
	return all
}

func TestTheDockerfileBuildsWhatMakeImageBuilds(t *testing.T) {
	dockerfile, tool := text(t, "Dockerfile"), text(t, "test/tools/image/build.go")

	assert.Equal(t, strings.Join(packages(), " "), only(t, `-o /out/ (.+)\n`, dockerfile))
	assert.Equal(t, "/"+filepath.Base(Operator[0]), only(t, `(?m)^ENTRYPOINT \["(.+)"\]$`, dockerfile))
	assert.Equal(t, "65532:65532", only(t, `(?m)^USER (.+)$`, dockerfile))
	for _, same := range []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "-trimpath", "-buildvcs=false", "-s -w -X main.version="} {
		assert.Contains(t, dockerfile, same)
		assert.Contains(t, tool, same)
	}
}

func TestTheDockerfilesCompilerIsThatOfTheModule(t *testing.T) {
	assert.Equal(t, only(t, `(?m)^go (.+)$`, text(t, "go.mod")), only(t, `(?m)^ARG GO_VERSION=(.+)$`, text(t, "Dockerfile")))
}

// What Docker is not sent, it cannot compile; and what it is sent for nothing makes
// another image of the same programs.
func TestDockerIsSentWhatTheProgramsAreMadeOf(t *testing.T) {
	absolute, err := filepath.Abs(root)
	require.NoError(t, err)
	needed := []string{"go.mod", "go.sum"}
	for _, file := range goList(t, `{{if not .Standard}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}} {{end}}{{range .EmbedFiles}}{{$dir}}/{{.}} {{end}}{{end}}`) {
		if relative, err := filepath.Rel(absolute, file); err == nil && !strings.HasPrefix(relative, "..") {
			needed = append(needed, filepath.ToSlash(relative))
		}
	}
	var sent []string
	for line := range strings.Lines(text(t, ".dockerignore")) {
		if path, found := strings.CutPrefix(strings.TrimSpace(line), "!"); found {
			sent = append(sent, path)
		}
	}

	below := func(path, file string) bool { return file == path || strings.HasPrefix(file, path+"/") }
	for _, file := range needed {
		assert.True(t, slices.ContainsFunc(sent, func(path string) bool { return below(path, file) }), "%s is not sent", file)
	}
	for _, path := range sent {
		assert.True(t, slices.ContainsFunc(needed, func(file string) bool { return below(path, file) }), "%s is sent for nothing", path)
	}
}

// The image has no zone files: a schedule in a time zone needs them in the program.
func TestTheOperatorBringsItsTimeZones(t *testing.T) {
	assert.Contains(t, goList(t, `{{.ImportPath}}`), "time/tzdata")
}
