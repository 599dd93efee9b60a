package spec

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

// noon of a day on which no clock is changed.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func number(n int32) *int32 { return &n }

func policyOf(t *testing.T, a *v1alpha1.AutoScaler, profiles ...*v1alpha1.MetricProfile) scaling.Policy {
	t.Helper()
	p, _, err := Policy(a, profiles, noon)
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

func TestWhatCannotBeTranslatedNamesItsField(t *testing.T) {
	for field, change := range map[string]func(*v1alpha1.AutoScalerSpec){
		"spec.metrics[0].targetPerReplica: ":       func(s *v1alpha1.AutoScalerSpec) { s.Metrics[0].TargetPerReplica = "1e-2147483648" },
		"spec.behavior.toleranceUp: ":              func(s *v1alpha1.AutoScalerSpec) { s.Behavior.ToleranceUp = "1e-2147483648" },
		"spec.behavior.toleranceDown: ":            func(s *v1alpha1.AutoScalerSpec) { s.Behavior.ToleranceDown = "1.5" },
		"spec.metrics[0].behavior.toleranceDown: ": func(s *v1alpha1.AutoScalerSpec) { s.Metrics[0].Behavior = &v1alpha1.Behavior{ToleranceDown: "-1"} },
		"spec.schedules[1].start: ":                func(s *v1alpha1.AutoScalerSpec) { s.Schedules[1].Start = "@daily" },
		"spec.schedules[1].timeZone: ":             func(s *v1alpha1.AutoScalerSpec) { s.Schedules[1].TimeZone = "Local" },
	} {
		a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
		a.Spec.Schedules = []v1alpha1.Schedule{{Name: "a", Start: "0 8 * * *", DurationSeconds: 60}, {Name: "b", Start: "0 8 * * *", DurationSeconds: 60}}
		change(&a.Spec)

		_, _, err := Policy(a, []*v1alpha1.MetricProfile{nil}, noon)

		require.Error(t, err, field)
		assert.Regexp(t, "^"+regexp.QuoteMeta(field), err.Error())
		assert.NotEmpty(t, ValidateAutoScaler(a, v1alpha1.DefaultLimits), "admission refuses it")
	}
}

func TestPolicyTakesAllOfBehaviorAndFallback(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
	a.Spec.Fallback = &v1alpha1.Fallback{FloorReplicas: 7, AfterSeconds: 600}
	a.Spec.Behavior = &v1alpha1.Behavior{
		ScaleUpMaxStep: number(1), ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 2, PeriodSeconds: 3}, ScaleUpStabilizationSeconds: number(4),
		ScaleDownMaxStep: number(5), ScaleDownStabilizationSeconds: number(6), ScaleDownMinIntervalSeconds: number(7),
		ToleranceUp: "0.1", ToleranceDown: "50m",
	}

	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj())

	assert.Equal(t, scaling.Fallback{FloorReplicas: 7, After: 10 * time.Minute}, p.Fallback)
	assert.Equal(t, scaling.Behavior{
		UpMaxStep: 1, UpRate: scaling.Rate{MaxReplicas: 2, Period: 3 * time.Second}, UpStabilization: 4 * time.Second,
		DownMaxStep: 5, DownStabilization: 6 * time.Second, DownMinInterval: 7 * time.Second,
		ToleranceUp: 0.1, ToleranceDown: 0.05,
	}, p.Metrics[0].Behavior)
}

func TestAMetricHasTheSemanticsOfItsProfile(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("a", "total", "1").Metric("b", "average", "1").Metric("c", "backlog", "1").Metric("d", "gone", "1").Obj()
	average, backlog := builders.MakeMetricProfile("average").Obj(), builders.MakeMetricProfile("backlog").Obj()
	average.Spec.Semantics = v1alpha1.SemanticsPerReplicaAverage
	backlog.Spec.Semantics, backlog.Spec.ClearanceSeconds = v1alpha1.SemanticsBacklog, 90

	p := policyOf(t, a, builders.MakeMetricProfile("total").Obj(), average, backlog)

	assert.Equal(t, scaling.Total, p.Metrics[0].Semantics)
	assert.Equal(t, scaling.PerReplicaAverage, p.Metrics[1].Semantics)
	assert.Equal(t, scaling.Backlog, p.Metrics[2].Semantics)
	assert.Equal(t, 90*time.Second, p.Metrics[2].Clearance)
	assert.Equal(t, scaling.Total, p.Metrics[3].Semantics, "nothing is asked for it, so this means nothing")
}

