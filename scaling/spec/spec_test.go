package spec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

func number(n int32) *int32 { return &n }

func policyOf(t *testing.T, a *v1alpha1.AutoScaler, profiles ...*v1alpha1.MetricProfile) scaling.Policy {
	t.Helper()
	p, err := Policy(a, profiles)
	require.NoError(t, err)
	return p
}

func TestPolicyTakesTheSpecsNumbers(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Bounds(3, 30).Poll(20).
		Steps(4, 1).Window(120).DownInterval(60).Metric("load", "total", "100m").Obj()

	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj())

	assert.Equal(t, int32(3), p.MinReplicas)
	assert.Equal(t, int32(30), p.MaxReplicas)
	assert.Equal(t, 20*time.Second, p.PollInterval)
	require.Len(t, p.Metrics, 1)
	assert.Equal(t, 0.1, p.Metrics[0].TargetPerReplica)
	assert.Equal(t, scaling.Behavior{
		UpMaxStep: 4, DownMaxStep: 1, DownStabilization: 2 * time.Minute, DownMinInterval: time.Minute,
	}, p.Metrics[0].Behavior)
}

func TestPolicyTakesDefaultsWhereTheSpecSaysNothing(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Poll(0).Metric("load", "total", "100").Obj()
	a.Spec.Behavior = nil

	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj())

	assert.Equal(t, 15*time.Second, p.PollInterval)
	assert.Equal(t, scaling.Behavior{DownStabilization: 5 * time.Minute}, p.Metrics[0].Behavior)
}

func TestAMetricsOwnBehaviorReplacesTheCommonOneAsAWhole(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Steps(4, 1).Window(120).
		Metric("own", "total", "100").Metric("common", "total", "100").Obj()
	a.Spec.Metrics[0].Behavior = &v1alpha1.Behavior{ScaleUpMaxStep: number(7)}

	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj(), builders.MakeMetricProfile("total").Obj())

	assert.Equal(t, scaling.Behavior{UpMaxStep: 7, DownStabilization: 5 * time.Minute}, p.Metrics[0].Behavior)
	assert.Equal(t, scaling.Behavior{UpMaxStep: 4, DownMaxStep: 1, DownStabilization: 2 * time.Minute}, p.Metrics[1].Behavior)
}

func TestAnUntranslatableNumberNamesItsField(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "1e-2147483648").Obj()
	_, err := Policy(a, []*v1alpha1.MetricProfile{nil})
	assert.ErrorContains(t, err, "spec.metrics[0].targetPerReplica")
}

func TestAWindowRestartsWhenWhatIsMeasuredOrHowChanges(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
	profile := builders.MakeMetricProfile("total").Obj()
	key := func(a *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) uint64 {
		return policyOf(t, a, p).Metrics[0].Key
	}
	before := key(a, profile)

	for name, tc := range map[string]struct {
		change  func(*v1alpha1.AutoScaler, *v1alpha1.MetricProfile)
		restart bool
	}{
		"another query":         {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Query = "up" }, true},
		"another endpoint":      {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Endpoint = "other" }, true},
		"another target number": {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.Metrics[0].TargetPerReplica = "50" }, true},
		"a longer window": {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) {
			a.Spec.Behavior.ScaleDownStabilizationSeconds = number(600)
		}, true},
		"another name":         {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.Metrics[0].Name = "other" }, true},
		"other bounds":         {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.MaxReplicas = 50 }, false},
		"another step":         {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.Behavior.ScaleUpMaxStep = number(9) }, false},
		"another deadline":     {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.TimeoutSeconds = 9 }, false},
		"another namespace in": {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.AllowedNamespaces = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, profile := a.DeepCopy(), profile.DeepCopy()
			tc.change(a, profile)
			assert.Equal(t, tc.restart, key(a, profile) != before)
		})
	}
}

