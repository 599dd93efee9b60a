package binding

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDefaultManagersCompile(t *testing.T) {
	programs, err := compileManagers(DefaultManagers())
	require.NoError(t, err)
	assert.Len(t, programs, 2)
}

func TestABadManagerStopsTheStartAndSaysWhere(t *testing.T) {
	good := ManagerConfig{Group: "example.com", Version: "v1", Resource: "scalers", Kind: "Scaler", Targets: `[object.spec.ref]`}
	with := func(change func(*ManagerConfig)) []ManagerConfig {
		bad := good
		bad.Resource = "others"
		change(&bad)
		return []ManagerConfig{good, bad}
	}
	for name, tc := range map[string]struct {
		configs []ManagerConfig
		want    []string
	}{
		"nothing but a group": {
			[]ManagerConfig{{Group: "example.com"}},
			[]string{"managers[0].version: Required", "managers[0].resource: Required", "the plural name", "managers[0].kind: Required", "managers[0].targets: Invalid value: the expression is empty"},
		},
		"no group":                 {with(func(c *ManagerConfig) { c.Group = "" }), []string{"managers[1].group: Required"}},
		"a group with a slash":     {with(func(c *ManagerConfig) { c.Group = "example.com/v1" }), []string{`managers[1].group: Invalid value: "example.com/v1"`}},
		"a version with a group":   {with(func(c *ManagerConfig) { c.Version = "example.com/v1" }), []string{"managers[1].version: Invalid"}},
		"a kind as the resource":   {with(func(c *ManagerConfig) { c.Resource = "Scaler" }), []string{`managers[1].resource: Invalid value: "Scaler"`}},
		"a resource as the kind":   {with(func(c *ManagerConfig) { c.Kind = "scalers" }), []string{"managers[1].kind: Invalid", "upper-case"}},
		"a kind with a line break": {with(func(c *ManagerConfig) { c.Kind = "Scaler\n" }), []string{"managers[1].kind: Invalid"}},
		"an entry twice":           {with(func(c *ManagerConfig) { c.Resource, c.Version = good.Resource, "v2" }), []string{`managers[1].resource: Duplicate value: "scalers.example.com"`}},
		"a syntax error":           {with(func(c *ManagerConfig) { c.Targets = "[object.spec." }), []string{"managers[1].targets: Invalid value: at 1:14: Syntax error"}},
		"an unknown variable":      {with(func(c *ManagerConfig) { c.Targets = "[object.spec,\n  objekt.spec]" }), []string{"managers[1].targets", "at 2:3", "objekt"}},
		"an expression of a bool":  {with(func(c *ManagerConfig) { c.Targets = "object.spec == 1" }), []string{"managers[1].targets", "must give a list, but it gives a bool"}},
		"one without the object":   {with(func(c *ManagerConfig) { c.Targets = `[{"kind": "Deployment", "name": "web"}]` }), []string{"managers[1].targets", `from the variable "object"`}},
		"AutoScalers":              {with(func(c *ManagerConfig) { c.Group = "autoscale.example.com" }), []string{"managers[1].group: Forbidden", "remove the entry"}},
		"HPAs": {
			with(func(c *ManagerConfig) { c.Group, c.Resource = "autoscaling", "horizontalpodautoscalers" }),
			[]string{"managers[1].resource: Forbidden", "always looked for"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewManagers(ManagersOptions{Registered: tc.configs})
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "managers[2]")
		})
	}
}

func TestAllThatIsWrongWithManagersIsToldAtOnce(t *testing.T) {
	_, err := NewManagers(ManagersOptions{Registered: []ManagerConfig{{}, {Group: "example.com", Version: "v1", Resource: "scalers", Kind: "Scaler", Targets: "1"}}})
	require.Error(t, err)
	assert.ErrorContains(t, err, "managers[0].group")
	assert.ErrorContains(t, err, "managers[1].targets")
}
