package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

// stored takes a memory through the JSON of a status, as a restart does.
func stored(t require.TestingT, m *scaling.Memory, n int) scaling.Memory {
	text, err := json.Marshal(MemoryStatus(m, n))
	require.NoError(t, err)
	var back v1alpha1.DecisionMemory
	require.NoError(t, json.Unmarshal(text, &back))
	return Memory(&back)
}

func TestMemorySurvivesTheStatusUnchanged(t *testing.T) {
	micros := rapid.Int64Range(1, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	history := func(t *rapid.T) (h scaling.History) {
		h.Since = micros.Draw(t, "since")
		for j := range rapid.IntRange(0, len(h.At)).Draw(t, "buckets") {
			h.At[j], h.Replicas[j] = micros.Draw(t, "at"), rapid.Int32Min(0).Draw(t, "replicas")
		}
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, scaling.MaxMetrics).Draw(t, "metrics")
		m := scaling.Memory{
			Target:   rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "target"),
			Observed: micros.Draw(t, "observed"),
			LastDown: micros.Draw(t, "last down"),
			Up:       scaling.Step{At: micros.Draw(t, "up"), Base: rapid.Int32().Draw(t, "up base")},
			Down:     scaling.Step{At: micros.Draw(t, "down"), Base: rapid.Int32().Draw(t, "down base")},
		}
		if rapid.Bool().Draw(t, "all invalid") {
			m.AllInvalidSince = micros.Draw(t, "since")
		}
		for i := range rapid.IntRange(0, len(m.Ups)).Draw(t, "ups") {
			m.Ups[i] = scaling.Up{At: micros.Draw(t, "at"), Added: rapid.Int32Min(1).Draw(t, "added")}
		}
		for i := range n {
			w := &m.Windows[i]
			w.Key, w.Down = rapid.Uint64().Draw(t, "key"), history(t)
			if rapid.Bool().Draw(t, "up window") {
				w.Up = history(t)
			}
		}

		if got := stored(t, &m, n); got != m {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}

func TestAMemoryPastTheBoundsIsCutAndNotTrusted(t *testing.T) {
	at := metav1.NewMicroTime(noon)
	s := &v1alpha1.DecisionMemory{
		TargetUID: "d", ObservedTime: at,
		AllInvalidSince: &metav1.MicroTime{}, LastScaleDownTime: &metav1.MicroTime{},
		StepUp:    &v1alpha1.StepMemory{},
		RecentUps: make([]v1alpha1.UpMemory, 500),
		Windows:   make([]v1alpha1.WindowMemory, 50),
	}
	for i := range s.Windows {
		s.Windows[i] = v1alpha1.WindowMemory{Key: "not hexadecimal", Since: at, Buckets: make([]v1alpha1.BucketMemory, 500)}
	}
	for i := range s.RecentUps {
		s.RecentUps[i] = v1alpha1.UpMemory{Time: at, Replicas: int32(i) - 100}
	}
	buckets := make([]v1alpha1.BucketMemory, 500)
	for i := range buckets {
		buckets[i] = v1alpha1.BucketMemory{Time: at, Replicas: int32(i) - 100}
	}
	s.Windows[1] = v1alpha1.WindowMemory{Key: "ff", Since: at, Buckets: buckets, UpSince: &metav1.MicroTime{}, UpBuckets: buckets}

	m := Memory(s)

	assert.Equal(t, "d", m.Target)
	assert.Equal(t, noon.UnixMicro(), m.Observed)
	assert.Zero(t, m.AllInvalidSince, "a time before 1970 is none")
	assert.Zero(t, m.LastDown)
	assert.Zero(t, m.Up)
	for i, up := range m.Ups {
		assert.Equal(t, scaling.Up{At: noon.UnixMicro(), Added: int32(i) + 1}, up)
	}
	assert.Zero(t, m.Windows[0])
	assert.Equal(t, uint64(0xff), m.Windows[1].Key)
	assert.Equal(t, noon.UnixMicro(), m.Windows[1].Down.Since)
	assert.Zero(t, m.Windows[1].Up.Since)
	for i, at := range m.Windows[1].Down.At {
		assert.Equal(t, noon.UnixMicro(), at)
		assert.Equal(t, int32(i), m.Windows[1].Down.Replicas[i])
	}
	for _, w := range m.Windows[2:] {
		assert.Zero(t, w)
	}
	assert.Equal(t, scaling.Memory{}, Memory(nil))
}

// previousStatus is as the release before wrote it: of a low demand for longer than the
// window, without what there is now.
const previousStatus = `{
	"targetUID": "d", "observedTime": "2026-11-29T11:59:45.000000Z", "lastScaleDownTime": "2026-11-29T11:50:00.000000Z",
	"stepDown": {"time": "2026-11-29T11:50:00.000000Z", "base": 11},
	"windows": [{"key": "%x", "since": "2026-11-29T11:54:45.000000Z", "buckets": [{"time": "2026-11-29T11:59:45.000000Z", "replicas": 2}]}]
}`

func TestAStatusOfThePreviousReleaseHastensNothing(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Bounds(2, 20).Metric("load", "total", "100").Obj()
	a.Spec.Behavior = &v1alpha1.Behavior{ScaleUpStabilizationSeconds: number(120)}
	a.Spec.Fallback = &v1alpha1.Fallback{FloorReplicas: 15, AfterSeconds: 60}
	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj())
	decide := func(key uint64, value float64, validity scaling.Validity) scaling.Decision {
		var s v1alpha1.DecisionMemory
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, previousStatus, key), &s))
		d, _ := scaling.Decide(&p, &scaling.Observation{
			Now: noon, Target: "d", Current: 10, Samples: []scaling.Sample{{Value: value, Validity: validity}},
		}, Memory(&s))
		return d
	}
	former := fnv.New64a() // what the key was made of
	fmt.Fprintf(former, "%q %q %q %d %q %q %q", "load", "total", "100", 300*time.Second, "main", "up", "Total")

	down := decide(former.Sum64(), 200, scaling.Valid)
	assert.Equal(t, int32(10), down.Replicas)
	assert.Equal(t, scaling.RuleScaleDownStabilization, down.Rule, "another key: a full window is waited")
	assert.Equal(t, int32(2), decide(p.Metrics[0].Key, 200, scaling.Valid).Replicas, "the key alone makes the difference")
	up := decide(p.Metrics[0].Key, 1500, scaling.Valid)
	assert.Equal(t, int32(10), up.Replicas)
	assert.Equal(t, scaling.RuleScaleUpStabilization, up.Rule, "of the lowest demand nothing is known")
	silent := decide(p.Metrics[0].Key, 0, scaling.Invalid)
	assert.Equal(t, scaling.RuleAllMetricsInvalid, silent.Rule, "the silence begins now")
}

