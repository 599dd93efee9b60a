package scaling_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

func TestToleranceTakesADemandNearTheCurrentCountForMet(t *testing.T) {
	cases := map[string]struct {
		up, down float64
		load     float64
		current  int32
		want     int32
		rule     scaling.Rule
	}{
		"within the band above":                     {0.1, 0.1, 1050, 10, 10, scaling.RuleTolerance},
		"within the band below":                     {0.1, 0.1, 910, 10, 10, scaling.RuleNone},
		"far enough below to need fewer":            {0.1, 0.2, 850, 10, 10, scaling.RuleTolerance},
		"at the upper end":                          {0.1, 0.1, 1100, 10, 10, scaling.RuleTolerance},
		"just above the upper end":                  {0.1, 0.1, 1100.01, 10, 12, scaling.RuleNone},
		"at the lower end":                          {0.1, 0.2, 800, 10, 10, scaling.RuleTolerance},
		"just below the lower end":                  {0.1, 0.2, 799.9, 10, 8, scaling.RuleNone},
		"an end that the division rounds":           {0.1, 0, 330, 3, 3, scaling.RuleTolerance},
		"a lower end that the product rounds":       {0, 0.7, 300, 10, 10, scaling.RuleTolerance},
		"none of it up":                             {0, 0.5, 1001, 10, 11, scaling.RuleNone},
		"none of it down":                           {0.5, 0, 900, 10, 9, scaling.RuleNone},
		"all of it down":                            {0, 1, 0, 10, 10, scaling.RuleTolerance},
		"all of it up":                              {1, 0, 2000, 10, 10, scaling.RuleTolerance},
		"above the maximum it does not hold":        {1, 1, 2500, 25, 20, scaling.RuleMaxReplicas},
		"below the minimum it does not hold":        {1, 1, 100, 1, 2, scaling.RuleMinReplicas},
		"the rule is the bound's where that is met": {0, 0.9, 300, 25, 20, scaling.RuleMaxReplicas},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := perReplica100(scaling.Behavior{ToleranceUp: c.up, ToleranceDown: c.down})
			d, _ := scaling.Decide(p, observe(start, c.current, valid(c.load)), scaling.Memory{})
			assert.Equal(t, c.want, d.Replicas)
			assert.Equal(t, c.rule.String(), d.Rule.String())
			assert.False(t, d.PendingDown || d.PendingUp, "what is tolerated is not pending")
		})
	}
}

// The HPA's own figures: an average of millicores at a target of 120m.
func TestTheEndsOfTheBandBelongToItWhateverTheDivisionMakesOfThem(t *testing.T) {
	for _, current := range []int32{1, 3, 7, 10, 99, 1000, 123_457} {
		for load, moves := range map[float64]bool{0.108: false, 0.110: false, 0.120: false, 0.132: false, 0.133: true, 0.107: true} {
			p := of(scaling.PerReplicaAverage, 0.120)
			p.Metrics[0].Behavior = scaling.Behavior{ToleranceUp: 0.1, ToleranceDown: 0.1}
			d, _ := scaling.Decide(p, observe(start, current, valid(load)), scaling.Memory{})
			if name := strconv.Itoa(int(current)) + " replicas at " + strconv.FormatFloat(load, 'g', -1, 64); !moves {
				assert.Equal(t, current, d.Replicas, name)
			} else if current >= 10 || load > 0.12 { // 3 replicas at 107m still need 3
				assert.NotEqual(t, current, d.Replicas, name)
			}
		}
	}
}

func TestToleranceKeepsNothingOutOfTheWindow(t *testing.T) {
	p := perReplica100(scaling.Behavior{ToleranceUp: 0.5, DownStabilization: 5 * time.Minute})
	l := newLoop(p, 10)
	l.run(0, 5*time.Minute, valid(1200)) // tolerated, but 12 were asked for
	require.Equal(t, int32(10), l.current)
	l.current = 12
	down := l.downAt(t, 5*time.Minute+poll, poll, time.Hour, valid(200))
	assert.GreaterOrEqual(t, down, 10*time.Minute)
}

// The band in whole numbers, as an oracle that knows no rounding: needed and current
// in parts per million.
func TestPropertyTheBandIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		up, down := rapid.Int64Range(0, 1_000_000).Draw(t, "up"), rapid.Int64Range(0, 1_000_000).Draw(t, "down")
		current := rapid.Int64Range(1, 1000).Draw(t, "current")
		load := rapid.OneOf(
			rapid.Int64Range(0, 3_000_000*current),
			rapid.SampledFrom([]int64{(1_000_000 + up) * current, (1_000_000 - down) * current}),
			rapid.SampledFrom([]int64{(1_000_000+up)*current + 1000, max(0, (1_000_000-down)*current-1000)}),
		).Draw(t, "load")
		p := of(scaling.Total, 1_000_000)
		p.MaxReplicas = math.MaxInt32
		p.Metrics[0].Behavior.ToleranceUp = float64(up) / 1e6
		p.Metrics[0].Behavior.ToleranceDown = float64(down) / 1e6
		d, _ := scaling.Decide(p, observe(start, int32(current), valid(float64(load))), scaling.Memory{}) //nolint:gosec // drawn as one
		want := max(1, (load+999_999)/1_000_000)
		if (1_000_000-down)*current <= load && load <= (1_000_000+up)*current {
			want = current
		}
		require.Equal(t, want, int64(d.Replicas))
	})
}
