package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

func drawBehavior(t *rapid.T) scaling.Behavior {
	return scaling.Behavior{
		UpMaxStep:         rapid.SampledFrom([]int32{0, 1, 2, 4, 50, math.MaxInt32}).Draw(t, "upMaxStep"),
		DownMaxStep:       rapid.SampledFrom([]int32{0, 1, 2, 4, 50, math.MaxInt32}).Draw(t, "downMaxStep"),
		DownStabilization: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "stabilization")),
		DownMinInterval:   time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "minInterval")),
	}
}

func drawPolicy(t *rapid.T) *scaling.Policy {
	lo := rapid.Int32Range(1, 50).Draw(t, "min")
	p := &scaling.Policy{
		MinReplicas:  lo,
		MaxReplicas:  rapid.Int32Range(lo, 100).Draw(t, "max"),
		PollInterval: time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "poll")),
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "metrics") {
		p.Metrics = append(p.Metrics, scaling.Metric{
			Key:              uint64(i + 1),
			TargetPerReplica: rapid.Float64Range(1e-9, 1e6).Draw(t, "target"),
			Behavior:         drawBehavior(t),
		})
	}
	return p
}

// drawSample mixes ordinary loads with values that no sampler should let pass.
func drawSample(t *rapid.T) scaling.Sample {
	return scaling.Sample{
		Value: rapid.OneOf(
			rapid.Float64Range(0, 1e8),
			rapid.Float64(),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}),
		).Draw(t, "value"),
		Validity: scaling.Validity(rapid.SampledFrom([]uint8{0, 1, 2, 2, 2, 2, 3}).Draw(t, "validity")),
	}
}

func drawSamples(t *rapid.T, n int) []scaling.Sample {
	return rapid.SliceOfN(rapid.Custom(drawSample), 0, n+1).Draw(t, "samples")
}

// drawMemory returns what storage might hold: a memory of real evaluations, or
// any numbers at all.
func drawMemory(t *rapid.T, p *scaling.Policy, now time.Time) scaling.Memory {
	if rapid.Bool().Draw(t, "history") {
		l := newLoop(p, rapid.Int32Range(1, 120).Draw(t, "past"))
		at := -time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "ago"))
		for range rapid.IntRange(0, 20).Draw(t, "evaluations") {
			l.at(now.Sub(start)+at, drawSamples(t, len(p.Metrics))...)
			at = min(0, at+time.Duration(rapid.Int64Range(0, int64(p.PollInterval)).Draw(t, "later")))
		}
		return l.memory
	}
	anyTime := rapid.OneOf(rapid.Int64(), rapid.Int64Range(now.UnixMicro()-int64(2*time.Hour/time.Microsecond), now.UnixMicro()+1e9), rapid.Just(int64(0)))
	m := scaling.Memory{
		Target:   rapid.SampledFrom([]string{"uid", "uid", "uid", "other", ""}).Draw(t, "target"),
		Observed: anyTime.Draw(t, "observed"),
		LastDown: anyTime.Draw(t, "lastDown"),
		Up:       scaling.Step{At: anyTime.Draw(t, "upAt"), Base: rapid.Int32().Draw(t, "upBase")},
		Down:     scaling.Step{At: anyTime.Draw(t, "downAt"), Base: rapid.Int32().Draw(t, "downBase")},
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "windows") {
		w := &m.Windows[i]
		w.Key = rapid.Uint64Range(0, 5).Draw(t, "key")
		w.Since = anyTime.Draw(t, "since")
		for j := range w.Buckets {
			w.Buckets[j] = scaling.Bucket{At: anyTime.Draw(t, "at"), Max: rapid.Int32().Draw(t, "max")}
		}
	}
	return m
}

type scene struct {
	policy      *scaling.Policy
	observation *scaling.Observation
	memory      scaling.Memory
}

func drawScene(t *rapid.T) scene {
	p := drawPolicy(t)
	now := start.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "now")))
	o := observe(now, rapid.Int32Range(1, 120).Draw(t, "current"), drawSamples(t, len(p.Metrics))...)
	return scene{p, o, drawMemory(t, p, now)}
}

