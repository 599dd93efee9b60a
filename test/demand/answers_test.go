//go:build integration

package demand

import (
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

func TestQueryThatPrometheusCannotAnswerSaysWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.exports(`orders{namespace=$namespace,deployment="web",zone="a"} 1
orders{namespace=$namespace,deployment="web",zone="b"} 2`)
	s.until(t, s.measure(t, `sum(orders{namespace=$namespace})`), valued(3))
	for name, c := range map[string]struct{ template, reason, says string }{
		"that is no PromQL": {
			`sum(orders{namespace=$namespace}`, prometheus.ReasonQueryRejected, "unclosed left parenthesis",
		},
		"with many-to-many matching": {
			`sum by (namespace) (orders{namespace=$namespace}) * on (namespace) orders{namespace=$namespace}`,
			prometheus.ReasonQueryRejected, "found duplicate series for the match group",
		},
		"with more samples than the server allows": {
			`count_over_time(vector(time())[1h:1ms])`, prometheus.ReasonQueryRejected, "too many samples",
		},
		"that takes longer than the server allows": {
			// Half a day of seconds, and hundreds of additions for each.
			`count_over_time((vector(time())` + strings.Repeat(`+vector(1)`, 390) + `)[12h:1s])`,
			prometheus.ReasonTimeout, "the server gave up",
		},
		"FC-4 of two series": {
			`orders{namespace=$namespace}`, prometheus.ReasonMultipleSeries, "2 series",
		},
		"of a range": {
			`orders{namespace=$namespace}[1m]`, prometheus.ReasonUnexpectedResultType, "matrix",
		},
		"FC-1 that divides by zero": {
			`sum(orders{namespace=$namespace}) * 0 / 0`, prometheus.ReasonInvalidValue, "NaN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sample := s.ask(t, s.measure(t, c.template))
			assert.Equal(t, scaling.Invalid, sample.Validity)
			assert.Equal(t, c.reason, sample.Reason)
			assert.Contains(t, sample.Message, c.says)
		})
	}
}

// A client that looks for a float finds 0 in the sample of a native histogram.
func TestNativeHistogramIsNoNumberUntilItIsReduced(t *testing.T) {
	t.Parallel()
	s := prepareScene(t, shared)
	latency := client.NewHistogram(client.HistogramOpts{
		Name: "latency_seconds", Help: "Of a request.", NativeHistogramBucketFactor: 1.1, ConstLabels: client.Labels{"namespace": s.namespace},
	})
	for range 7 {
		latency.Observe(0.25)
	}
	registry := client.NewRegistry()
	registry.MustRegister(latency)
	target := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(target.Close)
	shared.scrape(t, job{
		Name: s.namespace, NativeHistograms: true,
		Targets: []targets{{[]string{strings.TrimPrefix(target.URL, "http://")}}},
	})

	s.until(t, s.measure(t, `latency_seconds{namespace=$namespace}`), invalid(prometheus.ReasonHistogramSample), neverZero(t))
	assert.True(t, valued(7)(s.ask(t, s.measure(t, `histogram_count(latency_seconds{namespace=$namespace})`))))
}

func TestFC10_QueryIsBoundToItsNamespaceWhateverTheNames(t *testing.T) {
	t.Parallel()
	s, other := newScene(t), newScene(t)
	s.exports(`orders{namespace=$namespace,deployment="web"} 40`)
	other.exports(`orders{namespace=$namespace,deployment="web"} 1000`)
	const template = `sum(orders{namespace=$namespace,deployment=$target})`
	s.until(t, s.measure(t, template), valued(40))
	other.until(t, other.measure(t, template), valued(1000))
	assert.True(t, valued(40)(s.ask(t, s.measure(t, template))))

	for name, target := range map[string]string{
		"a comment":  `web"}) or vector(1e9) #`,
		"an escape":  `web\"}) or vector(1e9) #`,
		"a new line": "web\"})\nor vector(1e9)",
		"a pattern":  `.*`,
	} {
		t.Run(name, func(t *testing.T) {
			m := s.measure(t, template)
			var err error
			m.Load.Expr, err = prometheus.Render(template, prometheus.Vars{Namespace: s.namespace, Target: target})
			assert.NoError(t, err)
			assert.Equal(t, prometheus.ReasonNoData, s.ask(t, m).Reason)
		})
	}
}
