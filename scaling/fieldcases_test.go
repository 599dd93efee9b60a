package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func TestFC8_OneFailingMetricForbidsScaleDownOnly(t *testing.T) {
	p := perReplica100(scaling.Behavior{}, scaling.Behavior{})
	l := newLoop(p, 8)
	d := l.at(0, valid(200), failed)
	assert.Equal(t, int32(8), d.Replicas)
	assert.Equal(t, scaling.RuleSomeMetricsInvalid, d.Rule)
	assert.Equal(t, scaling.Invalid, d.Metrics[1].Validity, "the trace names the one that failed")

	d = l.at(poll, valid(1200), failed)
	assert.Equal(t, int32(12), d.Replicas)
	assert.True(t, d.Degraded())

	only := newLoop(perReplica100(scaling.Behavior{}), 8)
	d = only.at(0, failed)
	assert.Equal(t, int32(8), d.Replicas)
	assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule)
}

func TestFC9_AFailureStartsAFreshWindow(t *testing.T) {
	window := 2 * time.Minute
	p := perReplica100(scaling.Behavior{DownStabilization: window})
	l := newLoop(p, 10)
	l.run(0, 10*time.Minute, valid(1000))
	recovery := 10*time.Minute + 2*poll
	l.at(10*time.Minute+poll, failed)
	// A restarted server answers 0 at first.
	l.at(recovery, valid(0))
	down := l.downAt(t, recovery+poll, poll, time.Hour, valid(0))
	assert.GreaterOrEqual(t, down, 10*time.Minute+poll+window)
	assert.LessOrEqual(t, down, recovery+window+window/12+poll)
}

func TestFC9_APartialAnswerCoversNoWindow(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Minute})
	l := newLoop(p, 10)
	l.run(0, 10*time.Minute, partial(100))
	require.Equal(t, int32(10), l.current)
	down := l.downAt(t, 10*time.Minute+poll, poll, time.Hour, valid(100))
	assert.GreaterOrEqual(t, down, 11*time.Minute)
}

func TestFC9_APartialAnswerIsRemembered(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: 2 * time.Minute})
	l := newLoop(p, 15)
	l.at(0, partial(1200))
	l.run(poll, 2*time.Minute-poll, valid(200))
	require.Equal(t, int32(15), l.current)
	d := l.at(2*time.Minute-time.Second, valid(200))
	require.Equal(t, int32(15), d.Replicas, "not covered yet")
	d = l.at(2*time.Minute, valid(200))
	assert.Equal(t, int32(2), d.Replicas, "covered since the partial answer, which has just expired")
}

func TestFC11_HugeDemandIsTheMaximumAndNeverNegative(t *testing.T) {
	cases := map[string]struct {
		value, target float64
		recommended   int32
	}{
		"just above MaxInt32 by a target of 0.1": {214748365, 0.1, math.MaxInt32},
		"1e18 by a target of 1n":                 {1e18, 1e-9, math.MaxInt32},
		"1 by a target of 1n":                    {1, 1e-9, 1_000_000_000},
		"a quotient that overflows float64":      {math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxInt32},
		"exactly MaxInt32":                       {math.MaxInt32, 1, math.MaxInt32},
		"one below MaxInt32":                     {math.MaxInt32 - 1, 1, math.MaxInt32 - 1},
		"half a replica above that":              {math.MaxInt32 - 0.5, 1, math.MaxInt32},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := perReplica100(scaling.Behavior{})
			p.MinReplicas, p.MaxReplicas = 1, 50
			p.Metrics[0].TargetPerReplica = c.target
			d, _ := scaling.Decide(p, observe(start, 50, valid(c.value)), scaling.Memory{})
			assert.Equal(t, c.recommended, d.Recommended)
			assert.Equal(t, int32(50), d.Replicas)
			assert.Equal(t, scaling.RuleMaxReplicas, d.Rule)

			p.MaxReplicas, p.Metrics[0].Behavior.UpMaxStep = math.MaxInt32, math.MaxInt32
			d, _ = scaling.Decide(p, observe(start, 50, valid(c.value)), scaling.Memory{})
			assert.Equal(t, c.recommended, d.Replicas, "a step from 50 does not overflow")
		})
	}
}

