package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

func TestTheChartIsAsItWouldBeGeneratedNow(t *testing.T) {
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	for _, g := range []generator{crds, rules, webhooks, guard, values} {
		files, err := g(root)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for name, content := range files {
			stored, err := os.ReadFile(filepath.Join(root, chart, name))
			require.NoError(t, err)
			assert.Equal(t, string(content), string(stored), "%s: make generate", name)
		}
	}
}

func TestBracesOfADescriptionAreText(t *testing.T) {
	const text = "for example {{ .Release.Name }} and {}"
	var out strings.Builder

	tmpl, err := template.New("").Parse(escape(text))

	require.NoError(t, err)
	require.NoError(t, tmpl.Execute(&out, nil))
	assert.Equal(t, text, out.String())
}

func TestACRDOfAnotherFormIsNotedAtOnce(t *testing.T) {
	_, err := crd("kind: CustomResourceDefinition\nmetadata:\n  name: a\n")
	assert.ErrorContains(t, err, "annotations")
}

func TestAManifestThatHasChangedIsLookedAtAgain(t *testing.T) {
	text, err := substitute("a b a", []substitution{{"a", "c", 2}})
	require.NoError(t, err)
	assert.Equal(t, "c b c", text)

	_, err = substitute("a b", []substitution{{"a", "c", 2}})
	assert.ErrorContains(t, err, `"a" is there 1 times, not 2`)
}

func TestRightsThatNobodyHasThoughtOfAreNotGranted(t *testing.T) {
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"of an unknown kind":   {rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get"}}, "jobs.batch: test/chart/generate does not know"},
		"of every verb":        {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}}, "a wildcard"},
		"of every resource":    {rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"get"}}, "a wildcard"},
		"of every group":       {rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}, "a wildcard"},
		"on what is no object": {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}, "only resources are understood"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rightsOf("ClusterRole", tc.rule)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestRightsGoWhereTheyAreNeeded(t *testing.T) {
	for _, tc := range []struct {
		kind, group, resource, verb string
		want                        need
	}{
		{"ClusterRole", "autoscale.example.com", "metricprofiles", "watch", need{scope: cluster}},
		{"ClusterRole", "autoscale.example.com", "autoscalers", "watch", need{scope: namespaced}},
		{"ClusterRole", "admissionregistration.k8s.io", "validatingwebhookconfigurations", "list", need{scope: cluster}},
		{"ClusterRole", "authentication.k8s.io", "tokenreviews", "create", need{cluster, whenSecure}},
		{"Role", "coordination.k8s.io", "leases", "get", need{scope: own}},
	} {
		rights, err := rightsOf(tc.kind, rbacv1.PolicyRule{APIGroups: []string{tc.group}, Resources: []string{tc.resource}, Verbs: []string{tc.verb}})
		require.NoError(t, err)
		require.Len(t, rights, 1)
		assert.Equal(t, tc.want, rights[0].need, tc.resource)
	}
	for _, tc := range []struct{ kind, group, resource, verb, why string }{
		{"ClusterRole", "keda.sh", "scaledobjects", "watch", "config.managers says whether that is needed"},
		{"ClusterRole", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "update", "certificates.mode says"},
		{"Role", "", "secrets", "get", "certificates.mode says"},
	} {
		rights, err := rightsOf(tc.kind, rbacv1.PolicyRule{APIGroups: []string{tc.group}, Resources: []string{tc.resource}, Verbs: []string{tc.verb}})
		require.NoError(t, err)
		assert.Empty(t, rights, tc.why)
	}
}

const someValues = `# How many.
count: 1

group:
  # What it is
  # called.
  name: ""
  list:
    # An example.
    - key: value

# Free.
free:
  a: 1
  b:
    c: 2
# A group.
explained:
  # One.
  one: true
`

func TestKeysAndTheirMeanings(t *testing.T) {
	var got []string
	for _, key := range readKeys(someValues) {
		got = append(got, key.String()+": "+key.meaning)
	}
	assert.Equal(t, []string{
		"count: How many.", "group: ", "group.name: What it is called.", "group.list: ",
		"free: Free.", "explained: A group.", "explained.one: One.",
	}, got)
}

func TestATableNeedsEveryMeaning(t *testing.T) {
	_, err := makeTable([]byte(someValues), readKeys(someValues))
	assert.ErrorContains(t, err, "does not say what group.list is")

	text := strings.Replace(someValues, "  list:", "  # A | B.\n  list:", 1)
	table, err := makeTable([]byte(text), readKeys(text))
	require.NoError(t, err)
	assert.Equal(t, "| value | default | meaning |\n|---|---|---|\n"+
		"| `count` | `1` | How many. |\n"+
		"| `group.name` | none | What it is called. |\n"+
		"| `group.list` | `[{\"key\":\"value\"}]` | A \\| B. |\n"+
		"| `free` | `{\"a\":1,\"b\":{\"c\":2}}` | Free. |\n"+
		"| **`explained`** | | A group. |\n"+
		"| `explained.one` | `true` | One. |\n", table)
}

func TestASchemaNeedsEveryKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schema.yaml")
	require.NoError(t, os.WriteFile(path, []byte("type: object\nproperties:\n  a: {type: object, properties: {b: {$ref: '#/definitions/c'}}}\n"), 0o600))

	schema, err := makeSchema(path, []value{{path: []string{"a"}}, {path: []string{"a", "b"}, meaning: "B."}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"type": "object", "additionalProperties": false, "properties": {"a": {"type": "object",
		"additionalProperties": false, "properties": {"b": {"description": "B.", "allOf": [{"$ref": "#/definitions/c"}]}}}}}`, string(schema))

	_, err = makeSchema(path, []value{{path: []string{"a", "d"}}})
	assert.ErrorContains(t, err, "lacks a.d of values.yaml")
}
