package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/webhook/rules"
)

func readRules(t *testing.T, content string) (Rules, error) {
	t.Helper()
	var c struct {
		Rules Rules `yaml:"rules"`
	}
	err := yaml.UnmarshalStrict([]byte(content), &c)
	return c.Rules, err
}

func TestRulesAreReadInOrder(t *testing.T) {
	c, err := readRules(t, `
rules:
  - name: large
    action: Deny
    expression: object.spec.maxReplicas <= 100
    message: at most 100
    message_expression: "'not ' + string(object.spec.maxReplicas)"
    field: spec.maxReplicas
  - name: crowd
    action: Warn
    expression: others.size() < 50
    message: this namespace is crowded
`)
	require.NoError(t, err)
	assert.Equal(t, Rules{
		{Name: "large", Action: rules.Deny, Expression: "object.spec.maxReplicas <= 100", Message: "at most 100",
			MessageExpression: "'not ' + string(object.spec.maxReplicas)", Field: "spec.maxReplicas"},
		{Name: "crowd", Action: rules.Warn, Expression: "others.size() < 50", Message: "this namespace is crowded"},
	}, c)
	set, err := c.Compile(v1alpha1.Defaults{})
	require.NoError(t, err)
	assert.True(t, set.Uses(rules.VariableOthers))
	assert.False(t, set.Uses(rules.VariableNamespace))
}

func TestNoRulesAreNoMistake(t *testing.T) {
	for _, content := range []string{"", "rules:", "rules: []"} {
		c, err := readRules(t, content)
		require.NoError(t, err, content)
		_, err = c.Compile(v1alpha1.Defaults{})
		assert.NoError(t, err, content)
	}
}

func TestABadRuleSaysWhereAndWhat(t *testing.T) {
	_, err := readRules(t, "rules: [{name: a, messageExpression: x}]")
	assert.ErrorContains(t, err, "messageExpression")
	c, err := readRules(t, "rules: [{name: a, action: Deny, message: m, expression: 'object.spec.maxReplicas <= limit'}]")
	require.NoError(t, err)
	_, err = c.Compile(v1alpha1.Defaults{})
	require.Error(t, err)
	for _, want := range []string{`rules[0] "a": expression: at 1:28`, "undeclared reference to 'limit'", "^"} {
		assert.ErrorContains(t, err, want)
	}
}
