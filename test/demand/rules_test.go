//go:build integration

package demand

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/scaling/prometheus"
)

func TestFC9_RecordedSeriesEndsWithItsInput(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	shared.record(t, s.namespace, rule{Record: "recorded", Expr: fmt.Sprintf(`sum by (namespace) (orders{namespace=%q})`, s.namespace)})
	load := s.measure(t, `sum(recorded{namespace=$namespace})`)
	s.exports(`orders{namespace=$namespace} 40`)
	s.until(t, load, valued(40), neverZero(t))

	s.fails()

	s.until(t, load, invalid(prometheus.ReasonNoData), neverZero(t))
}

// A rule over a window goes on to record when its input is gone. Then the recorded
// series is fresh by any look at it; a freshness query must look at the input.
func TestFC9_FreshnessOfARecordedSeriesIsThatOfItsInput(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	shared.record(t, s.namespace, rule{Record: "recorded", Expr: fmt.Sprintf(`sum by (namespace) (max_over_time(orders{namespace=%q}[2m]))`, s.namespace)})
	plain := s.measure(t, `sum(recorded{namespace=$namespace})`)
	ofRecord := s.aged(t, plain, `time() - max(timestamp(recorded{namespace=$namespace}))`)
	ofInput := s.aged(t, plain, `time() - max(timestamp(orders{namespace=$namespace}))`)
	ofTarget := s.healthy(t, plain)
	s.exports(`orders{namespace=$namespace} 40`)
	s.until(t, ofTarget, valued(40))

	s.fails()

	s.until(t, ofTarget, invalid(prometheus.ReasonStaleSource))
	s.until(t, ofInput, invalid(prometheus.ReasonFreshnessUnknown))
	assert.True(t, valued(40)(s.ask(t, plain)))
	assert.True(t, valued(40)(s.ask(t, ofRecord)))
}
