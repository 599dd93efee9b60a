package manifests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheCorpusLoads(t *testing.T) {
	cases, err := Load()
	require.NoError(t, err)

	valid := map[bool]int{}
	for _, c := range cases {
		valid[c.Valid]++
		assert.Regexp(t, `^(in)?valid/[a-z0-9]+(-[a-z0-9]+)+$`, c.Name, "a name reads as a sentence")
		assert.NotEmpty(t, c.Object.Object.GetKind(), c.Name)
	}
	assert.Positive(t, valid[true])
	assert.Positive(t, valid[false])
}

func TestACaseSaysWhatItIsGivenAndWhatItExpects(t *testing.T) {
	c, err := parse("invalid", "a-case", []byte(strings.Join([]string{
		"# Prose: with a colon, and # given: not at the beginning.",
		"# given: deployment, profile",
		"# as: operator",
		"# expect: spec.a[0].b: Invalid value: …: too long",
		"# expect: spec.c: Required value",
		"kind: First",
		"apiVersion: v1",
		"---",
		"# expect: this is no leading comment",
		"kind: Second",
		"apiVersion: v1",
		"",
	}, "\n")))

	require.NoError(t, err)
	assert.Equal(t, "invalid/a-case", c.Name)
	assert.False(t, c.Valid)
	assert.True(t, c.AsOperator)
	assert.Equal(t, []Cause{{"spec.a[0].b", "Invalid value: …: too long"}, {"spec.c", "Required value"}}, c.Causes)
	require.Len(t, c.Given, 3)
	assert.Equal(t, "Deployment", c.Given[0].Object.GetKind())
	assert.Equal(t, "MetricProfile", c.Given[1].Object.GetKind())
	assert.Equal(t, "First", c.Given[2].Object.GetKind())
	assert.Equal(t, "Second", c.Object.Object.GetKind())
	assert.Contains(t, string(c.Object.Raw), "this is no leading comment")
}

func TestACaseThatCouldNotFailIsRefused(t *testing.T) {
	const object = "kind: K\napiVersion: v1\n"
	for name, tc := range map[string]struct{ folder, content, want string }{
		"an invalid one that expects nothing":  {"invalid", object, "expects nothing"},
		"a valid one that expects a refusal":   {"valid", "# expect: spec: Required value\n" + object, "expects a refusal"},
		"an invalid one that expects warnings": {"invalid", "# expect: spec: x\n# warn: y\n" + object, "expects a warning"},
		"causes, and none":                     {"invalid", "# expect: spec: x\n# refused: y\n" + object, "without causes"},
		"a misspelled directive":               {"valid", "# warns: y\n" + object, "is no directive"},
		"a directive that says nothing":        {"valid", "# warn:\n" + object, "says nothing"},
		"a cause without a message":            {"invalid", "# expect: spec\n" + object, "field: message"},
		"another sender":                       {"valid", "# as: somebody\n" + object, "only the operator"},
		"a given file that is not there":       {"valid", "# given: deploymint\n" + object, "deploymint"},
		"no object":                            {"valid", "# Nothing.\n", "has no object"},
		"an object without a kind":             {"valid", "apiVersion: v1\n", "no apiVersion or kind"},
		"what is no YAML":                      {"valid", "kind: [\n", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.folder, "a-case", []byte(tc.content))
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestATextMatchesAsAWhole(t *testing.T) {
	assert.True(t, Text("a (b) is too long").Matches("a (b) is too long"))
	assert.True(t, Text("…: must be …").Matches("x\ny: must be 1"))
	assert.True(t, Text("a…b").Matches("ab"))
	assert.False(t, Text("a").Matches("ab"))
	assert.False(t, Text("b").Matches("ab"))
	assert.False(t, Text("a.b").Matches("axb"))
}
