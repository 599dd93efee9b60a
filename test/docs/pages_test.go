package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/docs/script"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// pages are those whose fenced blocks test/docs and test/dryrun hold true.
var pages = []string{
	"ci-dry-run", "disaster-recovery", "gitops", "handover-hpa", "handover-keda", "install",
	"manual-takeover", "rbac", "rollout", "security", "upgrade",
}

func page(name string) string { return filepath.Join(root, "docs", name+".md") }

func blocks(t *testing.T, name string) []script.Block {
	t.Helper()
	all, err := script.Read(page(name))
	require.NoError(t, err)
	return all
}

func TestABlockOfAPageIsOfAKindThatIsChecked(t *testing.T) {
	known := map[string][]string{
		script.Shell: {script.Refused, script.Elsewhere}, script.YAML: {script.Given}, script.Text: nil, "promql": nil,
	}
	for _, name := range pages {
		for _, b := range blocks(t, name) {
			flags, ok := known[b.Language]
			assert.True(t, ok, "%s:%d: %q", name, b.Line, b.Language)
			assert.Subset(t, flags, b.Flags, "%s:%d", name, b.Line)
			if b.Language == script.YAML {
				assert.NotEmpty(t, b.File(), "%s:%d: it begins with the name of a file", name, b.Line)
				for document := range strings.SplitSeq(b.Text, "\n---\n") {
					assert.NoError(t, yaml.UnmarshalStrict([]byte(document), &map[string]any{}), "%s:%d", name, b.Line)
				}
			}
		}
	}
}

var (
	metric   = regexp.MustCompile("(?m)^\\| `(autoscale_[a-z_]+)` \\|")
	fallback = regexp.MustCompile(`^(http_requests_total)$`)
)

func TestExpressionsArePromQLOverMetricsThatAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page("metrics"))
	require.NoError(t, err)
	known := map[string]bool{}
	for _, m := range metric.FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = true
	}
	require.NotEmpty(t, known)
	asked, n := parser.NewParser(parser.Options{}), 0
	for _, name := range pages {
		for _, b := range blocks(t, name) {
			if b.Language != "promql" {
				continue
			}
			n++
			expression, err := asked.ParseExpr(b.Text)
			if !assert.NoError(t, err, "%s:%d", name, b.Line) {
				continue
			}
			for _, selectors := range parser.ExtractSelectors(expression) {
				for _, m := range selectors {
					if m.Name == "__name__" {
						of := strings.TrimSuffix(m.Value, "_bucket")
						assert.True(t, known[of] || fallback.MatchString(of), "%s:%d: %s is not in metrics.md", name, b.Line, m.Value)
					}
				}
			}
		}
	}
	assert.Greater(t, n, 20)
}

// permissions are resource → verbs, each as a rule has it.
type permissions map[string]string

func TestThePermissionsOfTheAccountAreDocumented(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	require.NoError(t, err)
	granted := permissions{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role struct {
			Rules []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &role))
		for _, r := range role.Rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					granted.add(group, resource, strings.Join(r.Verbs, ", "))
				}
			}
		}
	}
	text, err := os.ReadFile(page("rbac"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "<!-- compared with config/rbac/role.yaml by test/docs -->\n")
	require.True(t, found)
	table, _, found = strings.Cut(table, "<!-- end -->")
	require.True(t, found)
	documented := permissions{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 6, line)
		for group := range strings.SplitSeq(cells[1], ",") {
			for _, resource := range code.FindAllString(cells[2], -1) {
				documented.add(strings.ReplaceAll(strings.Trim(group, " `"), "core", ""), strings.Trim(resource, "`"), strings.TrimSpace(cells[3]))
			}
		}
	}
	assert.Equal(t, granted, documented)
}

func (p permissions) add(group, resource, verbs string) {
	key := group + "/" + resource
	if p[key] != "" {
		verbs = p[key] + "; " + verbs
	}
	p[key] = verbs
}

func TestNoPermissionIsWide(t *testing.T) {
	manifest, err := os.ReadFile(filepath.Join(root, "config", "rbac", "role.yaml"))
	require.NoError(t, err)
	for _, never := range []string{"'*'", `"*"`, "- secrets\n", "- pods\n", "- impersonate\n", "- escalate\n", "- bind\n"} {
		assert.NotContains(t, string(manifest), never)
	}
}

// TestTheRuleOfPhaseThreeSaysWhatThePageSays holds rollout.md's platform rule to its words.
func TestTheRuleOfPhaseThreeSaysWhatThePageSays(t *testing.T) {
	var values struct {
		Config struct {
			Rules []rules.Config `yaml:"rules"`
		} `yaml:"config"`
	}
	for _, b := range blocks(t, "rollout") {
		if b.File() == "values-phase-3.yaml" {
			require.NoError(t, goyaml.Unmarshal([]byte(b.Text), &values))
		}
	}
	set, err := rules.New(values.Config.Rules, v1alpha1.Defaults{})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		label   string
		change  func(*v1alpha1.AutoScaler)
		allowed bool
	}{
		"a dry run anywhere":               {"", func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }, true},
		"a chosen namespace":               {"phase-3", func(*v1alpha1.AutoScaler) {}, true},
		"another namespace":                {"", func(*v1alpha1.AutoScaler) {}, false},
		"more than 20 replicas":            {"phase-3", func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 21 }, false},
		"a scale-down without a step":      {"phase-3", func(a *v1alpha1.AutoScaler) { a.Spec.Behavior.ScaleDownMaxStep = nil }, false},
		"more than 20, but only as a hint": {"", func(a *v1alpha1.AutoScaler) { a.Spec.DryRun, a.Spec.MaxReplicas = true, 300 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := builders.MakeAutoScaler("production", "order-service").Bounds(2, 20).Metric("load", "total", "100").Steps(4, 1).Obj()
			tc.change(a)
			errs, warnings := set.Check(t.Context(), rules.Input{
				Object: a, Namespace: &rules.Namespace{Name: "production", Labels: map[string]string{"example.com/autoscaling": tc.label}},
				Request: rules.Request{Operation: "CREATE"},
			})
			assert.Empty(t, warnings)
			assert.Equal(t, tc.allowed, len(errs) == 0, errs)
		})
	}
}
