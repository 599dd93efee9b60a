package scaling_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/scaling"
)

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

// min is the lowest demand of the last so long.
func (w *exactWindow) min(now time.Time, length time.Duration) int32 {
	lowest := int32(math.MaxInt32)
	for i, at := range w.at {
		if now.Sub(at) < length {
			lowest = min(lowest, w.raw[i])
		}
	}
	return lowest
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
