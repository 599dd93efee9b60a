package scaling_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// fullWindows returns a policy of so many metrics whose windows of 300 s are
// full, with every bucket that such a window can use.
func fullWindows(tb testing.TB, metrics int) (*scaling.Policy, *scaling.Observation, scaling.Memory) {
	tb.Helper()
	behaviors := make([]scaling.Behavior, metrics)
	for i := range behaviors {
		behaviors[i] = scaling.Behavior{UpMaxStep: 4, DownMaxStep: 1, DownStabilization: 300 * time.Second, DownMinInterval: time.Minute}
	}
	p := perReplica100(behaviors...)
	samples := make([]scaling.Sample, metrics)
	random := rand.New(rand.NewPCG(1, 2))
	var m scaling.Memory
	now := start
	for range 100 {
		for i := range samples {
			samples[i] = valid(random.Float64() * 1000)
		}
		_, m = scaling.Decide(p, observe(now, 10, samples...), m)
		now = now.Add(poll)
	}
	used := 0
	for _, b := range m.Windows[0].Buckets {
		if b.At != 0 {
			used++
		}
	}
	require.GreaterOrEqual(tb, used, 12, "buckets of a full window")
	return p, observe(now, 10, samples...), m
}

func TestDecideDoesNotAllocate(t *testing.T) {
	p, o, m := fullWindows(t, 2)
	var d scaling.Decision
	assert.Zero(t, testing.AllocsPerRun(1000, func() { d, m = scaling.Decide(p, o, m) }))
	assert.Equal(t, 2, d.ValidMetrics)
}

func benchmarkDecide(b *testing.B, metrics int) {
	b.Helper()
	p, o, m := fullWindows(b, metrics)
	b.ReportAllocs()
	for b.Loop() {
		o.Now = o.Now.Add(time.Millisecond)
		_, m = scaling.Decide(p, o, m)
	}
}

// BenchmarkDecide is the usual case: 2 metrics and a full window of 300 s.
func BenchmarkDecide(b *testing.B) { benchmarkDecide(b, 2) }

// BenchmarkDecideMaxMetrics is the largest policy.
func BenchmarkDecideMaxMetrics(b *testing.B) { benchmarkDecide(b, scaling.MaxMetrics) }
