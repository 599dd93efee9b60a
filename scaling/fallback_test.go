package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// floored falls back to so many replicas after five minutes.
func floored(floor int32, behaviors ...scaling.Behavior) *scaling.Policy {
	p := perReplica100(behaviors...)
	p.Fallback = scaling.Fallback{FloorReplicas: floor, After: 5 * time.Minute}
	return p
}

func TestTheFloorIsReachedAtOnceWhenEveryMetricHasFailedForLongEnough(t *testing.T) {
	l := newLoop(floored(10, scaling.Behavior{UpMaxStep: 1, UpRate: scaling.Rate{MaxReplicas: 1, Period: time.Hour}}), 4)
	l.run(0, time.Minute, valid(400))
	begin := time.Minute + poll
	for at := begin; at < begin+5*time.Minute; at += poll {
		d := l.at(at, failed)
		require.Equal(t, int32(4), d.Replicas, "at %s", at)
		require.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule)
	}
	d := l.at(begin+5*time.Minute, failed)
	assert.Equal(t, int32(10), d.Replicas)
	assert.Equal(t, int32(10), d.Desired)
	assert.Zero(t, d.Recommended)
	assert.Equal(t, scaling.RuleFallbackFloor, d.Rule)
	d = l.at(begin+5*time.Minute+poll, failed)
	assert.Equal(t, int32(10), d.Replicas)
	assert.Equal(t, scaling.RuleAllMetricsInvalid, d.Rule, "and then nothing changes")
	assert.Equal(t, 1, l.writes)
}

func TestTheFloorNeverLowersAndKeepsToTheBounds(t *testing.T) {
	cases := map[string]struct {
		floor, current, want int32
		rule                 scaling.Rule
	}{
		"above the floor":                       {10, 15, 15, scaling.RuleAllMetricsInvalid},
		"at the floor":                          {10, 10, 10, scaling.RuleAllMetricsInvalid},
		"below the floor":                       {10, 4, 10, scaling.RuleFallbackFloor},
		"a floor above the maximum is cut":      {50, 4, 20, scaling.RuleFallbackFloor},
		"above the maximum nothing is lowered":  {10, 30, 30, scaling.RuleOutOfBounds},
		"without a floor nothing is done":       {0, 4, 4, scaling.RuleAllMetricsInvalid},
		"a workload at 0 is left alone (FC-22)": {10, 0, 0, scaling.RuleSuspended},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoop(floored(c.floor, scaling.Behavior{}), c.current)
			l.run(0, 10*time.Minute, failed)
			d := l.at(10*time.Minute+poll, failed)
			assert.Equal(t, c.want, d.Replicas)
			l = newLoop(l.policy, c.current)
			l.run(0, 5*time.Minute-poll, failed)
			assert.Zero(t, l.writes)
			assert.Equal(t, c.rule.String(), l.at(5*time.Minute, failed).Rule.String())
		})
	}
}

func TestTheMinimumWaitsForNoMetricAndTheFloorForItsTime(t *testing.T) {
	l := newLoop(floored(10, scaling.Behavior{}), 1)
	d := l.at(0, failed)
	assert.Equal(t, int32(2), d.Replicas)
	assert.Equal(t, scaling.RuleBelowMinimum, d.Rule)
	l.run(poll, 5*time.Minute-poll, failed)
	assert.Equal(t, 1, l.writes)
	assert.Equal(t, scaling.RuleFallbackFloor, l.at(5*time.Minute, failed).Rule)
	assert.Equal(t, int32(10), l.current)
}

func TestOneUsableAnswerStartsTheWaitForTheFloorAnew(t *testing.T) {
	for name, answer := range map[string]scaling.Sample{"a valid one": valid(400), "a partial one": partial(100)} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(floored(10, scaling.Behavior{}, scaling.Behavior{}), 4)
			l.run(0, 4*time.Minute, failed, failed)
			l.at(4*time.Minute+poll, failed, answer)
			assert.Zero(t, l.memory.AllInvalidSince)
			begin := 4*time.Minute + 2*poll
			assert.Equal(t, begin+5*time.Minute, l.upAt(t, begin, poll, failed, failed))
		})
	}
}

func TestTheWaitForTheFloorSurvivesARestartButNoOutage(t *testing.T) {
	p := floored(10, scaling.Behavior{})
	_, stored := scaling.Decide(p, observe(start, 4, failed), scaling.Memory{})
	// The beginning is stored once, and every restart finds just that.
	for at := 50 * time.Second; at < 5*time.Minute; at += 50 * time.Second {
		d, _ := scaling.Decide(p, observe(start.Add(at), 4, failed), stored)
		require.Equal(t, int32(4), d.Replicas, "at %s", at)
	}
	d, _ := scaling.Decide(p, observe(start.Add(5*time.Minute+3*poll), 4, failed), stored)
	assert.Equal(t, int32(10), d.Replicas)
	d, m := scaling.Decide(p, observe(start.Add(5*time.Minute+3*poll+time.Microsecond), 4, failed), stored)
	assert.Equal(t, int32(4), d.Replicas, "what was in between is unknown")
	assert.Equal(t, m.Observed, m.AllInvalidSince)
}

func TestTheWaitForTheFloorIsRememberedOnlyWhereThereIsOne(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{}), 4)
	l.at(0, failed)
	assert.Zero(t, l.memory.AllInvalidSince)
	l.policy.Fallback = scaling.Fallback{FloorReplicas: 10}
	assert.Equal(t, int32(10), l.at(poll, failed).Replicas, "without a wait it is reached at once")
	l.current = 0
	l.at(2*poll, failed)
	assert.Zero(t, l.memory.AllInvalidSince, "what failed while nothing ran says nothing")
}

func TestAfterTheFloorAWholeWindowIsWaitedBeforeAnyScaleDown(t *testing.T) {
	l := newLoop(floored(10, scaling.Behavior{DownStabilization: usualWindow}), 4)
	l.run(0, 10*time.Minute, failed)
	require.Equal(t, int32(10), l.current)
	recovery := 10*time.Minute + poll
	down := l.downAt(t, recovery, poll, time.Hour, valid(400))
	assert.GreaterOrEqual(t, down, 10*time.Minute+usualWindow)
	assert.LessOrEqual(t, down, recovery+usualWindow)
	assert.Equal(t, int32(4), l.current)
}
