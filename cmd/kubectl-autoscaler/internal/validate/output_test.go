package validate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// inFiles writes two files, of which one does not fit the other, and gives their folder.
func inFiles(t *testing.T) string {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a,b.yaml":    profile + "---\n" + deployment("web") + "---\n" + autoscaler("web", "web"),
		"second.yaml": autoscaler("two", "web") + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	return dir
}

func TestTextNamesPlaceObjectAndField(t *testing.T) {
	inFiles(t)
	code, out, errs := run(t, "", "-f", ".", "-f", "second.yaml", "--complete", "-n", "production")
	assert.Equal(t, cli.ExitFound, code)
	assert.Empty(t, errs)
	all := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, all, 3)
	assert.Contains(t, all[0], `a,b.yaml:5:3: note: MetricProfile load: spec.endpoint: whether`)
	assert.Contains(t, all[1], `second.yaml:5:15: error: AutoScaler production/two: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`)
	assert.True(t, strings.HasSuffix(all[1], "(see a,b.yaml:16:1)"), all[1])
	assert.Equal(t, "4 objects checked in 2 files, 1 of other kinds: 1 error, 0 warnings, 1 note", all[2])
}

func TestGitHubShowsAnnotations(t *testing.T) {
	inFiles(t)
	code, out, _ := run(t, "", "-f", ".", "--complete", "-o", "github")
	assert.Equal(t, cli.ExitFound, code)
	all := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, all, 3)
	assert.Contains(t, all[0], "::notice file=a%2Cb.yaml,line=5,col=3,title=MetricProfile load::spec.endpoint: whether")
	assert.Contains(t, all[1], "::error file=second.yaml,line=5,col=15,title=AutoScaler production/two::spec.targetRef.name: Forbidden: ")
}

func TestSARIFIsOfVersion2_1_0(t *testing.T) {
	inFiles(t)
	code, out, _ := run(t, "", "-f", ".", "--complete", "-o", "sarif")
	assert.Equal(t, cli.ExitFound, code)
	var log sarifLog
	require.NoError(t, json.Unmarshal([]byte(out), &log))
	assert.Equal(t, "2.1.0", log.Version)
	require.Len(t, log.Runs, 1)
	require.Len(t, log.Runs[0].Results, 2)
	result := log.Runs[0].Results[1]
	assert.Equal(t, "error", result.Level)
	assert.Equal(t, []sarifLocation{{sarifPhysical{sarifArtifact{"second.yaml"}, &sarifRegion{5, 15}}}}, result.Locations)
	assert.Equal(t, []sarifLocation{{sarifPhysical{sarifArtifact{"a,b.yaml"}, &sarifRegion{16, 1}}}}, result.RelatedLocations)
	declared := map[string]bool{}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		declared[rule.ID] = true
	}
	for _, r := range log.Runs[0].Results {
		assert.True(t, declared[r.RuleID], r.RuleID)
		assert.NotEmpty(t, r.Message.Text)
	}
}

func TestJSONHasTheSameFields(t *testing.T) {
	inFiles(t)
	_, out, _ := run(t, "", "-f", "second.yaml", "-o", "json")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	assert.Equal(t, map[string]any{"files": 1.0, "checked": 1.0, "ignored": 1.0, "errors": 0.0, "warnings": 0.0, "notes": 2.0}, report["summary"])
	first := report["findings"].([]any)[0].(map[string]any)
	delete(first, "message")
	assert.Equal(t, map[string]any{
		"level": "note", "rule": "set", "file": "second.yaml", "line": 5.0, "column": 15.0,
		"object": "AutoScaler production/two", "field": "spec.targetRef.name",
	}, first)
}

