//go:build integration

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

func promtool(t *testing.T) string {
	t.Helper()
	tools, err := binaries.Build(t.Context(), os.Stderr, binaries.Promtool)
	require.NoError(t, err)
	return tools.Path(binaries.Promtool)
}

// Prometheus' own tool reads the rules and plays series against them.
func TestPromtoolAcceptsTheAlertsAndTheirTests(t *testing.T) {
	tool := promtool(t)
	t.Run("the rules", func(t *testing.T) {
		said, err := exec.CommandContext(t.Context(), tool, "check", "rules", "--lint=all", "--lint-fatal", root+rulesFile).CombinedOutput()
		assert.NoError(t, err, string(said))
	})

	tests, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	for _, file := range tests {
		t.Run(filepath.Base(file), func(t *testing.T) {
			said, err := exec.CommandContext(t.Context(), tool, "test", "rules", "--diff", file).CombinedOutput()
			assert.NoError(t, err, string(said))
		})
	}
}