// boundedDemand is the highest demand of the usable metrics within the bounds.
func boundedDemand(p *scaling.Policy, d *scaling.Decision) (demand int32, usable bool) {
	for i := range p.Metrics {
		if d.Metrics[i].Validity != scaling.Invalid {
			demand, usable = max(demand, d.Metrics[i].Bounded), true
		}
	}
	return demand, usable
}

// checkInvariants is what holds for every input.
func checkInvariants(t *rapid.T, s scene) {
	p, o := s.policy, s.observation
	d, next := scaling.Decide(p, o, s.memory)

	demand, usable := boundedDemand(p, &d)
	if !usable {
		require.Equal(t, o.Current, d.Replicas, "none usable: hold")
		require.Zero(t, d.Recommended)
	} else {
		require.GreaterOrEqual(t, d.Replicas, min(o.Current, demand), "between current and demand")
		require.LessOrEqual(t, d.Replicas, max(o.Current, demand), "between current and demand")
		require.GreaterOrEqual(t, d.Desired, min(o.Current, demand))
		require.LessOrEqual(t, d.Desired, max(o.Current, demand))
	}
	if o.Current >= p.MinReplicas && o.Current <= p.MaxReplicas {
		require.GreaterOrEqual(t, d.Replicas, p.MinReplicas)
		require.LessOrEqual(t, d.Replicas, p.MaxReplicas)
	}
	if d.Degraded() {
		require.GreaterOrEqual(t, d.Replicas, o.Current, "nothing is removed while a metric is not valid")
		require.False(t, d.PendingDown)
	}
	if usable && d.Rule == scaling.RuleNone {
		require.Equal(t, d.Recommended, d.Replicas, "a difference has a rule")
	}
	if d.PendingDown {
		require.Less(t, demand, d.Replicas)
	}

	// The memory is sane whatever it was, and the decision is repeatable.
	now := o.Now.UnixMicro()
	for _, at := range []int64{next.Observed, next.LastDown, next.Up.At, next.Down.At} {
		require.True(t, at >= 0 && at <= now)
	}
	for i := range next.Windows {
		w := &next.Windows[i]
		require.True(t, w.Since >= 0 && w.Since <= now)
		for _, b := range w.Buckets {
			require.True(t, b.At >= 0 && b.At <= now && b.Max >= 0)
		}
	}
	again, same := scaling.Decide(p, o, s.memory)
	require.Equal(t, d, again, "deterministic")
	require.Equal(t, next, same, "deterministic")
	repeated, kept := scaling.Decide(p, o, next)
	require.Equal(t, d.Replicas, repeated.Replicas, "repeating an evaluation changes nothing")
	require.Equal(t, next, kept, "repeating an evaluation changes nothing")
}

func TestPropertyInvariantsHoldForEveryInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkInvariants(t, drawScene(t)) })
}

func FuzzDecide(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { checkInvariants(t, drawScene(t)) }))
}

func TestPropertyMoreLoadNeverMeansFewerReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		i := rapid.IntRange(0, len(s.policy.Metrics)-1).Draw(t, "metric")
		for len(s.observation.Samples) <= i {
			s.observation.Samples = append(s.observation.Samples, valid(0))
		}
		low := rapid.Float64Range(0, 1e7).Draw(t, "low")
		high := rapid.Float64Range(low, 1e8).Draw(t, "high")
		s.observation.Samples[i].Value = low
		less, _ := scaling.Decide(s.policy, s.observation, s.memory)
		s.observation.Samples[i].Value = high
		more, _ := scaling.Decide(s.policy, s.observation, s.memory)
		assert.GreaterOrEqual(t, more.Recommended, less.Recommended)
		assert.GreaterOrEqual(t, more.Desired, less.Desired)
		assert.GreaterOrEqual(t, more.Replicas, less.Replicas)
	})
}

func TestPropertyConstantLoadReachesAFixpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.PollInterval = time.Duration(rapid.Int64Range(int64(time.Second), int64(10*time.Minute)).Draw(t, "pollInterval"))
		samples := make([]scaling.Sample, len(p.Metrics))
		for i := range samples {
			samples[i] = valid(rapid.Float64Range(0, 200).Draw(t, "load") * p.Metrics[i].TargetPerReplica)
			p.Metrics[i].Behavior.DownMinInterval = min(p.Metrics[i].Behavior.DownMinInterval, 2*p.PollInterval)
		}
		l := newLoop(p, rapid.Int32Range(1, 120).Draw(t, "current"))
		d := l.at(0, samples...)
		demand, _ := boundedDemand(p, &d)
		begin, last := d.Replicas, d.Replicas
		horizon := 3*time.Hour + 400*p.PollInterval
		for at := p.PollInterval; at <= horizon; at += p.PollInterval {
			d = l.at(at, samples...)
			if demand >= begin {
				require.GreaterOrEqual(t, d.Replicas, last, "on the way up")
			} else {
				require.LessOrEqual(t, d.Replicas, last, "on the way down")
			}
			last = d.Replicas
			if last == demand && at > time.Hour+p.PollInterval {
				break
			}
		}
		require.Equal(t, demand, l.current, "the demand is reached")
		writes := l.writes
		for i := range 3 {
			l.at(l.now.Sub(start)+time.Duration(i+1)*p.PollInterval, samples...)
		}
		require.Equal(t, writes, l.writes, "and then nothing is written")
		require.False(t, d.PendingDown)
	})
}

func TestPropertyWakingEarlyGrantsNoStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := scaling.Behavior{
			UpMaxStep:   rapid.Int32Range(1, 10).Draw(t, "up"),
			DownMaxStep: rapid.Int32Range(1, 10).Draw(t, "down"),
		}
		p := perReplica100(b)
		p.MinReplicas, p.MaxReplicas = 1, 1000
		load := valid(float64(rapid.SampledFrom([]int{0, 100_000}).Draw(t, "load")))
		punctual, restless := newLoop(p, 500), newLoop(p, 500)
		for i := range rapid.IntRange(1, 10).Draw(t, "intervals") {
			begin := time.Duration(i) * poll
			want := punctual.at(begin, load).Replicas
			require.Equal(t, want, restless.at(begin, load).Replicas)
			for _, early := range rapid.SliceOfN(rapid.Int64Range(0, int64(poll)-1), 0, 5).Draw(t, "early") {
				// A clock that runs back and forth within the interval is fine, too.
				require.Equal(t, want, restless.at(begin+time.Duration(early), load).Replicas)
			}
			restless.at(begin+poll-time.Microsecond, load)
		}
	})
}

// exactWindow is the oracle: every demand with its time.
type exactWindow struct {
	at  []time.Time
	raw []int32
}

// max is the highest demand of the last so long.
func (w *exactWindow) max(now time.Time, length time.Duration) int32 {
	var highest int32
	for i, at := range w.at {
		if now.Sub(at) < length {
			highest = max(highest, w.raw[i])
		}
	}
	return highest
}