func TestExitCodes(t *testing.T) {
	dir := inFiles(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.txt"), []byte("a: ["), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "empty.txt"), []byte("---\n# nothing\n---\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "list.txt"), []byte("apiVersion: v1\nkind: List\nitems: []\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "operator.txt"), []byte("limit: 1"), 0o600))
	for name, tc := range map[string]struct {
		args []string
		code int
		errs string
	}{
		"nothing found":                     {[]string{"-f", `"a,b.yaml"`}, cli.ExitOK, ""},
		"something found":                   {[]string{"-f", "."}, cli.ExitFound, ""},
		"a warning":                         {[]string{"-f", "second.yaml", "--complete"}, cli.ExitFound, ""},
		"a file that is not readable":       {[]string{"-f", `"a,b.yaml"`, "-f", "broken.txt"}, cli.ExitTrouble, "1 document could not be read"},
		"a file that is not there":          {[]string{"-f", "none.yaml"}, cli.ExitTrouble, "1 document could not be read"},
		"files with commas":                 {[]string{"-f", "second.yaml,none.yaml"}, cli.ExitTrouble, "1 document could not be read"},
		"an empty file":                     {[]string{"-f", "empty.txt"}, cli.ExitTrouble, "no objects were read from empty.txt; did the command before the pipe fail?"},
		"a list of nothing":                 {[]string{"-f", "list.txt"}, cli.ExitOK, ""},
		"no file":                           {nil, cli.ExitTrouble, "nothing to validate"},
		"a file without its flag":           {[]string{"web.yaml"}, cli.ExitTrouble, "error: \"web.yaml\": name files and folders with -f\n"},
		"a format that does not exist":      {[]string{"-f", ".", "-o", "xml"}, cli.ExitTrouble, `--output "xml" is not known; it is one of github, json, sarif, text`},
		"a flag that does not exist":        {[]string{"--fast"}, cli.ExitTrouble, "--fast"},
		"a configuration with a mistake":    {[]string{"-f", ".", "--config", "operator.txt"}, cli.ExitTrouble, "operator.txt: line 1: there is no field limit here"},
		"a configuration that is not there": {[]string{"-f", ".", "--config", "none"}, cli.ExitTrouble, "no such file"},
		"a cluster that is not there":       {[]string{"-f", `"a,b.yaml"`, "--server"}, cli.ExitTrouble, "which cluster is meant"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := run(t, "", tc.args...)
			assert.Equal(t, tc.code, code)
			assert.Contains(t, errs, tc.errs)
			assert.LessOrEqual(t, strings.Count(errs, "\n"), 1, "one paragraph")
		})
	}
	_, out, errs := run(t, "", "-f", "second.yaml", "--server")
	assert.Contains(t, out, "1 object checked", "the report is there all the same")
	assert.Contains(t, errs, "which cluster is meant")
	only := []string{"-f", "-", "--complete"}
	alone := strings.ReplaceAll(profile, "endpoint: main", "endpoint: main\n  onEmpty: Zero")
	code, _, _ := run(t, alone, only...)
	assert.Equal(t, cli.ExitOK, code)
	code, _, _ = run(t, alone, append(only, "--warnings-as-errors")...)
	assert.Equal(t, cli.ExitFound, code)
}

func TestATerminalIsNotMovedByWhatIsRead(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	_, out, _ := run(t, "apiVersion: autoscale.example.com/v1alpha1\nkind: AutoScaler\nmetadata: {name: \"\\e[2Jx\\nerror: y\", namespace: a}\n\"sp\\rec\": {}\n\"li\\Lne\\u202e\": {}\n", "-f", "-")
	assert.Contains(t, out, `\x1b[2Jx\nerror: y: unknown field "li\u2028ne\u202e"`)
	assert.NotContains(t, out, "\u2028")
	assert.NotContains(t, out, "\u202e")
	assert.NotContains(t, out, "\x1b")
	assert.NotContains(t, out, "\r")
	assert.NotContains(t, out, "\nerror: y")
}

func TestATerminalIsNotMovedByTheNameOfAFile(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Chdir(t.TempDir())
	const name = "a\x1b[2J\n::error::b.yaml"
	require.NoError(t, os.WriteFile(name, []byte(autoscaler("web", "web")+"  more\u202e: \"\x9b\"\n"), 0o600))

	_, out, errs := run(t, "", "-f", ".")
	assert.Contains(t, out, `a\x1b[2J\n::error::b.yaml:1:1: error: `)
	assert.NotContains(t, out+errs, "\x1b")

	_, out, _ = run(t, "", "-f", ".", "-o", "github")
	assert.NotContains(t, out, "\n::error::b")

	_, _, errs = run(t, "", "-f", ".", "--config", "none\x1b[2J")
	assert.Contains(t, errs, `none\x1b[2J`)
}