func TestAProfileThatCannotBeUsedSpoilsNoOtherMetric(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("broken", "backlog", "1").Metric("load", "total", "100").Obj()
	broken := builders.MakeMetricProfile("backlog").Obj()
	for _, change := range []func(*v1alpha1.MetricProfileSpec){
		func(s *v1alpha1.MetricProfileSpec) { s.Semantics = v1alpha1.SemanticsBacklog },
		func(s *v1alpha1.MetricProfileSpec) { s.Semantics, s.ClearanceSeconds = v1alpha1.SemanticsBacklog, -1 },
		func(s *v1alpha1.MetricProfileSpec) { s.Semantics, s.ClearanceSeconds = "Mean", -1 },
		func(s *v1alpha1.MetricProfileSpec) { *s = v1alpha1.MetricProfileSpec{} },
	} {
		change(&broken.Spec)
		require.NotEmpty(t, ValidateMetricProfile(broken))
		p := policyOf(t, a, broken, builders.MakeMetricProfile("total").Obj())
		o := scaling.Observation{Now: noon, Target: "d", Current: 2, Samples: []scaling.Sample{{Reason: "ProfileInvalid"}, {Value: 900, Validity: scaling.Valid}}}

		d, _ := scaling.Decide(&p, &o, scaling.Memory{})

		assert.Equal(t, int32(9), d.Replicas)
		assert.Equal(t, "ProfileInvalid", d.Metrics[0].Reason)
	}
}

func TestAWindowRestartsWhenWhatIsMeasuredOrHowChanges(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
	profile := builders.MakeMetricProfile("total").Obj()
	profile.Spec.Parameters = []v1alpha1.ProfileParameter{{Name: "queue", Values: []v1alpha1.ParameterValue{"a", "b"}, Default: "a"}}
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
		"another window of the scale-up": {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) {
			a.Spec.Behavior.ScaleUpStabilizationSeconds = number(60)
		}, true},
		"another parameter": {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) {
			a.Spec.Metrics[0].Parameters = map[string]string{"queue": "b"}
		}, true},
		"the default, written out": {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) {
			a.Spec.Metrics[0].Parameters = map[string]string{"queue": "a"}
		}, false},
		"another default":       {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Parameters[0].Default = "b" }, true},
		"another meaning":       {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Semantics = v1alpha1.SemanticsBacklog }, true},
		"another clearance":     {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.ClearanceSeconds = 5 }, true},
		"another arrival rate":  {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.ArrivalRateQuery = "up" }, true},
		"nothing means no load": {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.OnEmpty = v1alpha1.EmptyZero }, true},
		"a series per target":   {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Series = v1alpha1.SeriesPerTarget }, true},
		"another name":          {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.Metrics[0].Name = "other" }, true},
		"other bounds":          {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.MaxReplicas = 50 }, false},
		"a tolerance":           {func(a *v1alpha1.AutoScaler, _ *v1alpha1.MetricProfile) { a.Spec.Behavior.ToleranceUp = "0.1" }, false},
		"another bound of age": {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) {
			p.Spec.Freshness = &v1alpha1.Freshness{Query: "up"}
		}, false},
		"a budget":             {func(_ *v1alpha1.AutoScaler, p *v1alpha1.MetricProfile) { p.Spec.Budget = 6 }, false},
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

func TestTraceExplainsEachMetric(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Steps(4, 1).Metric("load", "total", "100").Metric("queue", "other", "10").Obj()
	a.Spec.Schedules = []v1alpha1.Schedule{
		{Name: "no-downs", Start: "0 12 * * *", DurationSeconds: 60, Freeze: v1alpha1.FreezeScaleDown},
		{Name: "later", Start: "0 13 * * *", DurationSeconds: 60, Freeze: v1alpha1.FreezeAll},
		{Name: "larger", Start: "0 12 * * *", DurationSeconds: 60, MaxReplicas: number(40)},
	}
	p, in, err := Policy(a, []*v1alpha1.MetricProfile{builders.MakeMetricProfile("total").Obj(), builders.MakeMetricProfile("other").Obj()}, noon)
	require.NoError(t, err)
	o := scaling.Observation{
		Now: noon, Target: "d", Current: 2,
		Samples: []scaling.Sample{{Value: 900, Ready: 1, Validity: scaling.Valid}, {Reason: "NoData"}},
	}
	d, _ := scaling.Decide(&p, &o, scaling.Memory{})

	trace := Trace(&p, in, &o, &d)

	assert.Equal(t, noon, trace.Time.Time)
	assert.Equal(t, int32(2), trace.Current)
	assert.Equal(t, int32(2), trace.MinReplicas)
	assert.Equal(t, int32(40), trace.MaxReplicas)
	assert.Equal(t, []string{"no-downs", "larger"}, trace.Schedules)
	assert.Equal(t, "ScaleDown", trace.Freeze)
	assert.Equal(t, int32(6), trace.Result)
	assert.Equal(t, "ScaleUpStep", trace.Rule)
	assert.Equal(t, []v1alpha1.MetricTrace{
		{Name: "load", Validity: "Valid", Raw: 9, Tolerated: 9, Bounded: 9, Stabilized: 9, Limited: 6, Rule: "ScaleUpStep"},
		{Name: "queue", Validity: "Invalid", Reason: "NoData"},
	}, trace.Metrics)
}