// inOrder puts the buckets in the order of their times: theirs means nothing.
func inOrder(m scaling.Memory) scaling.Memory {
	for i := range m.Windows {
		for _, h := range []*scaling.History{&m.Windows[i].Down, &m.Windows[i].Up} {
			type bucket struct {
				at       int64
				replicas int32
			}
			var buckets [len(h.At)]bucket
			for j := range buckets {
				buckets[j] = bucket{h.At[j], h.Replicas[j]}
			}
			slices.SortFunc(buckets[:], func(a, b bucket) int { return cmp.Compare(a.at, b.at) })
			for j, b := range buckets {
				h.At[j], h.Replicas[j] = b.at, b.replicas
			}
		}
	}
	return m
}

// drawPolicy gives one with short limits, so that a trace of minutes meets them all.
func drawPolicy(t *rapid.T) scaling.Policy {
	p := scaling.Policy{
		MinReplicas: rapid.Int32Range(1, 5).Draw(t, "min"), PollInterval: 15 * time.Second,
		Metrics: make([]scaling.Metric, rapid.IntRange(1, 3).Draw(t, "metrics")),
	}
	p.MaxReplicas = p.MinReplicas + rapid.Int32Range(0, 30).Draw(t, "max")
	if rapid.Bool().Draw(t, "fallback") {
		p.Fallback = scaling.Fallback{FloorReplicas: rapid.Int32Range(1, 20).Draw(t, "floor"), After: 45 * time.Second}
	}
	seconds := func(label string, of ...int) time.Duration {
		return time.Duration(rapid.SampledFrom(of).Draw(t, label)) * time.Second
	}
	share := rapid.SampledFrom([]float64{0, 0.1, 0.5})
	for i := range p.Metrics {
		p.Metrics[i] = scaling.Metric{
			Name: fmt.Sprint(i), Key: uint64(i) + 1, TargetPerReplica: 10,
			Semantics: rapid.SampledFrom([]scaling.Semantics{scaling.Total, scaling.PerReplicaAverage, scaling.Backlog}).Draw(t, "semantics"),
			Clearance: time.Minute,
			Behavior: scaling.Behavior{
				UpMaxStep: rapid.Int32Range(0, 4).Draw(t, "up step"), DownMaxStep: rapid.Int32Range(0, 4).Draw(t, "down step"),
				UpStabilization: seconds("up window", 0, 30, 120), DownStabilization: seconds("down window", 0, 30, 120),
				DownMinInterval: seconds("interval", 0, 40), ToleranceUp: share.Draw(t, "up"), ToleranceDown: share.Draw(t, "down"),
			},
		}
		if rapid.Bool().Draw(t, "rate") {
			p.Metrics[i].Behavior.UpRate = scaling.Rate{MaxReplicas: rapid.Int32Range(1, 6).Draw(t, "rate"), Period: seconds("period", 20, 60)}
		}
	}
	return p
}

