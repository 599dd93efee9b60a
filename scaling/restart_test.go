package scaling_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

// stored is a memory after storage, which keeps what is not empty and no order of
// buckets.
func stored(m scaling.Memory, random *rand.Rand) scaling.Memory {
	for i := range m.Windows {
		for _, h := range []*scaling.History{&m.Windows[i].Down, &m.Windows[i].Up} {
			kept := 0
			for j, at := range h.At {
				if at != 0 {
					h.At[kept], h.Replicas[kept] = at, h.Replicas[j]
					kept++
				}
			}
			clear(h.At[kept:])
			clear(h.Replicas[kept:])
			random.Shuffle(kept, func(a, b int) {
				h.At[a], h.At[b] = h.At[b], h.At[a]
				h.Replicas[a], h.Replicas[b] = h.Replicas[b], h.Replicas[a]
			})
		}
	}
	return m
}

func TestPropertyARestartWithTheMemoryOfTheLastEvaluationChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.PollInterval = time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Minute)).Draw(t, "pollInterval"))
		current := rapid.Int32Range(1, 120).Draw(t, "current")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		steady, restarted := newLoop(p, current), newLoop(p, current)
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 60).Draw(t, "evaluations") {
			samples := drawSamples(t, len(p.Metrics))
			if rapid.IntRange(0, 19).Draw(t, "longer") == 0 {
				for j := range p.Metrics { // the key stays: the histories must cope
					b := &p.Metrics[j].Behavior
					b.DownStabilization = min(2*b.DownStabilization, scaling.MaxDownStabilization)
					b.UpStabilization = min(2*b.UpStabilization, scaling.MaxUpStabilization)
				}
			}
			require.Equal(t, steady.at(at, samples...), restarted.at(at, samples...), "evaluation %d", i)
			restarted.memory = stored(restarted.memory, random)
			at += time.Duration(rapid.Int64Range(0, 2*int64(p.PollInterval)).Draw(t, "step"))
		}
	})
}

// checkpoints is the memory as the status has it: written with each scale event, and
// about twelve times per window while something is pending.
type checkpoints struct {
	memory scaling.Memory
	every  time.Duration
}

func (c *checkpoints) after(l *loop, d *scaling.Decision, wrote bool) {
	age := time.Duration(l.memory.Observed-c.memory.Observed) * time.Microsecond
	if wrote || (d.PendingDown || d.PendingUp) && age >= c.every {
		c.memory = l.memory
	}
}

// restartEveryMinute runs with a restart every minute that finds what was stored.
func restartEveryMinute(l *loop, from, to time.Duration, c *checkpoints, samples ...scaling.Sample) {
	restart := from + time.Minute
	for at := from; at <= to; at += l.policy.PollInterval {
		if at >= restart {
			l.memory, restart = c.memory, at+time.Minute
		}
		writes := l.writes
		d := l.at(at, samples...)
		c.after(l, &d, l.writes > writes)
	}
}

func TestFC17_ARestartEveryMinutePostponesNoScaleDownForEver(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownMaxStep: 1, DownStabilization: usualWindow, DownMinInterval: time.Minute})
	l := newLoop(p, 20)
	c := &checkpoints{every: usualWindow / 12}
	restartEveryMinute(l, 0, time.Minute, c, valid(2000))
	restartEveryMinute(l, time.Minute+poll, time.Minute+usualWindow-poll, c, valid(500))
	assert.Equal(t, int32(20), l.current, "not before the window has passed")
	restartEveryMinute(l, time.Minute+usualWindow, 2*time.Minute+2*usualWindow, c, valid(500))
	assert.Less(t, l.current, int32(20), "soon after")
	assert.GreaterOrEqual(t, l.current, int32(20-7), "one a minute")
	restartEveryMinute(l, 2*time.Minute+2*usualWindow+poll, 40*time.Minute, c, valid(500))
	assert.Equal(t, int32(5), l.current)
}

func TestARestartEveryMinutePostponesNoScaleUpForEver(t *testing.T) {
	p := perReplica100(scaling.Behavior{UpStabilization: 10 * time.Minute, UpRate: scaling.Rate{MaxReplicas: 3, Period: 5 * time.Minute}})
	l := newLoop(p, 5)
	c := &checkpoints{every: 50 * time.Second}
	restartEveryMinute(l, 0, 10*time.Minute-poll, c, valid(2000))
	assert.Equal(t, int32(5), l.current, "not before the window has passed")
	restartEveryMinute(l, 10*time.Minute, 15*time.Minute-poll, c, valid(2000))
	assert.Equal(t, int32(8), l.current, "and the rate is kept over restarts")
	restartEveryMinute(l, 15*time.Minute, time.Hour, c, valid(2000))
	assert.Equal(t, int32(20), l.current)
}

func TestNoContentOfTheMemoryCanDoHarm(t *testing.T) {
	extremes := []int64{math.MinInt64, -1, 0, 1, start.UnixMicro() - 1, start.UnixMicro(), start.UnixMicro() + 1, math.MaxInt64}
	p := floored(7, scaling.Behavior{
		UpMaxStep: 2, DownMaxStep: 2, UpRate: scaling.Rate{MaxReplicas: 3, Period: time.Minute},
		UpStabilization: upWindow, DownStabilization: usualWindow, DownMinInterval: time.Minute,
	})
	for _, at := range extremes {
		for _, n := range []int32{math.MinInt32, -1, 0, 1, math.MaxInt32} {
			m := scaling.Memory{
				Target: "uid", Observed: at, LastDown: at, AllInvalidSince: at,
				Up: scaling.Step{At: at, Base: n}, Down: scaling.Step{At: at, Base: n},
			}
			for i := range m.Ups {
				m.Ups[i] = scaling.Up{At: at - int64(i), Added: n}
			}
			for i := range m.Windows {
				w := &m.Windows[i]
				w.Key, w.Down.Since, w.Up.Since = 1, at, at
				for j := range w.Down.At {
					w.Down.At[j], w.Down.Replicas[j] = at-int64(j), n
					w.Up.At[j], w.Up.Replicas[j] = at+int64(j), n
				}
			}
			m = m.Discovered(start, 3, 9).Scaled(start, 9, 12, poll)
			for _, s := range []scaling.Sample{valid(2000), valid(0), failed} {
				l := newLoop(p, 12)
				l.memory = m
				l.at(0, s)
				checkMemory(t, &l.memory, start.UnixMicro())
				assert.InDelta(t, 12, l.current, 2, "a step at most")
				// Within hours of good samples everything is forgotten.
				l.run(poll, 3*time.Hour, valid(500))
				assert.Equal(t, int32(5), l.current)
			}
		}
	}
}
