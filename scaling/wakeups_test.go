package scaling_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

// drawPunctualPolicy is a policy without windows whose every time is a multiple of
// the poll interval.
func drawPunctualPolicy(t *rapid.T) *scaling.Policy {
	polls := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * poll
	}
	p := drawPolicy(t)
	p.PollInterval = poll
	p.Fallback.After = polls("after", 6)
	for i := range p.Metrics {
		m := &p.Metrics[i]
		b := &m.Behavior
		m.TargetPerReplica = 100
		b.UpStabilization, b.DownStabilization = 0, 0
		b.DownMinInterval = polls("minInterval", 6)
		b.UpRate.Period = min(b.UpRate.Period.Truncate(poll)+poll, scaling.MaxRatePeriod)
		if b.UpRate.MaxReplicas == 0 {
			b.UpRate = scaling.Rate{}
		}
	}
	return p
}

// drawLoad is one poll's samples: what is read until the next.
func drawLoad(t *rapid.T, metrics int) []scaling.Sample {
	samples := make([]scaling.Sample, metrics)
	for i := range samples {
		samples[i] = scaling.Sample{
			Value:    rapid.Float64Range(0, 12_000).Draw(t, "value"),
			Validity: scaling.Validity(rapid.SampledFrom([]uint8{0, 1, 2, 2, 2, 2, 2}).Draw(t, "validity")),
		}
	}
	return samples
}

// drawWakeUps are times within a poll interval, in order.
func drawWakeUps(t *rapid.T) []time.Duration {
	wakes := rapid.SliceOfN(rapid.Int64Range(0, poll.Microseconds()-1), 0, 4).Draw(t, "wakes")
	times := make([]time.Duration, len(wakes))
	for i, w := range wakes {
		times[i] = time.Duration(w) * time.Microsecond
	}
	return times
}

// Without windows every limit counts from a write, writes happen at polls, and so
// every limit ends at a poll: whatever wakes the policy in between, with the samples
// that were there already, finds nothing to write, and every poll writes what it
// would have written anyway. That takes the count of Ready replicas for part of an
// average's sample: a replica that became Ready later bore none of that load.
func TestPropertyAnySplitOfWakeUpsGivesTheSameWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPunctualPolicy(t)
		current := rapid.Int32Range(1, 120).Draw(t, "current")
		punctual, restless := newLoop(p, current), newLoop(p, current)
		for i := range rapid.IntRange(1, 30).Draw(t, "polls") {
			begin := time.Duration(i) * poll
			load := drawLoad(t, len(p.Metrics))
			// Those that were Ready when the samples were taken, not those of the wake-up.
			ready := rapid.Int32Range(0, 150).Draw(t, "ready")
			punctual.ready, restless.ready = &ready, &ready
			want := punctual.at(begin, load...)
			require.Equal(t, want, restless.at(begin, load...), "poll %d", i)
			for _, wake := range drawWakeUps(t) {
				// In no order: a clock that runs back within the interval is fine, too.
				restless.at(begin+wake, load...)
				require.Equal(t, punctual.current, restless.current, "woken %s after poll %d", wake, i)
			}
		}
		require.Equal(t, punctual.writes, restless.writes)
	})
}