// A memory that goes through the status as often as one likes decides like one that
// never left the process.
func TestDecisionsAreTheSameOfAMemoryFromTheStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		now, current := noon, rapid.Int32Range(1, 40).Draw(t, "current")
		var kept, restarted scaling.Memory
		for range rapid.IntRange(1, 60).Draw(t, "polls") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20_000_000).Draw(t, "µs")) * time.Microsecond)
			o := scaling.Observation{Now: now, Target: "d", Current: current}
			ready := rapid.Int32Range(0, current).Draw(t, "ready")
			for range p.Metrics {
				o.Samples = append(o.Samples, scaling.Sample{
					Value: rapid.Float64Range(0, 400).Draw(t, "value"), ArrivalRate: rapid.Float64Range(0, 400).Draw(t, "arrivals"), Ready: ready,
					Validity: rapid.SampledFrom([]scaling.Validity{scaling.Valid, scaling.Valid, scaling.Valid, scaling.ScaleUpOnly, scaling.Invalid}).Draw(t, "validity"),
				})
			}
			if rapid.Bool().Draw(t, "restart") {
				restarted = stored(t, &restarted, len(p.Metrics))
			}
			var first, second scaling.Decision
			first, kept = scaling.Decide(&p, &o, kept)
			second, restarted = scaling.Decide(&p, &o, restarted)

			if first != second {
				t.Fatalf("%+v of the memory in the process, %+v of that from the status", first, second)
			}
			if first.Replicas != current && rapid.Bool().Draw(t, "written") {
				kept = kept.Scaled(now, current, first.Replicas, p.PollInterval)
				restarted = restarted.Scaled(now, current, first.Replicas, p.PollInterval)
				current = first.Replicas
			}
			if inOrder(kept) != inOrder(restarted) {
				t.Fatalf("%+v in the process, %+v from the status", kept, restarted)
			}
		}
	})
}

func TestTheStatusHoldsWhatItsSchemaAllows(t *testing.T) {
	var m scaling.Memory
	m.Down = scaling.Step{At: 1, Base: math.MaxInt32}
	for i := range m.Ups {
		m.Ups[i] = scaling.Up{At: 1, Added: 1}
	}
	for i := range m.Windows {
		m.Windows[i].Key = math.MaxUint64
		for j := range m.Windows[i].Down.At {
			m.Windows[i].Down.At[j], m.Windows[i].Up.At[j] = 1, 1
		}
	}
	s := MemoryStatus(&m, scaling.MaxMetrics)
	assert.LessOrEqual(t, len(s.RecentUps), 32)
	assert.LessOrEqual(t, len(s.Windows), 10)
	for _, w := range s.Windows {
		assert.LessOrEqual(t, len(w.Key), 16)
		assert.LessOrEqual(t, len(w.Buckets), 16)
		assert.LessOrEqual(t, len(w.UpBuckets), 16)
	}
}
