package scaling_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

func drawBehavior(t *rapid.T) scaling.Behavior {
	return scaling.Behavior{
		UpMaxStep:         rapid.SampledFrom([]int32{0, 1, 2, 4, 50, math.MaxInt32}).Draw(t, "upMaxStep"),
		DownMaxStep:       rapid.SampledFrom([]int32{0, 1, 2, 4, 50, math.MaxInt32}).Draw(t, "downMaxStep"),
		DownStabilization: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "stabilization")),
		DownMinInterval:   time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "minInterval")),
		UpStabilization:   time.Duration(rapid.SampledFrom([]int64{0, 0, 1, int64(time.Minute), int64(time.Hour)}).Draw(t, "upStabilization")),
		UpRate:            drawRate(t),
		ToleranceUp:       drawShare(t, "toleranceUp"),
		ToleranceDown:     drawShare(t, "toleranceDown"),
	}
}

func drawRate(t *rapid.T) scaling.Rate {
	if rapid.Bool().Draw(t, "noRate") {
		return scaling.Rate{}
	}
	return scaling.Rate{
		MaxReplicas: rapid.SampledFrom([]int32{1, 3, 10, math.MaxInt32}).Draw(t, "rate"),
		Period:      time.Duration(rapid.Int64Range(1, int64(scaling.MaxRatePeriod)).Draw(t, "period")),
	}
}

func drawShare(t *rapid.T, label string) float64 {
	return rapid.OneOf(rapid.Just(0.0), rapid.SampledFrom([]float64{0.1, 1}), rapid.Float64Range(0, 1)).Draw(t, label)
}

func drawPolicy(t *rapid.T) *scaling.Policy {
	lo := rapid.Int32Range(1, 50).Draw(t, "min")
	p := &scaling.Policy{
		MinReplicas:  lo,
		MaxReplicas:  rapid.Int32Range(lo, 100).Draw(t, "max"),
		PollInterval: time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "poll")),
		Freeze:       scaling.Freeze(rapid.SampledFrom([]uint8{0, 0, 0, 1, 2}).Draw(t, "freeze")),
		Fallback: scaling.Fallback{
			FloorReplicas: rapid.SampledFrom([]int32{0, 1, 30, math.MaxInt32}).Draw(t, "floor"),
			After:         time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "after")),
		},
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "metrics") {
		p.Metrics = append(p.Metrics, scaling.Metric{
			Key:              uint64(i + 1),
			Semantics:        scaling.Semantics(rapid.Uint8Range(0, 2).Draw(t, "semantics")),
			Clearance:        time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "clearance")),
			TargetPerReplica: rapid.Float64Range(1e-9, 1e6).Draw(t, "target"),
			Behavior:         drawBehavior(t),
		})
	}
	return p
}

// drawSample mixes ordinary loads with values that no sampler should let pass.
func drawSample(t *rapid.T) scaling.Sample {
	number := rapid.OneOf(
		rapid.Float64Range(0, 1e8),
		rapid.Float64(),
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}),
	)
	return scaling.Sample{
		Value:       number.Draw(t, "value"),
		ArrivalRate: number.Draw(t, "arrivals"),
		Validity:    scaling.Validity(rapid.SampledFrom([]uint8{0, 1, 2, 2, 2, 2, 3}).Draw(t, "validity")),
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

		AllInvalidSince: anyTime.Draw(t, "allInvalidSince"),

		Up:   scaling.Step{At: anyTime.Draw(t, "upAt"), Base: rapid.Int32().Draw(t, "upBase")},
		Down: scaling.Step{At: anyTime.Draw(t, "downAt"), Base: rapid.Int32().Draw(t, "downBase")},
	}
	for i := range m.Ups {
		if rapid.Bool().Draw(t, "hasUp") {
			m.Ups[i] = scaling.Up{At: anyTime.Draw(t, "at"), Added: rapid.Int32().Draw(t, "added")}
		}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "windows") {
		w := &m.Windows[i]
		w.Key = rapid.Uint64Range(0, 5).Draw(t, "key")
		for _, h := range []*scaling.History{&w.Down, &w.Up} {
			h.Since = anyTime.Draw(t, "since")
			for j := range h.At {
				h.At[j], h.Replicas[j] = anyTime.Draw(t, "at"), rapid.Int32().Draw(t, "replicas")
			}
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
	over(rapid.Int32Range(-1, 150).Draw(t, "ready"), o)
	return scene{p, o, drawMemory(t, p, now)}
}
