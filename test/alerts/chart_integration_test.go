//go:build integration

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// object is what of the chart's objects is looked at here.
type object struct {
	Kind string            `json:"kind"`
	Data map[string]string `json:"data"`
	Spec struct {
		Groups    []any `json:"groups"`
		Endpoints []struct {
			HonorLabels bool `json:"honorLabels"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// rendered are the chart's objects of a kind, with the values that docs/monitoring.md
// shows.
func rendered(t *testing.T, kind string) []object {
	t.Helper()
	tools, err := binaries.Build(t.Context(), os.Stderr, binaries.Helm4)
	require.NoError(t, err)
	values := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, monitoringPage))
	require.Len(t, values, 2)
	helm := exec.CommandContext(t.Context(), tools.Path(binaries.Helm4), "template", "autoscale-operator", root+"charts/autoscale-operator", "--values=-")
	helm.Stdin, helm.Stderr = strings.NewReader(values[1]), os.Stderr
	text, err := helm.Output()
	require.NoError(t, err)
	var found []object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o object
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	return found
}

func TestTheChartBringsTheAlertsAndTheDashboard(t *testing.T) {
	t.Run("a ServiceMonitor leaves the operator's labels alone", func(t *testing.T) {
		monitors := rendered(t, "ServiceMonitor")
		require.Len(t, monitors, 1)
		require.Len(t, monitors[0].Spec.Endpoints, 1)
		assert.True(t, monitors[0].Spec.Endpoints[0].HonorLabels)
	})

	t.Run("a PrometheusRule has all alerts, with the runbooks' address", func(t *testing.T) {
		rules := rendered(t, "PrometheusRule")
		require.Len(t, rules, 1)
		text, err := yaml.Marshal(map[string]any{"groups": rules[0].Spec.Groups})
		require.NoError(t, err)
		want := strings.ReplaceAll(read(t, rulesFile), runbookURL, "https://git.example.com/platform/autoscale-operator/docs/runbooks/")
		assert.YAMLEq(t, want, string(text))

		file := filepath.Join(t.TempDir(), "rules.yaml")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		said, err := exec.CommandContext(t.Context(), promtool(t), "check", "rules", file).CombinedOutput()
		assert.NoError(t, err, string(said))
	})

	t.Run("a ConfigMap has the dashboard as it is", func(t *testing.T) {
		var boards []string
		for _, c := range rendered(t, "ConfigMap") {
			if board, ok := c.Data["autoscale-operator.json"]; ok {
				boards = append(boards, board)
			}
		}
		require.Len(t, boards, 1)
		assert.JSONEq(t, read(t, dashboardFile), boards[0])
	})
}