func TestFC16_NoLoadStaysAtTheMinimum(t *testing.T) {
	p := perReplica100(scaling.Behavior{})
	p.MinReplicas, p.MaxReplicas = 15, 60
	d, _ := scaling.Decide(p, observe(start, 15, valid(0)), scaling.Memory{})
	assert.Equal(t, int32(15), d.Replicas, "no write")

	p.MinReplicas, p.MaxReplicas = 1, 4
	d, _ = scaling.Decide(p, observe(start, 40, valid(800)), scaling.Memory{})
	assert.Equal(t, int32(4), d.Replicas)
}

func TestFC17_LostMemoryWaitsAWholeWindow(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: 5 * time.Minute})
	l := newLoop(p, 20)
	l.at(0, valid(2000))
	l.at(time.Minute, valid(500))
	l.memory = scaling.Memory{} // the leader is killed at 70 s
	down := l.downAt(t, 75*time.Second, poll, time.Hour, valid(500))
	assert.Equal(t, 75*time.Second+5*time.Minute, down)
}

func TestFC17_KeptMemoryGoesOnAfterAQuickRestart(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: 5 * time.Minute})
	l := newLoop(p, 20)
	l.at(0, valid(2000))
	// Every restart finds the memory of the last evaluation, up to 75 s old.
	down := l.downAt(t, 75*time.Second, 75*time.Second, time.Hour, valid(500))
	assert.Equal(t, 5*time.Minute, down, "periodic restarts do not postpone it for ever")
}

func TestFC17_MemoryAfterAnOutageIsNotTrusted(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: 5 * time.Minute})
	l := newLoop(p, 20)
	l.run(0, 10*time.Minute, valid(2000))
	back := 10*time.Minute + 5*time.Minute/4 + time.Second
	down := l.downAt(t, back, poll, time.Hour, valid(500))
	assert.Equal(t, back+5*time.Minute, down)
}

func TestFC18_TheWindowNeverRaises(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: 600 * time.Second, UpMaxStep: 4})
	p.MaxReplicas = 50
	l := newLoop(p, 17)
	l.at(0, valid(100))
	l.run(poll, 700*time.Second, valid(100))
	// The history: 40 and 21 were asked for, but a human keeps 17.
	l.current = 17
	_, l.memory = scaling.Decide(p, observe(start.Add(720*time.Second), 17, valid(4000)), l.memory)
	_, l.memory = scaling.Decide(p, observe(start.Add(740*time.Second), 17, valid(2100)), l.memory)
	d := l.at(800*time.Second, valid(1200))
	assert.Equal(t, int32(17), d.Replicas)
	assert.Equal(t, int32(12), d.Recommended)
	assert.Equal(t, scaling.RuleScaleDownStabilization, d.Rule)
}

func TestFC21_ASurgeOfARollingUpdateIsNoDemand(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 4, DownMaxStep: 1})
	p.MaxReplicas = 500
	l := newLoop(p, 100)
	for i := range 5 {
		// 125 run, 100 are asked for; the load in total is that of 100.
		d := l.at(time.Duration(i)*poll, valid(100*100))
		assert.Equal(t, int32(100), d.Replicas)
	}
	assert.Zero(t, l.writes)
}

func TestFC22_ZeroReplicasAreLeftAlone(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Minute})
	l := newLoop(p, 0)
	for i, sample := range []scaling.Sample{valid(5000), valid(0), failed} {
		d := l.at(time.Duration(i)*poll, sample)
		assert.Equal(t, int32(0), d.Replicas)
		assert.Equal(t, int32(0), d.Desired)
		assert.Equal(t, scaling.RuleSuspended, d.Rule)
		assert.False(t, d.PendingDown)
	}
	d := l.at(3*poll, valid(5000))
	assert.Equal(t, int32(50), d.Recommended, "the demand is still shown")
	p.MinReplicas = 3
	assert.Equal(t, int32(0), l.at(4*poll, valid(100)).Replicas, "a raised minimum does not resume it")
}

func TestFC22_AResumedWorkloadKeepsItsReplicasForAWindow(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Minute})
	l := newLoop(p, 10)
	l.run(0, 10*time.Minute, valid(1000))
	l.current = 0
	l.run(10*time.Minute+poll, time.Hour, valid(0))
	// A human resumes it; what it did not serve while it was down says nothing.
	l.current = 10
	down := l.downAt(t, time.Hour+poll, poll, 2*time.Hour, valid(0))
	assert.Equal(t, time.Hour+poll+time.Minute, down)
}

