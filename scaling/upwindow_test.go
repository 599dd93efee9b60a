package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

const upWindow = time.Minute

func upWindowed() *scaling.Policy {
	return perReplica100(scaling.Behavior{UpStabilization: upWindow})
}

func TestScaleUpWaitsUntilTheWholeWindowAsksForIt(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	l.run(0, 10*time.Minute, valid(400))
	rise := 10*time.Minute + poll
	d := l.at(rise, valid(900))
	assert.Equal(t, int32(4), d.Replicas)
	assert.Equal(t, int32(4), d.Desired)
	assert.Equal(t, int32(9), d.Recommended)
	assert.Equal(t, scaling.RuleScaleUpStabilization, d.Rule)
	assert.True(t, d.PendingUp)

	up := l.upAt(t, rise+time.Second, time.Second, valid(900))
	assert.GreaterOrEqual(t, up, 10*time.Minute+upWindow, "the last low demand has expired")
	assert.Less(t, up, 10*time.Minute+upWindow+upWindow/12)
	assert.Equal(t, int32(9), l.current)
	assert.False(t, l.at(up+time.Second, valid(900)).PendingUp)
}

func TestTheLowestDemandOfTheWindowIsReachedAtOnce(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	l.run(0, 10*time.Minute, valid(700))
	l.current = 4
	d := l.at(10*time.Minute+poll, valid(900))
	assert.Equal(t, int32(7), d.Replicas)
	assert.Equal(t, scaling.RuleScaleUpStabilization, d.Rule)
	assert.True(t, d.PendingUp)
}

func TestASpikeShorterThanTheWindowAddsNothing(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	l.run(0, 10*time.Minute, valid(400))
	l.run(10*time.Minute+poll, 10*time.Minute+3*poll, valid(2000))
	l.run(10*time.Minute+4*poll, 20*time.Minute, valid(400))
	assert.Zero(t, l.writes)
}

func TestScaleUpWaitsForAWindowThatIsNotCoveredYet(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	for at := time.Duration(0); at < upWindow; at += poll {
		require.Equal(t, int32(4), l.at(at, valid(900)).Replicas, "at %s", at)
	}
	assert.Equal(t, int32(9), l.at(upWindow, valid(900)).Replicas, "the window at most")
}

func TestTheUpWindowLimitsNeitherTheWayDownNorThatIntoTheBounds(t *testing.T) {
	d, _ := scaling.Decide(upWindowed(), observe(start, 9, valid(400)), scaling.Memory{})
	assert.Equal(t, int32(4), d.Replicas)
	d, _ = scaling.Decide(upWindowed(), observe(start, 1, valid(900)), scaling.Memory{})
	assert.Equal(t, int32(2), d.Replicas, "the minimum does not wait")
	assert.Equal(t, scaling.RuleScaleUpStabilization, d.Rule)
	d, _ = scaling.Decide(upWindowed(), observe(start, 30, valid(4000)), scaling.Memory{})
	assert.Equal(t, int32(20), d.Replicas, "nor does the maximum")
}

func TestWhatStartsTheUpWindowAnew(t *testing.T) {
	const settled = 10 * time.Minute
	cases := map[string]struct {
		disturb func(l *loop)
		anew    bool
	}{
		"a gap does":                     {func(l *loop) { l.memory.Observed -= (2 * upWindow).Microseconds() }, true},
		"a lost memory does":             {func(l *loop) { l.memory = scaling.Memory{} }, true},
		"another key does":               {func(l *loop) { l.policy.Metrics[0].Key = 99 }, true},
		"another target does":            {func(l *loop) { l.memory.Target = "another uid" }, true},
		"an invalid sample does not":     {func(l *loop) { l.at(settled, failed) }, false},
		"a partial answer does not":      {func(l *loop) { l.at(settled, partial(100)) }, false},
		"a clock set back does not stop": {func(l *loop) { l.at(settled-20*time.Second, valid(900)) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoop(upWindowed(), 9)
			l.run(0, settled, valid(900))
			c.disturb(l)
			l.current = 4 // by a human
			d := l.at(settled+poll, valid(900))
			assert.Equal(t, c.anew, d.Replicas == 4)
			if c.anew {
				assert.Equal(t, settled+poll+upWindow, l.upAt(t, settled+2*poll, poll, valid(900)))
			}
		})
	}
}

