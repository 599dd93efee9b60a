package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func TestConvergenceByStepsUp(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{UpMaxStep: 4}), 2)
	var seen []int32
	for i := range 4 {
		d := l.at(time.Duration(i)*poll, valid(900))
		seen = append(seen, d.Replicas)
	}
	assert.Equal(t, []int32{6, 9, 9, 9}, seen)
	assert.Equal(t, 2, l.writes)
}

// A Deployment that is made anew while Prometheus is down begins with one replica.
func TestTheMinimumIsRestoredByStepsWhileNoMetricCanBeUsed(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 1}, scaling.Behavior{UpMaxStep: 3})
	p.MinReplicas = 9
	l := newLoop(p, 1)
	var seen []int32
	for i := range 4 {
		d := l.at(time.Duration(i)*poll, failed, failed)
		assert.Equal(t, int32(9), d.Desired)
		seen = append(seen, d.Replicas)
	}
	assert.Equal(t, []int32{4, 7, 9, 9}, seen, "by the larger of both steps")
	assert.Equal(t, 3, l.writes)
	again := l.at(3*poll+time.Second, failed, failed)
	assert.Equal(t, scaling.RuleAllMetricsInvalid, again.Rule)

	p.Freeze = scaling.FreezeAll
	l = newLoop(p, 1)
	assert.Equal(t, scaling.RuleFrozen, l.at(0, failed, failed).Rule)
	assert.Zero(t, l.writes)
}

func TestConvergenceByStepsDownWithAnInterval(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{DownMaxStep: 1, DownMinInterval: time.Minute, DownStabilization: time.Minute}), 5)
	l.run(0, time.Minute-poll, valid(0))
	require.Equal(t, int32(5), l.current)
	var downs []time.Duration
	for at := time.Minute; at <= 10*time.Minute; at += time.Second {
		before := l.current
		d := l.at(at, valid(0))
		if l.current < before {
			require.Equal(t, before-1, l.current)
			downs = append(downs, at)
		} else if l.current > 2 {
			require.Equal(t, scaling.RuleScaleDownMinInterval, d.Rule)
			require.True(t, d.PendingDown)
		}
	}
	assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, downs)
}

func TestEarlyEvaluationsAddNoSteps(t *testing.T) {
	for name, c := range map[string]struct {
		from int32
		load float64
		want []int32 // after each poll interval
	}{
		"up":   {2, 2000, []int32{4, 6, 8}},
		"down": {20, 0, []int32{17, 14, 11}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(perReplica100(scaling.Behavior{UpMaxStep: 2, DownMaxStep: 3}), c.from)
			for i, want := range c.want {
				for early := time.Duration(0); early < poll; early += 100 * time.Millisecond {
					require.Equal(t, want, l.at(time.Duration(i)*poll+early, valid(c.load)).Replicas)
				}
			}
			assert.Equal(t, len(c.want), l.writes)
		})
	}
}

func TestAStepCanBeUsedInPartsWithinItsInterval(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{UpMaxStep: 4}), 2)
	assert.Equal(t, int32(3), l.at(0, valid(300)).Replicas)
	assert.Equal(t, int32(5), l.at(5*time.Second, valid(500)).Replicas)
	d := l.at(10*time.Second, valid(900))
	assert.Equal(t, int32(6), d.Replicas)
	assert.Equal(t, scaling.RuleScaleUpStep, d.Rule)
	assert.Equal(t, int32(9), l.at(poll, valid(900)).Replicas)
}

func TestFailedWriteUsesNoStep(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 2})
	d, m := scaling.Decide(p, observe(start, 4, valid(900)), scaling.Memory{})
	require.Equal(t, int32(6), d.Replicas)
	d, _ = scaling.Decide(p, observe(start.Add(time.Second), 4, valid(900)), m)
	assert.Equal(t, int32(6), d.Replicas)
}

