package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/scaling"
)

// of is a policy of one metric that is read so, with bounds that do not matter.
func of(semantics scaling.Semantics, target float64) *scaling.Policy {
	p := perReplica100(scaling.Behavior{})
	p.MinReplicas, p.MaxReplicas = 1, math.MaxInt32
	p.Metrics[0].Semantics, p.Metrics[0].TargetPerReplica = semantics, target
	return p
}

func TestAnAverageIsMultipliedByTheReadyReplicas(t *testing.T) {
	cases := map[string]struct {
		current, ready int32
		average        float64
		raw            int32
	}{
		"at the target it asks for what is there":            {9, 9, 100, 9},
		"above the target for more":                          {6, 6, 150, 9},
		"below the target for less":                          {9, 9, 33, 3},
		"without load for nothing":                           {9, 9, 0, 0},
		"replicas that are not ready bore no load":           {12, 6, 150, 9},
		"a surge bore its part":                              {100, 125, 80, 100},
		"rounding noise adds no replica":                     {3, 3, 100.00000002, 3},
		"a product beyond float64 is clamped":                {9, 9, math.MaxFloat64, math.MaxInt32},
		"a product beyond int32 is clamped (FC-11)":          {2, 1_000_000, 1e12, math.MaxInt32},
		"more ready than asked for does not scale by itself": {5, 10, 50, 5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := observe(start, c.current, valid(c.average))
			over(c.ready, o)
			d, _ := scaling.Decide(of(scaling.PerReplicaAverage, 100), o, scaling.Memory{})
			assert.Equal(t, c.raw, d.Recommended)
		})
	}
}

func TestAnAverageOverNoReadyReplicaIsInvalid(t *testing.T) {
	for _, ready := range []int32{0, -1} {
		p := perReplica100(scaling.Behavior{DownStabilization: time.Minute}, scaling.Behavior{})
		p.Metrics[0].Semantics = scaling.PerReplicaAverage
		o := observe(start, 5, valid(0), valid(200))
		over(ready, o)
		d, _ := scaling.Decide(p, o, scaling.Memory{})
		assert.Equal(t, int32(5), d.Replicas, "not a scale-down")
		assert.Equal(t, scaling.RuleSomeMetricsInvalid, d.Rule)
		assert.Equal(t, scaling.MetricTrace{Reason: scaling.ReasonNoReadyReplicas}, d.Metrics[0])

		o.Samples[1] = valid(900)
		d, _ = scaling.Decide(p, o, scaling.Memory{})
		assert.Equal(t, int32(9), d.Replicas, "the other metric still scales up")
	}
}

func TestTotalsDoNotLookAtReadyReplicas(t *testing.T) {
	o := observe(start, 9, valid(900))
	for _, ready := range []int32{0, 3, 25} {
		over(ready, o)
		d, _ := scaling.Decide(of(scaling.Total, 100), o, scaling.Memory{})
		assert.Equal(t, int32(9), d.Recommended)
	}
}

func TestABacklogIsWorkedOffWithinItsClearance(t *testing.T) {
	cases := map[string]struct {
		items, arrivals float64
		clearance       time.Duration
		raw             int32
	}{
		"arrivals alone":                       {0, 50, time.Minute, 5},
		"the backlog alone":                    {3000, 0, time.Minute, 5},
		"both":                                 {3000, 50, time.Minute, 10},
		"half the time takes twice the share":  {3000, 50, 30 * time.Second, 15},
		"a part of a replica is a whole":       {3001, 50, time.Minute, 11},
		"nothing waits and nothing comes":      {0, 0, time.Minute, 0},
		"a clearance of a nanosecond":          {1, 0, 1, 100_000_000},
		"a backlog beyond int32 is clamped":    {1e300, 0, time.Second, math.MaxInt32},
		"a sum that overflows float64 as well": {math.MaxFloat64, math.MaxFloat64, 1, math.MaxInt32},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := of(scaling.Backlog, 10)
			p.Metrics[0].Clearance = c.clearance
			s := valid(c.items)
			s.ArrivalRate = c.arrivals
			d, _ := scaling.Decide(p, observe(start, 9, s), scaling.Memory{})
			assert.Equal(t, c.raw, d.Recommended)
		})
	}
}

func TestAnArrivalRateThatIsNoneMakesABacklogInvalidAndNothingElse(t *testing.T) {
	for _, rate := range []float64{math.NaN(), math.Inf(1), -1} {
		s := valid(900)
		s.ArrivalRate = rate
		p := of(scaling.Backlog, 100)
		p.Metrics[0].Clearance = time.Second
		d, _ := scaling.Decide(p, observe(start, 3, s), scaling.Memory{})
		assert.Equal(t, int32(3), d.Replicas)
		assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule)
		assert.Equal(t, scaling.ReasonInvalidValue, d.Metrics[0].Reason)

		d, _ = scaling.Decide(of(scaling.Total, 100), observe(start, 3, s), scaling.Memory{})
		assert.Equal(t, int32(9), d.Replicas)
	}
}

func TestTheTraceGivesTheSamplesReason(t *testing.T) {
	d, _ := scaling.Decide(perReplica100(scaling.Behavior{}, scaling.Behavior{}), observe(start, 3, failed, partial(900)), scaling.Memory{})
	assert.Equal(t, "Timeout", d.Metrics[0].Reason)
	assert.Equal(t, "PartialResponse", d.Metrics[1].Reason)
}
