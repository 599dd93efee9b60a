package scaling_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// full returns a policy of so many metrics with every rule in use, and a memory
// that is full: every bucket that a window can use, and every up.
func full(tb testing.TB, metrics int) (*scaling.Policy, *scaling.Observation, scaling.Memory) {
	tb.Helper()
	behaviors := make([]scaling.Behavior, metrics)
	for i := range behaviors {
		behaviors[i] = scaling.Behavior{
			UpMaxStep: 4, DownMaxStep: 1, UpRate: scaling.Rate{MaxReplicas: 40, Period: 10 * time.Minute},
			UpStabilization: time.Minute, DownStabilization: 300 * time.Second, DownMinInterval: time.Minute,
			ToleranceUp: 0.1, ToleranceDown: 0.05,
		}
	}
	p := floored(5, behaviors...)
	p.Freeze = scaling.FreezeScaleDown
	samples := make([]scaling.Sample, metrics)
	random := rand.New(rand.NewPCG(1, 2))
	m := scaling.Memory{}
	now := start
	for i := range 400 {
		for j := range samples {
			p.Metrics[j].Semantics, p.Metrics[j].Clearance = scaling.Semantics(j%3), time.Minute
			samples[j] = valid(random.Float64() * 1000)
			samples[j].ArrivalRate = random.Float64() * 1000
		}
		_, m = scaling.Decide(p, observe(now, 10, samples...), m)
		if i%4 == 0 {
			m = m.Scaled(now, 10, 11, p.PollInterval)
		}
		now = now.Add(4 * time.Second)
	}
	require.GreaterOrEqual(tb, used(&m.Windows[0].Down), 12, "buckets of a full window")
	require.GreaterOrEqual(tb, used(&m.Windows[0].Up), 12, "buckets of a full window")
	require.NotZero(tb, m.Ups[scaling.MaxUps-1], "the last place for an up")
	return p, observe(now, 10, samples...), m
}

func used(h *scaling.History) (n int) {
	for _, at := range h.At {
		if at != 0 {
			n++
		}
	}
	return n
}

func TestDecideDoesNotAllocate(t *testing.T) {
	p, o, m := full(t, 3)
	var d scaling.Decision
	assert.Zero(t, testing.AllocsPerRun(1000, func() { d, m = scaling.Decide(p, o, m) }))
	assert.Equal(t, 3, d.ValidMetrics)
}

func benchmarkDecide(b *testing.B, metrics int) {
	b.Helper()
	p, o, m := full(b, metrics)
	b.ReportAllocs()
	for b.Loop() {
		o.Now = o.Now.Add(time.Millisecond)
		_, m = scaling.Decide(p, o, m)
	}
}

// BenchmarkDecide is a policy of 3 metrics that uses every rule.
func BenchmarkDecide(b *testing.B) { benchmarkDecide(b, 3) }

// BenchmarkDecideMaxMetrics is the largest policy.
func BenchmarkDecideMaxMetrics(b *testing.B) { benchmarkDecide(b, scaling.MaxMetrics) }