func TestAPartialAnswerIsHeldByTheUpWindowLikeAnyOther(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	l.run(0, 10*time.Minute, valid(400))
	d := l.at(10*time.Minute+poll, partial(900))
	assert.Equal(t, int32(4), d.Replicas)
	assert.Equal(t, scaling.RuleScaleUpStabilization, d.Rule)
	up := l.upAt(t, 10*time.Minute+2*poll, poll, partial(900))
	assert.Less(t, up, 10*time.Minute+upWindow+upWindow/12+poll)
}

func TestAClockThatIsSetBackKeepsNoLowDemandForLonger(t *testing.T) {
	l := newLoop(upWindowed(), 4)
	l.run(time.Hour, time.Hour+10*time.Minute, valid(400))
	back := 10 * time.Minute
	up := l.upAt(t, back, poll, partial(900))
	assert.Equal(t, back+upWindow, up, "as if all of it had been seen just now")
}

func TestBothWindowsOfAMetricWorkBesideEachOther(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{UpStabilization: upWindow, DownStabilization: usualWindow}), 5)
	for at := time.Duration(0); at <= time.Hour; at += poll {
		// A load that swings faster than either window moves nothing.
		l.at(at, valid(500+400*float64(int(at/poll)%3-1)))
	}
	assert.Zero(t, l.writes)
	m := l.policy.Metrics
	l.policy.Metrics = []scaling.Metric{{Key: 77, TargetPerReplica: 100}, m[0]}
	d := l.at(time.Hour+poll, valid(100), valid(500))
	assert.Equal(t, int32(5), d.Replicas, "both moved with their metric")
	assert.Equal(t, m[0].Key, l.memory.Windows[1].Key)
	assert.NotZero(t, l.memory.Windows[1].Up.Since)
	assert.NotZero(t, l.memory.Windows[1].Down.Since)
	assert.Zero(t, l.memory.Windows[0])
}

func TestAMetricWithoutADownWindowStillKeepsItsUpWindowWhenReordered(t *testing.T) {
	b := scaling.Behavior{UpStabilization: upWindow}
	l := newLoop(perReplica100(b, b), 4)
	l.run(0, 10*time.Minute, valid(900), valid(300))
	m := l.policy.Metrics
	l.policy.Metrics, l.current = []scaling.Metric{m[1], m[0]}, 4
	assert.Equal(t, int32(9), l.at(10*time.Minute+poll, valid(300), valid(900)).Replicas)
}

func TestPropertyTheUpWindowIsNeverEarlyAndAtMostATwelfthLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.Int64Range(1, int64(scaling.MaxUpStabilization/time.Microsecond)).Draw(t, "length")) * time.Microsecond
		cell := (length + 11*time.Microsecond) / 12
		p := perReplica100(scaling.Behavior{UpStabilization: length})
		p.MinReplicas, p.MaxReplicas, p.PollInterval = 1, 1000, length // no gap counts as an outage
		var (
			memory scaling.Memory
			oracle exactWindow
		)
		now := start.Add(time.Duration(rapid.Int64Range(0, int64(length)).Draw(t, "offset"))).Truncate(time.Microsecond)
		begin := now
		for range rapid.IntRange(1, 80).Draw(t, "evaluations") {
			raw := rapid.Int32Range(2, 900).Draw(t, "raw")
			oracle.at, oracle.raw = append(oracle.at, now), append(oracle.raw, raw)
			var d scaling.Decision
			d, memory = scaling.Decide(p, observe(now, 1, valid(float64(raw)*100)), memory)
			if covered := now.Sub(begin) >= length; !covered {
				require.Equal(t, int32(1), d.Replicas, "not covered")
			} else {
				require.LessOrEqual(t, d.Replicas, oracle.min(now, length), "never earlier than exact")
				require.GreaterOrEqual(t, d.Replicas, oracle.min(now, length+cell), "at most a twelfth later")
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, 2*int64(length)).Draw(t, "step"))).Truncate(time.Microsecond)
		}
	})
}