// A window, or a time that is no multiple of the poll interval, can end between two
// polls. Then a wake-up may use it at once, and a demand that is read again counts
// until it was last read. What holds is that each limit is kept in real time.
func TestPropertyWakeUpsNeverBreakALimitInRealTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := scaling.Behavior{
			UpMaxStep:         rapid.Int32Range(1, 10).Draw(t, "up"),
			DownMaxStep:       rapid.Int32Range(1, 10).Draw(t, "down"),
			UpStabilization:   time.Duration(rapid.IntRange(0, 90).Draw(t, "upWindow")) * time.Second,
			DownStabilization: time.Duration(rapid.IntRange(0, 200).Draw(t, "downWindow")) * time.Second,
			DownMinInterval:   time.Duration(rapid.IntRange(0, 100).Draw(t, "interval")) * time.Second,
		}
		p := perReplica100(b)
		p.MinReplicas, p.MaxReplicas = 1, 1000
		l := newLoop(p, 20)
		var oracle exactWindow
		var ups, downs []move
		for i := range rapid.IntRange(1, 40).Draw(t, "polls") {
			load := valid(float64(rapid.Int32Range(1, 40).Draw(t, "raw")) * 100)
			wakes := append([]time.Duration{0}, drawWakeUps(t)...)
			for _, wake := range wakes {
				at, before := max(time.Duration(i)*poll+wake, l.now.Sub(start)), l.current
				d := l.at(at, load)
				oracle.at, oracle.raw = append(oracle.at, l.now), append(oracle.raw, d.Recommended)
				switch {
				case l.current > before:
					require.LessOrEqual(t, l.current, oracle.min(l.now, max(b.UpStabilization, 1)), "no higher than all of the window")
					ups = append(ups, move{at, l.current - before})
				case l.current < before:
					require.GreaterOrEqual(t, at, b.DownStabilization)
					require.GreaterOrEqual(t, l.current, oracle.max(l.now, max(b.DownStabilization, 1)), "no lower than any of the window")
					require.True(t, len(downs) == 0 || at-downs[len(downs)-1].at >= b.DownMinInterval, "the interval")
					downs = append(downs, move{at, before - l.current})
				}
			}
		}
		requireSteps(t, ups, b.UpMaxStep)
		requireSteps(t, downs, b.DownMaxStep)
	})
}

// A demand counts until it was last read, so wake-ups can keep it for a poll interval
// longer than the window and its twelfth, and no longer.
func TestPropertyWakeUpsPostponeAMoveByAPollIntervalAtMost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.IntRange(30, 900).Draw(t, "window")) * time.Second
		p := perReplica100(scaling.Behavior{UpStabilization: window, DownStabilization: window})
		from, to := int32(4), int32(15)
		if rapid.Bool().Draw(t, "down") {
			from, to = to, from
		}
		l := newLoop(p, from)
		const last = 100 // the last poll that reads the old demand
		for i := 0; l.current == from; i++ {
			load := valid(float64(from) * 100)
			if i > last {
				load = valid(float64(to) * 100)
			}
			at := time.Duration(i) * poll
			l.at(at, load)
			for _, wake := range drawWakeUps(t) {
				l.at(max(at+wake, l.now.Sub(start)), load)
			}
			// The poll that finds it expired is another interval later at most.
			require.LessOrEqual(t, at, last*poll+poll+window+window/12+poll)
		}
		require.Equal(t, to, l.current)
		require.GreaterOrEqual(t, l.now.Sub(start), last*poll+window)
	})
}

// move is a number of replicas that a write added or removed.
type move struct {
	at       time.Duration
	replicas int32
}

// requireSteps checks that from any write on, n poll intervals grant n+1 steps at
// most, one more where the write is not the first of its interval.
func requireSteps(t *rapid.T, moves []move, step int32) {
	for i := range moves {
		var moved int64
		for _, m := range moves[i:] {
			moved += int64(m.replicas)
			granted := int64((m.at-moves[i].at)/poll) + 1
			if i > 0 {
				granted++
			}
			require.LessOrEqual(t, moved, granted*int64(step), "from %s to %s", moves[i].at, m.at)
		}
	}
}

func TestAWindowThatEndsBetweenPollsCanBeUsedByAWakeUpAndGrantsOneStepAllTheSame(t *testing.T) {
	p := perReplica100(scaling.Behavior{DownMaxStep: 1, DownStabilization: 50 * time.Second})
	punctual, restless := newLoop(p, 9), newLoop(p, 9)
	for i := range 12 {
		at := time.Duration(i) * poll
		punctual.at(at, valid(200))
		restless.at(at, valid(200))
		require.Equal(t, punctual.current, restless.current, "at poll %d", i)
		restless.at(at+6*time.Second, valid(200))
		restless.at(at+14*time.Second, valid(200))
	}
	assert.Equal(t, int32(2), restless.current)
}