func TestHumanMovesReplicasWithinAnInterval(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 2, DownMaxStep: 2})
	up := scaling.Memory{Target: "uid", Observed: start.UnixMicro()}.Scaled(start, 10, 12, poll)
	down := scaling.Memory{Target: "uid", Observed: start.UnixMicro()}.Scaled(start, 10, 8, poll)
	soon := start.Add(time.Second)
	cases := map[string]struct {
		memory  scaling.Memory
		current int32
		load    float64
		want    int32
	}{
		"above what the step allows: never moved back down for it": {up, 15, 1800, 15},
		"below the base: one step from there":                      {up, 3, 1800, 5},
		"to the base again: the rest of the step":                  {up, 10, 1800, 12},
		"below what the step down allows: not moved back up":       {down, 5, 200, 5},
		"above the base: one step from there":                      {down, 17, 200, 15},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d, m := scaling.Decide(p, observe(soon, c.current, valid(c.load)), c.memory)
			assert.Equal(t, c.want, d.Replicas)
			if d.Replicas == c.current {
				return
			}
			// The write that follows grants no second step.
			m = m.Scaled(soon, c.current, d.Replicas, poll)
			d, _ = scaling.Decide(p, observe(soon.Add(time.Second), c.want, valid(c.load)), m)
			assert.Equal(t, c.want, d.Replicas)
		})
	}
}

func TestIntervalCountsFromTheLastSuccessfulScaleDown(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownMinInterval: time.Minute})
	l := newLoop(p, 9)
	require.Equal(t, int32(5), l.at(0, valid(500)).Replicas)
	require.Equal(t, int32(8), l.at(30*time.Second, valid(800)).Replicas, "up is free")
	d := l.at(59*time.Second, valid(300))
	assert.Equal(t, int32(8), d.Replicas)
	assert.Equal(t, int32(3), d.Desired)
	assert.Equal(t, scaling.RuleScaleDownMinInterval, d.Rule)
	assert.Equal(t, int32(3), l.at(time.Minute, valid(300)).Replicas)
}

func TestStepsAtTheEdgeOfInt32DoNotOverflow(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: math.MaxInt32, DownMaxStep: math.MaxInt32})
	p.MinReplicas, p.MaxReplicas = 1, math.MaxInt32
	d, _ := scaling.Decide(p, observe(start, math.MaxInt32-1, valid(math.MaxFloat64)), scaling.Memory{})
	assert.Equal(t, int32(math.MaxInt32), d.Replicas)
	d, _ = scaling.Decide(p, observe(start, math.MaxInt32, valid(0)), scaling.Memory{})
	assert.Equal(t, int32(1), d.Replicas)
}

func TestScaledRecordsWritesOnly(t *testing.T) {
	var m scaling.Memory
	assert.Equal(t, m, m.Scaled(start, 5, 5, poll))
	at := start.UnixMicro()
	m = m.Scaled(start, 5, 7, poll)
	assert.Equal(t, scaling.Memory{
		Up: scaling.Step{At: at, Base: 5}, Ups: [scaling.MaxUps]scaling.Up{{At: at, Added: 2}},
	}, m)
	m = m.Scaled(start.Add(time.Second), 7, 8, poll)
	ups := [scaling.MaxUps]scaling.Up{{At: at, Added: 2}, {At: at + 1_000_000, Added: 1}}
	assert.Equal(t, scaling.Memory{Up: scaling.Step{At: at, Base: 5}, Ups: ups}, m, "the interval keeps its anchor")
	m = m.Scaled(start.Add(2*time.Second), 8, 6, poll)
	assert.Equal(t, scaling.Memory{
		Up: scaling.Step{At: at, Base: 5}, Down: scaling.Step{At: at + 2_000_000, Base: 8}, LastDown: at + 2_000_000, Ups: ups,
	}, m)
	m = m.Scaled(start.Add(poll), 6, 9, poll)
	assert.Equal(t, scaling.Step{At: start.Add(poll).UnixMicro(), Base: 6}, m.Up, "the next interval has its own")
}

func TestADiscoveredWriteCountsInBothDirectionsUntilThePollIntervalHasPassed(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpMaxStep: 4, DownMaxStep: 1, DownMinInterval: time.Minute})
	// Seen at 2 before, 6 now: by us, but nobody knows when, nor over which ways.
	decide := func(after time.Duration, load float64) int32 {
		o := observe(start, 6, valid(600))
		_, m := scaling.Decide(p, o, scaling.Memory{})
		m = m.Discovered(start, 2, 6)
		d, _ := scaling.Decide(p, observe(start.Add(after), 6, valid(load)), m)
		return d.Replicas
	}
	assert.Equal(t, int32(6), decide(time.Second, 2000), "the step up was taken")
	assert.Equal(t, int32(10), decide(poll, 2000), "the next interval has its own")
	assert.Equal(t, int32(6), decide(poll, 0), "it may have been a scale-down")
	assert.Equal(t, int32(5), decide(time.Minute, 0))

	p.Metrics[0].Behavior.DownMinInterval = 0
	assert.Equal(t, int32(6), decide(time.Second, 0), "and the step down was taken too")
}
