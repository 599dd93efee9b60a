package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

const usualWindow = 5 * time.Minute

func windowed() *scaling.Policy {
	return perReplica100(scaling.Behavior{DownStabilization: usualWindow})
}

func TestScaleDownWaitsUntilAHighDemandExpires(t *testing.T) {
	l := newLoop(windowed(), 15)
	l.run(0, 10*time.Minute, valid(1500))
	peak := 10*time.Minute + 2*poll // in another cell of 25 s
	l.at(peak, valid(1000))
	d := l.at(peak+poll, valid(300))
	require.Equal(t, int32(15), d.Replicas)
	require.Equal(t, int32(15), d.Desired)
	require.True(t, d.PendingDown)

	first := l.downAt(t, peak+2*poll, time.Second, time.Hour, valid(300))
	assert.Equal(t, int32(10), l.current, "the floor falls in stages")
	assert.GreaterOrEqual(t, first, 10*time.Minute+usualWindow)
	assert.Less(t, first, 10*time.Minute+usualWindow+usualWindow/12)

	second := l.downAt(t, first+time.Second, time.Second, time.Hour, valid(300))
	assert.Equal(t, int32(3), l.current)
	assert.GreaterOrEqual(t, second, peak+usualWindow)
	assert.Less(t, second, peak+usualWindow+usualWindow/12)
	assert.False(t, l.at(second+time.Second, valid(300)).PendingDown)
}

func TestScaleUpDoesNotWaitForTheWindow(t *testing.T) {
	d, _ := scaling.Decide(windowed(), observe(start, 3, valid(900)), scaling.Memory{})
	assert.Equal(t, int32(9), d.Replicas)
}

func TestWindowMustBeCovered(t *testing.T) {
	l := newLoop(windowed(), 9)
	for at := time.Duration(0); at < usualWindow; at += poll {
		d := l.at(at, valid(200))
		require.Equal(t, int32(9), d.Replicas, "at %s", at)
		require.Equal(t, scaling.RuleScaleDownStabilization, d.Rule)
	}
	assert.Equal(t, int32(2), l.at(usualWindow, valid(200)).Replicas)
}

func TestWindowStartsAnew(t *testing.T) {
	const settled = 10 * time.Minute
	cases := map[string]func(*loop){
		"when the target is another object": func(l *loop) { l.memory.Target = "another uid" },
		"when the key changes":              func(l *loop) { l.policy.Metrics[0].Key = 99 },
		"when the memory is lost":           func(l *loop) { l.memory = scaling.Memory{} },
		"when evaluations had a gap":        func(l *loop) { l.memory.Observed -= (2 * usualWindow).Microseconds() },
		"when the evaluations are unknown":  func(l *loop) { l.memory.Observed = 0 },
		"when the sample is invalid":        func(l *loop) { l.at(settled, failed) },
		"when the answer is partial":        func(l *loop) { l.at(settled, partial(200)) },
		"when there was no window before": func(l *loop) {
			l.policy.Metrics[0].Behavior.DownStabilization = 0
			l.at(settled, valid(900))
			l.policy.Metrics[0].Behavior.DownStabilization = usualWindow
		},
	}
	for name, disturb := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLoop(windowed(), 9)
			l.run(0, settled, valid(900))
			require.Equal(t, int32(9), l.current)
			disturb(l)
			down := l.downAt(t, settled+poll, poll, time.Hour, valid(200))
			assert.GreaterOrEqual(t, down, settled+usualWindow)
		})
	}
}

func TestAnotherTargetDropsTheWholeMemory(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{UpMaxStep: 2, DownMinInterval: time.Hour}), 4)
	l.at(0, valid(900))
	l.at(poll, valid(200))
	require.NotZero(t, l.memory.LastDown)
	require.NotZero(t, l.memory.Up)
	o := observe(start.Add(poll), 9, valid(200))
	o.Target = "new uid"
	d, m := scaling.Decide(l.policy, o, l.memory)
	assert.Equal(t, int32(2), d.Replicas)
	assert.Equal(t, scaling.Memory{Target: "new uid", Observed: start.Add(poll).UnixMicro()}, m)
}

func TestGapUpToItsLimitKeepsTheWindow(t *testing.T) {
	cases := map[string]struct{ window, longest time.Duration }{
		"three polls":           {time.Minute, 3 * poll},
		"a quarter of a window": {usualWindow, usualWindow / 4},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, excess := range []time.Duration{0, time.Microsecond} {
				l := newLoop(perReplica100(scaling.Behavior{DownStabilization: c.window}), 9)
				l.run(0, 10*time.Minute, valid(200))
				require.Equal(t, int32(2), l.current)
				l.current = 9 // by a human: only the window decides now
				d := l.at(10*time.Minute+c.longest+excess, valid(200))
				assert.Equal(t, excess == 0, d.Replicas == 2, "%s more", excess)
			}
		})
	}
}

