package controller

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/certs"
)

func metricsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	return string(text)
}

var (
	descName   = regexp.MustCompile(`fqName: "([^"]+)"`)
	descLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
	// row is a metric's: its name, and the labels that its columns name.
	row = regexp.MustCompile("(?m)^\\| `(autoscale_[a-z_]+)` \\|([^|\n]*)\\|(.*)$")
)

// exported are the metrics that are registered, with their labels in order.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	descs := make(chan *prometheus.Desc, 100)
	NewTelemetry(nil, nil).Describe(descs)
	certs.NewServing(nil, nil).Describe(descs)
	close(descs)
	all := map[string][]string{}
	for d := range descs {
		name, labels := descName.FindStringSubmatch(d.String()), descLabels.FindStringSubmatch(d.String())
		require.Len(t, name, 2, d)
		require.Len(t, labels, 2, d)
		sorted := strings.FieldsFunc(labels[1], func(r rune) bool { return r == ',' })
		slices.Sort(sorted)
		all[name[1]] = sorted
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

// documented are the metrics of the page's tables, with their labels in order.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for section := range strings.SplitSeq(metricsPage(t), "\n## ") {
		for _, r := range row.FindAllStringSubmatch(section, -1) {
			labels := []string{}
			column := r[2]
			if strings.HasPrefix(section, "Each AutoScaler\n") {
				labels = append(labels, "namespace", "autoscaler")
			} else {
				column, _, _ = strings.Cut(r[3], "|")
			}
			for _, l := range quoted.FindAllStringSubmatch(column, -1) {
				labels = append(labels, l[1])
			}
			slices.Sort(labels)
			all[r[1]] = labels
		}
	}
	return all
}

func TestEveryMetricIsDocumentedWithItsLabels(t *testing.T) {
	all := exported(t)
	require.Len(t, all, 28)
	assert.Equal(t, all, documented(t))
	for name := range all {
		assert.True(t, strings.HasPrefix(name, "autoscale_"), name)
	}
}

func TestEveryDocumentedQuestionIsPromQLOverMetricsThatExist(t *testing.T) {
	all := exported(t)
	_, questions, found := strings.Cut(metricsPage(t), "\n## Questions\n")
	require.True(t, found)
	questions, _, _ = strings.Cut(questions, "\n## ")
	expressions := quoted.FindAllStringSubmatch(questions, -1)
	require.Greater(t, len(expressions), 20)
	asked := parser.NewParser(parser.Options{})
	for _, e := range expressions {
		text := strings.ReplaceAll(e[1], `\|`, "|") // a table's cell
		expr, err := asked.ParseExpr(text)
		if !strings.Contains(text, "autoscale_") {
			require.NoError(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		for _, selectors := range parser.ExtractSelectors(expr) {
			for _, m := range selectors {
				name := strings.TrimSuffix(m.Value, "_bucket")
				if m.Name != "__name__" || !strings.HasPrefix(name, "autoscale_") {
					continue
				}
				assert.Contains(t, all, name, text)
			}
		}
	}
}