func TestPropertyWindowIsNeverEarlyAndAtMostATwelfthLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := time.Duration(rapid.Int64Range(1, int64(24*time.Hour/time.Microsecond)).Draw(t, "length")) * time.Microsecond
		if rapid.Bool().Draw(t, "usual") {
			length = time.Duration(rapid.Int64Range(1, 600).Draw(t, "seconds")) * time.Second
		}
		cell := (length + 11*time.Microsecond) / 12
		p := perReplica100(scaling.Behavior{DownStabilization: length})
		p.MinReplicas, p.MaxReplicas, p.PollInterval = 1, 1000, length // no gap counts as an outage
		const current = 1000

		var (
			memory scaling.Memory
			oracle exactWindow
		)
		now := start.Add(time.Duration(rapid.Int64Range(0, int64(length)).Draw(t, "offset"))).Truncate(time.Microsecond)
		begin := now
		for range rapid.IntRange(1, 80).Draw(t, "evaluations") {
			raw := rapid.Int32Range(1, 900).Draw(t, "raw")
			oracle.at, oracle.raw = append(oracle.at, now), append(oracle.raw, raw)
			var d scaling.Decision
			d, memory = scaling.Decide(p, observe(now, current, valid(float64(raw)*100)), memory)
			if covered := now.Sub(begin) >= length; !covered {
				require.Equal(t, int32(current), d.Replicas, "not covered")
			} else {
				require.GreaterOrEqual(t, d.Replicas, oracle.max(now, length), "never earlier than exact")
				require.LessOrEqual(t, d.Replicas, oracle.max(now, length+cell), "at most a twelfth later")
			}
			step := rapid.OneOf(
				rapid.Int64Range(0, int64(length)/4),
				rapid.Int64Range(0, int64(length)*2),
			).Draw(t, "step")
			now = now.Add(time.Duration(step)).Truncate(time.Microsecond)
		}
	})
}

func TestPropertyLongerWindowIsNeverEarlyAndAtMostATwelfthLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short := time.Duration(rapid.Int64Range(12, 60).Draw(t, "short")) * time.Second
		long := short * time.Duration(rapid.Int64Range(2, 8).Draw(t, "factor"))
		p := perReplica100(scaling.Behavior{DownStabilization: short})
		p.MinReplicas, p.MaxReplicas = 1, 1000
		const current = 1000
		var (
			memory scaling.Memory
			oracle exactWindow
		)
		step := (short / 12).Truncate(time.Microsecond) // the resolution of the memory
		for now := time.Duration(0); now < short+2*long; now += step {
			if now >= 2*short {
				p.Metrics[0].Behavior.DownStabilization = long
			}
			at := start.Add(now)
			raw := rapid.Int32Range(1, 900).Draw(t, "raw")
			oracle.at, oracle.raw = append(oracle.at, at), append(oracle.raw, raw)
			var d scaling.Decision
			d, memory = scaling.Decide(p, observe(at, current, valid(float64(raw)*100)), memory)
			if d.Replicas == current {
				require.Less(t, now, short+long, "covered at last")
				continue
			}
			length := p.Metrics[0].Behavior.DownStabilization
			require.GreaterOrEqual(t, d.Replicas, oracle.max(at, length), "never earlier than exact")
			require.LessOrEqual(t, d.Replicas, oracle.max(at, length+length/12+time.Microsecond), "at most a twelfth later")
		}
	})
}

// The window must stay safe under everything that happens to it, not only in
// steady use: clocks that jump, lengths that change, failures and outages.
func TestPropertyWindowIsNeverEarlyUnderDisturbance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := perReplica100(scaling.Behavior{})
		p.MinReplicas, p.MaxReplicas = 1, 1000
		const current = 1000
		var (
			memory scaling.Memory
			oracle exactWindow
		)
		// The oracle's clock never runs backwards; the policy's clock can.
		truth, skew := start.Add(24*time.Hour), time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(t, "evaluations") {
			length := time.Duration(rapid.SampledFrom([]int{60, 60, 300, 3600}).Draw(t, "length")) * time.Second
			p.Metrics[0].Behavior.DownStabilization = length
			if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
				skew -= time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "back")).Truncate(time.Microsecond)
			}
			sample := valid(float64(rapid.Int32Range(1, 900).Draw(t, "raw")) * 100)
			if rapid.IntRange(0, 9).Draw(t, "partial") == 0 {
				sample.Validity = scaling.ScaleUpOnly
			}
			var d scaling.Decision
			d, memory = scaling.Decide(p, observe(truth.Add(skew), current, sample), memory)
			oracle.at, oracle.raw = append(oracle.at, truth), append(oracle.raw, d.Metrics[0].Raw)
			require.GreaterOrEqual(t, d.Replicas, oracle.max(truth, length), "never earlier than exact")
			truth = truth.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "step")).Truncate(time.Microsecond))
		}
	})
}
