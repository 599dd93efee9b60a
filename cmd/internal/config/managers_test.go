package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/binding"
)

const anEndpoint = "endpoints: [{name: main, url: 'http://prometheus:9090'}]\n"

func TestReplicaManagersOfTheConfiguration(t *testing.T) {
	own := []binding.ManagerConfig{{Group: "example.com", Version: "v1", Resource: "scalers", Kind: "Scaler", Targets: "[object.spec.target]"}}
	for name, tc := range map[string]struct {
		section string
		want    []binding.ManagerConfig
	}{
		"nothing said: the built-in list":                {"", binding.DefaultManagers()},
		"a section without a value: the built-in list":   {"managers:", binding.DefaultManagers()},
		"an empty list turns the built-in list off":      {"managers: []", []binding.ManagerConfig{}},
		"a list stands in the place of the built-in one": {"managers: [{group: example.com, version: v1, resource: scalers, kind: Scaler, targets: '[object.spec.target]'}]", own},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, anEndpoint+tc.section)
			require.NoError(t, err)
			assert.Equal(t, tc.want, c.Managers.Registered())
		})
	}
}

func TestAMisspelledReplicaManagerIsRefused(t *testing.T) {
	for _, tc := range []struct{ section, want string }{
		{"managers: [{groups: example.com}]", "line 2: there is no field groups here"},
		{"managers: [{group: a, group: b}]", "line 2: group is there twice"},
		{"managers: {group: example.com}", "line 2: a field with others below it is not a list"},
		{"managers: [{targets: [a]}]", "line 2: a list is not a text"},
		{"manager: []", "line 2: there is no field manager here"},
	} {
		_, err := load(t, anEndpoint+tc.section)
		assert.ErrorContains(t, err, tc.want, tc.section)
	}
}

// The guard refuses what the operator would call a conflict, so both must name the
// same kinds with the same expressions.
func TestTheGuardKnowsTheSameReplicaManagers(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "guard", "values.yaml"))
	require.NoError(t, err)
	var values struct {
		Managers Managers `yaml:"managers"`
	}
	require.NoError(t, yaml.Unmarshal(data, &values))
	assert.Equal(t, joined(binding.DefaultManagers()), joined(values.Managers))
}

func joined(managers []binding.ManagerConfig) []binding.ManagerConfig {
	managers = slices.Clone(managers)
	for i := range managers {
		managers[i].Targets = strings.Join(strings.Fields(managers[i].Targets), " ")
	}
	return managers
}
