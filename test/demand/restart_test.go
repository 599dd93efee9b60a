//go:build integration

package demand

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// scraped is how many samples of the counter there are.
const scraped = `count_over_time(orders_total{namespace=$namespace}[2m])`

func TestFC9_RestartWithoutDataIsNoDataUntilRateHasTwoSamples(t *testing.T) {
	t.Parallel()
	server, err := newPrometheus(t.TempDir())
	require.NoError(t, err)
	s := prepareScene(t, server)
	server.jobs = []job{s.job()}
	require.NoError(t, server.start(t.Context()))
	t.Cleanup(func() { assert.NoError(t, server.stop()) })
	rate := s.measure(t, `sum(rate(orders_total{namespace=$namespace}[2m]))`)
	total := s.measure(t, `sum(orders_total{namespace=$namespace})`)
	s.exportsNow(counter())
	s.until(t, rate, above(0), neverZero(t))

	require.NoError(t, server.stop())
	assert.Equal(t, prometheus.ReasonUnreachable, s.ask(t, rate).Reason)
	require.NoError(t, os.RemoveAll(server.data()))
	s.fails()
	require.NoError(t, server.start(t.Context()))

	assert.Equal(t, prometheus.ReasonNoData, s.ask(t, total).Reason)
	assert.Equal(t, prometheus.ReasonNoData, s.ask(t, rate).Reason)

	s.exportsEach(`orders_total{namespace=$namespace} 1000`)
	s.until(t, s.measure(t, scraped), valued(1))
	assert.Equal(t, prometheus.ReasonNoData, s.ask(t, rate).Reason, "one sample is no rate")

	s.exportsEach(`orders_total{namespace=$namespace} 1100`)
	s.until(t, rate, above(0), neverZero(t))
}

func TestRateOverACounterThatBeganAnewIsItsGrowth(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.exportsEach(
		`orders_total{namespace=$namespace} 1000`, `orders_total{namespace=$namespace} 1100`, // + 100
		`orders_total{namespace=$namespace} 50`,  // a restart, then + 50
		`orders_total{namespace=$namespace} 150`, // + 100
	)
	s.until(t, s.measure(t, scraped), valued(4))

	assert.True(t, valued(1)(s.ask(t, s.measure(t, `sum(resets(orders_total{namespace=$namespace}[2m]))`))))
	// Prometheus extrapolates 250 orders by up to 1.1 intervals of three at each end.
	growth := s.ask(t, s.measure(t, `sum(increase(orders_total{namespace=$namespace}[2m]))`))
	assert.GreaterOrEqual(t, growth.Value, 250.0)
	assert.LessOrEqual(t, growth.Value, 440.0)
}