func TestFC23_LoweredMaximumConvergesByTheStepsWithoutTheWindow(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownMaxStep: 2, DownStabilization: 5 * time.Minute, DownMinInterval: poll})
	p.MaxReplicas = 5
	l := newLoop(p, 40)
	d := l.at(0, valid(4000))
	assert.Equal(t, int32(38), d.Replicas)
	assert.Equal(t, int32(5), d.Desired)
	assert.Equal(t, int32(40), d.Recommended)
	assert.Equal(t, scaling.RuleScaleDownStep, d.Rule)
	assert.True(t, d.PendingDown)
	l.run(poll, 17*poll, valid(4000))
	assert.Equal(t, int32(5), l.current)
	assert.Equal(t, scaling.RuleMaxReplicas, l.at(18*poll, valid(4000)).Rule)
}

func TestFC23_LoweredMaximumHoldsWhileMetricsFail(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownMaxStep: 2})
	p.MaxReplicas = 5
	d, _ := scaling.Decide(p, observe(start, 40, failed), scaling.Memory{})
	assert.Equal(t, int32(40), d.Replicas)
	assert.Equal(t, scaling.RuleOutOfBounds, d.Rule)
}

func TestFC56_TwoEvaluationsWithin50msGrantOneStep(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 2})
	first, m := scaling.Decide(p, observe(start, 4, valid(900)), scaling.Memory{})
	require.Equal(t, int32(6), first.Replicas)
	m = m.Scaled(start, 4, 6, poll)
	soon := start.Add(50 * time.Millisecond)

	d, _ := scaling.Decide(p, observe(soon, 6, valid(900)), m)
	assert.Equal(t, int32(6), d.Replicas, "the write is seen")
	assert.Equal(t, scaling.RuleScaleUpStep, d.Rule)

	d, _ = scaling.Decide(p, observe(soon, 4, valid(900)), m)
	assert.Equal(t, int32(6), d.Replicas, "the write is not seen yet: the same answer, not a second step")

	d, _ = scaling.Decide(p, observe(start.Add(poll), 6, valid(900)), m)
	assert.Equal(t, int32(8), d.Replicas, "the next interval grants the next step")
}

func TestFC1_AValueThatIsNoNumberHoldsInEverySemantics(t *testing.T) {
	huge := math.MaxFloat64
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, huge * 10} {
		for _, semantics := range []scaling.Semantics{scaling.Total, scaling.PerReplicaAverage, scaling.Backlog} {
			p := perReplica100(scaling.Behavior{})
			p.Metrics[0].Semantics, p.Metrics[0].Clearance = semantics, time.Minute
			l := newLoop(p, 10)
			d := l.at(0, valid(value))
			assert.Zero(t, l.writes, "%v", value)
			assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule)
			assert.Equal(t, scaling.ReasonInvalidValue, d.Metrics[0].Reason)
		}
	}
	d, _ := scaling.Decide(perReplica100(scaling.Behavior{}), observe(start, 10, valid(math.Copysign(0, -1))), scaling.Memory{})
	assert.Equal(t, int32(2), d.Replicas, "-0 is 0")
}

func TestFC21_UnreadyReplicasOfARollingUpdateDoNotMultiplyAnAverage(t *testing.T) {
	p := perReplica100(scaling.Behavior{ToleranceUp: 0.1, ToleranceDown: 0.1})
	p.MaxReplicas, p.Metrics[0].Semantics = 500, scaling.PerReplicaAverage
	l := newLoop(p, 100)
	// The load is that of 100, whoever bears it: half of them, or a surge.
	for i, ready := range []int32{50, 125, 100, 1, 80} {
		l.ready = &ready
		d := l.at(time.Duration(i)*poll, valid(100*100/float64(ready)))
		assert.Equal(t, int32(100), d.Replicas, "%d ready", ready)
	}
	assert.Zero(t, l.writes)
}

func TestFC56_AWriteThatIsNotSeenYetUsesUpTheRateOnce(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpRate: scaling.Rate{MaxReplicas: 2, Period: time.Minute}})
	first, m := scaling.Decide(p, observe(start, 4, valid(900)), scaling.Memory{})
	require.Equal(t, int32(6), first.Replicas)
	m = m.Scaled(start, 4, 6, poll)
	for _, seen := range []int32{4, 6} {
		d, _ := scaling.Decide(p, observe(start.Add(50*time.Millisecond), seen, valid(900)), m)
		assert.Equal(t, seen, d.Replicas, "no write")
		assert.Equal(t, scaling.RuleScaleUpRate, d.Rule)
	}
}