func TestReorderedMetricsKeepTheirWindows(t *testing.T) {
	b := scaling.Behavior{DownStabilization: usualWindow}
	l := newLoop(perReplica100(b, b, b), 9)
	l.run(0, 10*time.Minute, valid(900), valid(200), valid(300))
	m := l.policy.Metrics
	l.policy.Metrics = []scaling.Metric{m[2], m[0]}
	now := 10*time.Minute + 2*poll
	l.at(now, valid(300), valid(200))
	assert.Equal(t, int32(9), l.current)
	assert.Equal(t, m[2].Key, l.memory.Windows[0].Key)
	assert.Equal(t, m[0].Key, l.memory.Windows[1].Key)
	assert.Zero(t, l.memory.Windows[2], "a metric that is gone is forgotten")
	down := l.downAt(t, now+poll, poll, time.Hour, valid(300), valid(200))
	assert.Equal(t, 10*time.Minute+usualWindow, down, "no window began anew")
	assert.Equal(t, int32(3), l.current)
}

func TestKeyOfZeroIsAKeyLikeOthers(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{}, scaling.Behavior{DownStabilization: usualWindow}), 9)
	l.policy.Metrics[1].Key = 0
	l.run(0, 10*time.Minute, valid(200), valid(900))
	m := l.policy.Metrics
	l.policy.Metrics = []scaling.Metric{m[1], m[0]}
	down := l.downAt(t, 10*time.Minute+2*poll, poll, time.Hour, valid(200), valid(200))
	assert.Equal(t, 10*time.Minute+usualWindow, down)
}

func TestLongerWindowIsNotCoveredByAShorterOne(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Minute})
	l := newLoop(p, 15)
	l.at(0, valid(1500))
	l.run(poll, 30*time.Minute, valid(900))
	l.current = 15
	p.Metrics[0].Behavior.DownStabilization = usualWindow
	down := l.downAt(t, 30*time.Minute+poll, poll, time.Hour, valid(900))
	assert.GreaterOrEqual(t, down, 30*time.Minute-time.Minute+usualWindow)
	assert.LessOrEqual(t, down, 30*time.Minute+usualWindow+poll)
}

func TestLongerWindowKeepsEveryPeakThoughItsBucketsRunOut(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownStabilization: time.Minute})
	p.PollInterval = 5 * time.Second
	l := newLoop(p, 20)
	l.run(0, 10*time.Minute, valid(200))
	l.current = 19
	// Twelve falling peaks fill the buckets of the short window.
	for i := range 12 {
		at := 10*time.Minute + time.Duration(i+1)*p.PollInterval
		_, l.memory = scaling.Decide(p, observe(start.Add(at), 19, valid(float64(1900-100*i))), l.memory)
	}
	p.Metrics[0].Behavior.DownStabilization = usualWindow
	first := 10*time.Minute + p.PollInterval
	down := l.downAt(t, 11*time.Minute+p.PollInterval, p.PollInterval, time.Hour, valid(200))
	assert.GreaterOrEqual(t, down, first+usualWindow, "the first peak, 19, is remembered")
	assert.LessOrEqual(t, down, first+usualWindow+usualWindow/12+p.PollInterval)
}

func TestClockThatJumpsBackNeitherBlocksNorHurries(t *testing.T) {
	l := newLoop(perReplica100(scaling.Behavior{DownStabilization: usualWindow, DownMinInterval: time.Minute, DownMaxStep: 1}), 15)
	l.run(time.Hour, time.Hour+10*time.Minute, valid(1500))
	l.run(time.Hour+10*time.Minute+poll, time.Hour+16*time.Minute, valid(200))
	require.Less(t, l.current, int32(15))
	before := l.current
	// The clock is set back by an hour.
	d := l.at(16*time.Minute, valid(200))
	require.Equal(t, before, d.Replicas)
	for _, at := range []int64{l.memory.Observed, l.memory.LastDown, l.memory.Down.At, l.memory.Windows[0].Down.Since} {
		assert.LessOrEqual(t, at, l.now.UnixMicro())
	}
	down := l.downAt(t, 16*time.Minute+poll, poll, time.Hour, valid(200))
	assert.GreaterOrEqual(t, down, 17*time.Minute, "the interval is waited as from now")
	assert.LessOrEqual(t, down, 16*time.Minute+usualWindow+usualWindow/12+poll)
}

func TestHighDemandBeforeAJumpBackIsNotForgotten(t *testing.T) {
	l := newLoop(windowed(), 15)
	l.run(time.Hour, time.Hour+10*time.Minute, valid(200))
	l.current = 15
	for i, load := range []float64{1500, 1400, 1300, 1200, 1100, 1000} {
		_, l.memory = scaling.Decide(l.policy, observe(start.Add(70*time.Minute+time.Duration(i)*30*time.Second), 15, valid(load)), l.memory)
	}
	// Set back by ten minutes: all peaks count as of now.
	back := 62 * time.Minute
	down := l.downAt(t, back, time.Second, 2*time.Hour, valid(200))
	assert.GreaterOrEqual(t, down, back+usualWindow)
	assert.LessOrEqual(t, down, back+usualWindow+usualWindow/12+time.Second)
}

func TestShortestWindowWorks(t *testing.T) {
	for _, window := range []time.Duration{1, time.Microsecond, 13 * time.Microsecond, time.Millisecond} {
		p := perReplica100(scaling.Behavior{DownStabilization: window})
		l := newLoop(p, 9)
		require.Equal(t, int32(9), l.at(0, valid(900)).Replicas)
		l.current = 12
		assert.Equal(t, int32(12), l.at(0, valid(200)).Replicas, "%s", window)
		assert.Equal(t, int32(2), l.at(poll, valid(200)).Replicas, "%s", window)
	}
}
