package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/test/manifests"
)

// corpusConfig is that of the operator behind which test/corpus applies the same files to
// an API server.
const corpusConfig = "limits: {max_replicas: 1000}\nendpoints:\n- name: main\n  url: http://127.0.0.1:1\n"

// run runs the command and gives its exit code and outputs.
func run(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr}
	root := &cobra.Command{Use: "kubectl-autoscaler", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(Command(streams))
	code = cli.Execute(t.Context(), root, streams, append([]string{"validate"}, args...))
	return code, stdout.String(), stderr.String()
}

// reported runs the command with -o json.
func reported(t *testing.T, in string, args ...string) (int, jsonReport) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	code, out, errs := run(t, in, append(args, "-o", "json")...)
	var report jsonReport
	require.NoError(t, json.Unmarshal([]byte(out), &report), "%s%s", out, errs)
	return code, report
}

// onlyACluster are the cases whose answer depends on more than what is applied, and why.
var onlyACluster = map[string]string{
	"invalid/a-binding-that-a-person-makes": "who asks is the API server's to know, and whether the guard is installed; here it is a warning",
}

// otherWords are refused here in other words than the API server's, and why.
var otherWords = map[string]string{
	"invalid/another-version-of-the-api": "the API server says that the URL does not exist",
}

// ofTheCluster begin warnings that come from what is stored, and why.
var ofTheCluster = map[string]string{
	`spec.targetRef.name: spec.replicas of Deployment "web" was last set by `: "managedFields are the API server's; here the Deployment's own manifest is warned of",
}

func TestTheCorpusIsAnsweredAsByTheAPIServer(t *testing.T) {
	cases, err := manifests.Load()
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(corpusConfig), 0o600))
	met := map[string]bool{}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			code, findings := answer(t, &c, config)
			switch {
			case onlyACluster[c.Name] != "":
				met[c.Name] = true
				assert.Equal(t, cli.ExitOK, code)
				assert.NotEmpty(t, findings, "it is said all the same")
			case otherWords[c.Name] != "":
				met[c.Name] = true
				assert.Equal(t, cli.ExitFound, code)
			case c.Valid:
				assert.Equal(t, cli.ExitOK, code)
				assert.Empty(t, differences(wantedWarnings(&c, met), said(findings, LevelWarning)))
				assert.Empty(t, said(findings, LevelError))
			default:
				assert.Equal(t, cli.ExitFound, code)
				assert.Empty(t, differences(wantedCauses(&c), refusal(&c, findings)))
			}
			for _, note := range said(findings, LevelNote) {
				assert.Contains(t, note, errUnchecked.Error(), "with all given, nothing else is left open")
			}
		})
	}
	for _, list := range []map[string]string{onlyACluster, otherWords, ofTheCluster} {
		for name := range list {
			assert.True(t, met[name], "no longer a case: %s", name)
		}
	}
}

// answer gives what is found of the case's object, beside what it is given.
func answer(t *testing.T, c *manifests.Case, config string) (int, []jsonFinding) {
	t.Helper()
	var in strings.Builder
	for _, d := range c.Given {
		fmt.Fprintf(&in, "---\n%s\n", d.Raw)
	}
	begins := strings.Count(in.String(), "\n") + 1
	fmt.Fprintf(&in, "---\n%s", c.Object.Raw)
	code, report := reported(t, in.String(), "-f", "-", "--complete", "--config", config)
	all := slices.DeleteFunc(report.Findings, func(f jsonFinding) bool {
		operators := c.AsOperator && f.Rule == RuleSet
		return f.Line < begins || operators
	})
	for i := range all {
		all[i].Line -= begins
	}
	return code, all
}

// said gives the texts of a level.
func said(findings []jsonFinding, level Level) []string {
	var texts []string
	for _, f := range findings {
		if f.Level == level {
			texts = append(texts, (&Finding{Field: f.Field, Message: f.Message}).Text())
		}
	}
	return texts
}

// refusal gives the errors as the API server words them: strict decoding tells all it
// finds in one message.
func refusal(c *manifests.Case, findings []jsonFinding) []string {
	errs := said(findings, LevelError)
	if c.Refused == "" {
		return errs
	}
	var strict []string
	for _, f := range findings {
		if strings.HasPrefix(f.Message, "key ") {
			strict = append(strict, fmt.Sprintf("yaml: unmarshal errors:\n  line %d: %s", f.Line, f.Message))
		} else if f.Rule == RuleFields {
			strict = append(strict, f.Message)
		}
	}
	slices.Sort(strict) // here they come by line
	kind := c.Object.Object.GetKind()
	return []string{fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s", kind, "v1alpha1", kind, strings.Join(strict, ", "))}
}

func wantedCauses(c *manifests.Case) []manifests.Text {
	if c.Refused != "" {
		return []manifests.Text{c.Refused}
	}
	var all []manifests.Text
	for _, cause := range c.Causes {
		text := (&Finding{Field: strings.TrimPrefix(cause.Field, "<nil>"), Message: string(cause.Message)}).Text()
		all = append(all, manifests.Text(text))
	}
	return all
}

func wantedWarnings(c *manifests.Case, met map[string]bool) []manifests.Text {
	var all []manifests.Text
	for _, w := range c.Warnings {
		clusters := false
		for prefix := range ofTheCluster {
			if strings.HasPrefix(string(w), prefix) {
				clusters, met[prefix] = true, true
			}
		}
		if !clusters {
			all = append(all, w)
		}
	}
	return all
}

// differences between what is wanted, in any order, and what is said.
func differences(wanted []manifests.Text, said []string) []string {
	var all []string
	left := slices.Clone(wanted)
	for _, text := range said {
		i := slices.IndexFunc(left, func(w manifests.Text) bool { return w.Matches(text) })
		if i < 0 {
			all = append(all, "not expected: "+text)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, w := range left {
		all = append(all, "expected and not said: "+string(w))
	}
	return all
}
