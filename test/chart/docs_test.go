package chart

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(data)
}

// What docs/chart.md shows is what the tests install.
func TestTheTemplatesThatThePageShowsAreThoseThatAreTried(t *testing.T) {
	page := read(t, "..", "..", "docs", "chart.md")
	for _, name := range []string{"steps.yaml", "one-step.yaml"} {
		assert.Contains(t, page, "```gotemplate\n"+read(t, "testdata", "umbrella", "templates", name)+"```\n", name)
	}
}

func TestThePageNamesTheVersionsOfHelmThatAreTried(t *testing.T) {
	page := read(t, "..", "..", "docs", "chart.md")
	for major, module := range map[string]string{"3": "helm3", "4": "helm4"} {
		version := regexp.MustCompile(`helm\.sh/helm/v` + major + ` v(` + major + `\.\d+)\.`).FindStringSubmatch(read(t, "..", "tools", module, "go.mod"))
		require.NotNil(t, version)
		assert.Contains(t, page, "Helm "+version[1])
	}
}

// The chart and the operator are released together.
func TestTheChartIsOfTheOperatorsVersion(t *testing.T) {
	chart := read(t, "..", "..", "charts", "autoscale-operator", "Chart.yaml")
	version := regexp.MustCompile(`(?m)^version: (\S+)$`).FindStringSubmatch(chart)
	application := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindStringSubmatch(chart)
	require.NotNil(t, version)
	require.NotNil(t, application)
	assert.Equal(t, "v"+version[1], application[1])
}
