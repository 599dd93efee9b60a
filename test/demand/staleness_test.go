//go:build integration

package demand

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// counter grows by 100 per second from now on.
func counter() func(now time.Time) string {
	begun := time.Now()
	return func(now time.Time) string {
		return fmt.Sprintf(`orders_total{namespace=$namespace,deployment="web"} %d`, 1000+now.Sub(begun).Milliseconds()/10)
	}
}

// neverZero is the check that a lost source is not taken for an idle service.
func neverZero(t *testing.T) func(scaling.Sample) {
	t.Helper()
	return func(s scaling.Sample) { assert.False(t, s.Validity != scaling.Invalid && s.Value == 0, "%+v", s) }
}

func TestFC3_FC9_SeriesOfALostTargetIsNoDataAndNeverZero(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	load := s.measure(t, `sum(orders{namespace=$namespace,deployment=$target})`)
	s.until(t, load, invalid(prometheus.ReasonNoData))
	s.exports(`orders{namespace=$namespace,deployment="web"} 40`)
	s.until(t, load, valued(40), neverZero(t))

	s.fails()

	s.until(t, load, invalid(prometheus.ReasonNoData), neverZero(t))
}

// The window of rate() is divided by its whole length however few samples are left in
// it, so the rate of a lost target falls like a load that goes away, and is as fresh as
// any. Only the source's own freshness tells.
func TestFC9_RateOfALostTargetFallsLikeALoadThatFreshnessDoesNotBelieve(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	plain := s.measure(t, `sum(rate(orders_total{namespace=$namespace,deployment=$target}[6s]))`)
	guarded := s.healthy(t, plain)
	s.exportsNow(counter())
	s.until(t, guarded, above(85))

	s.fails()

	s.until(t, guarded, invalid(prometheus.ReasonStaleSource), func(sample scaling.Sample) {
		if sample.Validity == scaling.Valid {
			assert.Greater(t, sample.Value, 60.0, "the fall was believed before it was found out")
		}
	})
	s.until(t, plain, func(sample scaling.Sample) bool { return sample.Validity == scaling.Valid && sample.Value < 60 },
		neverZero(t),
		func(scaling.Sample) { assert.Equal(t, prometheus.ReasonStaleSource, s.ask(t, guarded).Reason) })
	s.until(t, plain, invalid(prometheus.ReasonNoData), neverZero(t))
}

func TestFC9_SumOverTargetsOfWhichOneIsLostFallsAndTheShareOfHealthyOnesTells(t *testing.T) {
	t.Parallel()
	s := prepareScene(t, shared)
	other := newSource(t, s.namespace)
	both := s.job()
	both.Targets = append(both.Targets, targets{[]string{other.address()}})
	shared.scrape(t, both)
	plain := s.measure(t, `sum(orders{namespace=$namespace})`)
	guarded := s.healthy(t, plain)
	s.exports(`orders{namespace=$namespace,deployment="web"} 40`)
	other.exports(`orders{namespace=$namespace,deployment="web"} 30`)
	s.until(t, guarded, valued(70))

	other.fails()

	s.until(t, plain, valued(40))
	s.until(t, guarded, invalid(prometheus.ReasonStaleSource))

	other.exports(`orders{namespace=$namespace,deployment="web"} 30`)
	s.until(t, guarded, valued(70))
}

// A target that the discovery no longer finds has not even an "up" of 0.
func TestFC9_FreshnessOfATargetThatIsNoLongerDiscoveredIsUnknown(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	plain := s.measure(t, `sum(max_over_time(orders{namespace=$namespace,deployment=$target}[1m]))`)
	guarded := s.healthy(t, plain)
	s.exports(`orders{namespace=$namespace,deployment="web"} 40`)
	s.until(t, guarded, valued(40))

	shared.change(t, func(p *prometheusServer) {
		i := slices.IndexFunc(p.jobs, func(j job) bool { return j.Name == s.namespace })
		p.jobs[i].Targets = []targets{{[]string{}}}
	})

	s.until(t, guarded, invalid(prometheus.ReasonFreshnessUnknown))
	assert.True(t, valued(40)(s.ask(t, plain)), "the window still has samples: nothing but freshness tells")
}

// lingering is a series that Prometheus goes on to answer with, for its look-back of 5
// minutes, when its source has stopped: there is no staleness marker.
type lingering struct {
	// begin makes the series "lingering" and stop stops its source.
	begin, stop func(t *testing.T, s *scene)
}

var lingerings = map[string]lingering{
	"a series with times of its own": {
		begin: func(_ *testing.T, s *scene) {
			s.exportsNow(func(now time.Time) string {
				return fmt.Sprintf(`lingering{namespace=$namespace} 40 %d`, now.UnixMilli())
			})
		},
		stop: func(_ *testing.T, s *scene) { s.fails() },
	},
	"a federated series": {
		begin: func(t *testing.T, s *scene) {
			t.Helper()
			s.exports(`orders{namespace=$namespace} 40`)
			shared.scrape(t, job{
				Name: s.namespace + "-federation", Path: "/federate", HonorLabels: true,
				Params:  map[string][]string{"match[]": {fmt.Sprintf(`orders{namespace=%q}`, s.namespace)}},
				Targets: []targets{{[]string{shared.address}}},
				Relabel: []relabeling{{From: []string{"__name__"}, Regex: "orders", To: "__name__", Value: "lingering"}},
			})
		},
		stop: func(_ *testing.T, s *scene) { s.fails() },
	},
	"a recorded series whose rule fails": {
		begin: func(t *testing.T, s *scene) {
			t.Helper()
			s.exports("orders{namespace=$namespace} 20\nweight{namespace=$namespace} 2")
			shared.record(t, s.namespace, rule{Record: "lingering", Expr: fmt.Sprintf(
				`sum by (namespace) (orders{namespace=%[1]q}) * on (namespace) weight{namespace=%[1]q}`, s.namespace)})
		},
		stop: func(_ *testing.T, s *scene) {
			// Two weights match: the rule is in error from now on.
			s.exports("orders{namespace=$namespace} 20\nweight{namespace=$namespace,zone=\"a\"} 2\nweight{namespace=$namespace,zone=\"b\"} 3")
		},
	},
}

func TestFC9_SeriesThatLingersLooksFreshByItsSampleAndStaleByTheTimestampQuery(t *testing.T) {
	t.Parallel()
	for name, c := range lingerings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			plain := s.measure(t, `sum(lingering{namespace=$namespace})`)
			guarded := s.aged(t, plain, `time() - max(timestamp(lingering{namespace=$namespace}))`)
			c.begin(t, s)
			s.until(t, guarded, valued(40))

			c.stop(t, s)

			s.until(t, guarded, invalid(prometheus.ReasonStaleSource))
			assert.True(t, valued(40)(s.ask(t, plain)), "the sample's time is that of the evaluation, so maxAge sees nothing")
		})
	}
}
