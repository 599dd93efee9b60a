package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/platform/autoscale-operator/controller"
)

// catalog is what an expression may ask for.
type catalog struct {
	// labels of each metric that there is, by its name.
	labels map[string][]string
	// values that a label of our own metrics can have, where they are constants.
	values map[string][]string
}

// targetLabels are those that a scrape adds.
var targetLabels = []string{"namespace", "job", "service", "pod", "instance"}

var (
	descName   = regexp.MustCompile(`fqName: "([^"]+)"`)
	descLabels = regexp.MustCompile(`variableLabels: \{([^}]*)\}`)
	ownMetric  = regexp.MustCompile("(?m)^\\| `(autoscale_[a-z_]+)` \\|")
	reason     = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|")
	heading    = regexp.MustCompile("(?m)^## ([A-Za-z]+)$")
)

func newCatalog(t *testing.T) *catalog {
	t.Helper()
	c := &catalog{labels: map[string][]string{}}
	// Of the page, since not all of our own are the controller's.
	for _, m := range ownMetric.FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		c.labels[m[1]] = nil
	}
	require.NotEmpty(t, c.labels)
	c.describe(t, controller.NewTelemetry(nil, nil))
	library, ok := runtimemetrics.Registry.(prometheus.Collector)
	require.True(t, ok)
	c.describe(t, library)
	c.gatherAPIServer(t)

	conditions := read(t, "docs/conditions.md")
	reasons := []string{"Valid", "Answered"}
	for _, m := range reason.FindAllStringSubmatch(conditions, -1) {
		reasons = append(reasons, strings.Split(strings.Trim(m[1], "`"), "`, `")...)
	}
	types := []string{}
	for _, m := range heading.FindAllStringSubmatch(conditions, -1) {
		types = append(types, m[1])
	}
	c.values = map[string][]string{
		"reason": reasons, "type": types, "status": {"True", "False", "Unknown"}, "mode": {"Active", "Paused", "DryRun"},
	}
	return c
}

// describe adds what a collector announces.
func (c *catalog) describe(t *testing.T, from prometheus.Collector) {
	t.Helper()
	descs := make(chan *prometheus.Desc)
	go func() {
		from.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		name, names := descName.FindStringSubmatch(d.String()), descLabels.FindStringSubmatch(d.String())
		if len(name) == 2 && len(names) == 2 {
			c.labels[name[1]] = strings.FieldsFunc(names[1], func(r rune) bool { return r == ',' })
		}
	}
}

// gatherAPIServer adds the API server's counts of the webhooks that it calls, as its
// own package makes them.
func (c *catalog) gatherAPIServer(t *testing.T) {
	t.Helper()
	m := admissionmetrics.Metrics
	m.ObserveWebhookRejection(t.Context(), "a", "validating", "CREATE", admissionmetrics.WebhookRejectionCallingWebhookError, 0)
	m.ObserveWebhookFailOpen(t.Context(), "a", "validating")
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "apiserver_admission_webhook_") {
			names := []string{}
			for _, l := range f.GetMetric()[0].GetLabel() {
				names = append(names, l.GetName())
			}
			c.labels[f.GetName()] = names
		}
	}
}

// metric finds a metric by the name of one of its series.
func (c *catalog) metric(series string) (names []string, found bool) {
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok {
			if names, found = c.labels[base]; found {
				return append(slices.Clone(names), "le", "quantile"), true
			}
		}
	}
	return nil, false
}

// check holds an expression to the metrics, labels and constants that there are: one
// that is misspelled would be an alert that never comes, or a panel that stays empty.
func (c *catalog) check(t *testing.T, text, where string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	require.NoError(t, err, where)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			c.checkSelector(t, n, where)
		case *parser.AggregateExpr:
			c.checkGrouping(t, n, where)
		}
		return nil
	})
}

func (c *catalog) checkSelector(t *testing.T, s *parser.VectorSelector, where string) {
	t.Helper()
	names, found := c.metric(s.Name)
	if !assert.True(t, found, "%s: there is no metric %s", where, s.Name) {
		return
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		assert.Contains(t, append(targetLabels, names...), m.Name, "%s: a label of %s", where, s.Name)
		if known := c.values[m.Name]; known != nil && strings.HasPrefix(s.Name, "autoscale_") {
			for value := range strings.SplitSeq(m.Value, "|") {
				assert.Contains(t, known, value, "%s: a %s of %s", where, m.Name, s.Name)
			}
		}
	}
}

// checkGrouping: what a sum is grouped by must be a label of what is summed.
func (c *catalog) checkGrouping(t *testing.T, a *parser.AggregateExpr, where string) {
	t.Helper()
	if a.Without {
		return
	}
	for _, selectors := range parser.ExtractSelectors(a.Expr) {
		for _, m := range selectors {
			if m.Name != model.MetricNameLabel {
				continue
			}
			names, _ := c.metric(m.Value)
			for _, by := range a.Grouping {
				assert.Contains(t, append(targetLabels, names...), by, "%s: %s is grouped by it", where, m.Value)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(root + path)
	require.NoError(t, err)
	return string(text)
}