func TestQueryIsRenderedForOneDeploymentWithinThePollInterval(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Poll(5).Metric("load", "total", "100").Obj()
	profile := builders.MakeMetricProfile("total").Query("sum(rate(x{namespace=$namespace,deployment=$target}[1m]))").Obj()
	profile.Spec.TimeoutSeconds = 60

	q, err := Query(a, 0, profile)

	require.NoError(t, err)
	assert.Equal(t, "main", q.Endpoint)
	assert.Equal(t, `sum(rate(x{namespace="production",deployment="web"}[1m]))`, q.Expr)
	assert.Equal(t, 5*time.Second, q.Timeout, "never longer than the poll interval")
	assert.Equal(t, 45*time.Second, q.MaxAge)
}

func TestMemorySurvivesTheStatusUnchanged(t *testing.T) {
	micros := rapid.Int64Range(1, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, scaling.MaxMetrics).Draw(t, "metrics")
		m := scaling.Memory{
			Target:   rapid.StringMatching(`[a-z0-9-]{1,36}`).Draw(t, "target"),
			Observed: micros.Draw(t, "observed"),
			LastDown: micros.Draw(t, "last down"),
			Up:       scaling.Step{At: micros.Draw(t, "up"), Base: rapid.Int32().Draw(t, "up base")},
			Down:     scaling.Step{At: micros.Draw(t, "down"), Base: rapid.Int32().Draw(t, "down base")},
		}
		for i := range n {
			w := &m.Windows[i]
			w.Key, w.Since = rapid.Uint64().Draw(t, "key"), micros.Draw(t, "since")
			for j := range rapid.IntRange(0, len(w.Buckets)).Draw(t, "buckets") {
				w.Buckets[j] = scaling.Bucket{At: micros.Draw(t, "at"), Max: rapid.Int32Min(0).Draw(t, "max")}
			}
		}

		stored, err := json.Marshal(MemoryStatus(&m, n))
		if err != nil {
			t.Fatal(err)
		}
		var back v1alpha1.DecisionMemory
		if err := json.Unmarshal(stored, &back); err != nil {
			t.Fatal(err)
		}
		if got := Memory(&back); got != m {
			t.Fatalf("got %+v, want %+v", got, m)
		}
	})
}

func TestAMemoryPastTheBoundsIsCutAndNotTrusted(t *testing.T) {
	s := &v1alpha1.DecisionMemory{TargetUID: "d", Windows: make([]v1alpha1.WindowMemory, 50)}
	for i := range s.Windows {
		s.Windows[i].Key = "not hexadecimal"
		s.Windows[i].Buckets = make([]v1alpha1.BucketMemory, 500)
	}
	m := Memory(s)
	assert.Equal(t, "d", m.Target)
	assert.Equal(t, [scaling.MaxMetrics]scaling.Window{}, m.Windows)
	assert.Equal(t, scaling.Memory{}, Memory(nil))
}

func TestTraceExplainsEachMetric(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Steps(4, 1).Metric("load", "total", "100").Metric("queue", "other", "10").Obj()
	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj(), builders.MakeMetricProfile("other").Obj())
	o := scaling.Observation{
		Now: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC), Target: "d", Current: 2,
		Samples: []scaling.Sample{{Value: 900, Validity: scaling.Valid}, {Reason: "NoData"}},
	}
	d, _ := scaling.Decide(&p, &o, scaling.Memory{})

	trace := Trace(&p, &o, &d)

	assert.Equal(t, int32(2), trace.Current)
	assert.Equal(t, int32(6), trace.Result)
	assert.Equal(t, "ScaleUpStep", trace.Rule)
	assert.Equal(t, []v1alpha1.MetricTrace{
		{Name: "load", Validity: "Valid", Raw: 9, Bounded: 9, Stabilized: 9, Limited: 6, Rule: "ScaleUpStep"},
		{Name: "queue", Validity: "Invalid", Reason: "NoData"},
	}, trace.Metrics)
}
