package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

// store puts production/web, with the status of an earlier process, and its Deployment
// with 5 replicas, 4 of them ready, into the cache.
func (f *telling) store(change func(a *v1alpha1.AutoScaler)) {
	a := builders.MakeAutoScaler("production", "web").UID("a").Bounds(2, 20).Obj()
	a.Status = v1alpha1.AutoScalerStatus{
		RecommendedReplicas: number(30), DesiredReplicas: number(20), AppliedReplicas: number(5),
		LastDecision: &v1alpha1.DecisionTrace{MinReplicas: 3, MaxReplicas: 25},
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonManaging},
			{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotLimited},
			{Type: v1alpha1.ConditionBound, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotEvaluated},
		},
	}
	change(a)
	f.cache.autoscalers = append(f.cache.autoscalers, *a)
	d := builders.Deployment("production", "web", 5)
	d.UID, d.Status.ReadyReplicas = "d", 4
	f.cache.deployments[web] = d
}

func unchanged(*v1alpha1.AutoScaler) {}

// value is that of the one series of a metric of production/web; -99: there is none.
func (f *telling) value(name string) float64 {
	f.t.Helper()
	series := f.series(name)
	if value, ok := series["/web/production"]; ok {
		require.Len(f.t, series, 1)
		return value
	}
	require.Empty(f.t, series)
	return -99
}

func TestTheSeriesOfAnAutoScalerComeFromItsStatusUntilThisLeaderDecides(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(unchanged)
	for name, want := range map[string]float64{
		"autoscale_recommended_replicas": 30, "autoscale_desired_replicas": 20, "autoscale_applied_replicas": 5,
		"autoscale_target_replicas": 5, "autoscale_ready_replicas": 4,
		"autoscale_min_replicas": 3, "autoscale_max_replicas": 25,
		"autoscale_scale_down_window_covered": -99, "autoscale_shadow_replicas": -99, "autoscale_contention_changes": -99,
	} {
		assert.Equal(t, want, f.value(name), name)
	}
	assert.Equal(t, map[string]float64{"/web/web/Active/production": 1}, f.series("autoscale_autoscaler_info"), "labels sort by name")
	assert.Equal(t, map[string]float64{"/web/production/Ready": 1, "/web/production/ScalingLimited": 0, "/web/production/Bound": -1}, f.series("autoscale_condition"))
	assert.Equal(t, map[string]float64{
		"/Managing/True/Ready": 1, "/NotLimited/False/ScalingLimited": 1, "/NotEvaluated/Unknown/Bound": 1,
	}, f.series("autoscale_autoscalers"))

	f.evaluate(7)
	assert.Equal(t, 7.0, f.value("autoscale_recommended_replicas"), "the status is written less often than a decision is made")
	assert.Equal(t, 7.0, f.value("autoscale_desired_replicas"))
	assert.Equal(t, 2.0, f.value("autoscale_min_replicas"))
	assert.Equal(t, 20.0, f.value("autoscale_max_replicas"))
}

func TestTheBoundsAreTheSpecsWhereNothingWasDecided(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(func(a *v1alpha1.AutoScaler) { a.Status = v1alpha1.AutoScalerStatus{} })
	assert.Equal(t, 2.0, f.value("autoscale_min_replicas"))
	assert.Equal(t, 20.0, f.value("autoscale_max_replicas"))
	assert.Equal(t, -99.0, f.value("autoscale_recommended_replicas"), "unknown is not 0")
}

func TestWithoutAUsableMetricThereIsNoRecommendation(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(unchanged)
	f.evaluate(5, func(e *evaluation) {
		e.decision.Metrics[0] = scaling.MetricTrace{}
		e.decision.Rule, e.decision.Recommended, e.decision.ValidMetrics = scaling.RuleAllMetricsInvalid, 0, 0
	})
	assert.Equal(t, -99.0, f.value("autoscale_recommended_replicas"))
	assert.Equal(t, 5.0, f.value("autoscale_desired_replicas"))
}

func TestTheScaleDownWindowIsCoveredWhenEveryMetricsIs(t *testing.T) {
	since := func(ages ...time.Duration) func(*evaluation) {
		return func(e *evaluation) {
			e.policy.Metrics = make([]scaling.Metric, len(ages))
			for i, age := range ages {
				e.policy.Metrics[i].Behavior.DownStabilization = 5 * time.Minute
				if age >= 0 {
					e.record.memory.Windows[i].Down.Since = noon.Add(-age).UnixMicro()
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*evaluation)
		now    float64
		later  float64 // after a minute without a decision
	}{
		"no window":            {func(*evaluation) {}, 1, 1},
		"begun just now":       {since(0), 0, 0},
		"covered":              {since(5 * time.Minute), 1, 1},
		"covered in a minute":  {since(4 * time.Minute), 0, 1},
		"one of two":           {since(5*time.Minute, time.Minute), 0, 0},
		"one has not begun":    {since(5*time.Minute, -1), 0, 0},
		"both of two, at last": {since(5*time.Minute, 4*time.Minute), 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := tellingAt(t)
			defer f.lead()()
			f.store(unchanged)
			f.evaluate(5, tc.change)
			assert.Equal(t, tc.now, f.value("autoscale_scale_down_window_covered"))
			f.after(time.Minute)
			assert.Equal(t, tc.later, f.value("autoscale_scale_down_window_covered"))
		})
	}
}

func TestADryRunTellsOfItsCountAndHowFarItIsFromTheDeployments(t *testing.T) {
	shadow := func(of types.UID, dryRun bool) func(a *v1alpha1.AutoScaler) {
		return func(a *v1alpha1.AutoScaler) {
			a.Spec.DryRun = dryRun
			a.Status.Shadow = &v1alpha1.Shadow{TargetUID: of, Replicas: 8, Divergence: 1}
		}
	}
	for name, tc := range map[string]struct {
		change           func(a *v1alpha1.AutoScaler)
		count, differing float64
	}{
		"a dry run":                        {shadow("d", true), 8, 3},
		"of a Deployment that is gone":     {shadow("old", true), -99, -99},
		"left behind by an earlier dryRun": {shadow("d", false), -99, -99},
	} {
		t.Run(name, func(t *testing.T) {
			f := tellingAt(t)
			defer f.lead()()
			f.store(tc.change)
			assert.Equal(t, tc.count, f.value("autoscale_shadow_replicas"))
			assert.Equal(t, tc.differing, f.value("autoscale_shadow_divergence_replicas"), "of the count that the Deployment has now")
		})
	}
}

func TestTheModeIsWhatTheSpecAsksFor(t *testing.T) {
	until := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(d))) }
	for name, tc := range map[string]struct {
		change func(a *v1alpha1.AutoScaler)
		want   string
	}{
		"managing":             {unchanged, "Active"},
		"paused":               {func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }, "Paused"},
		"paused until later":   {func(a *v1alpha1.AutoScaler) { a.Spec.Paused, a.Spec.PausedUntil = true, until(time.Second) }, "Paused"},
		"a pause that is over": {func(a *v1alpha1.AutoScaler) { a.Spec.Paused, a.Spec.PausedUntil = true, until(0) }, "Active"},
		"a paused dry run":     {func(a *v1alpha1.AutoScaler) { a.Spec.Paused, a.Spec.DryRun = true, true }, "DryRun"},
	} {
		t.Run(name, func(t *testing.T) {
			f := tellingAt(t)
			defer f.lead()()
			f.store(tc.change)
			assert.Equal(t, map[string]float64{"/web/web/" + tc.want + "/production": 1}, f.series("autoscale_autoscaler_info"))
		})
	}
}

func TestContentionIsToldWhileThereIsOne(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(func(a *v1alpha1.AutoScaler) { a.Status.Contention = &v1alpha1.Contention{Changes: 3} })
	assert.Equal(t, 3.0, f.value("autoscale_contention_changes"))
}

func TestAMissingDeploymentHasNoCount(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(unchanged)
	delete(f.cache.deployments, web)
	assert.Equal(t, -99.0, f.value("autoscale_target_replicas"))
	assert.Equal(t, -99.0, f.value("autoscale_ready_replicas"))
	assert.Equal(t, 25.0, f.value("autoscale_max_replicas"))
}

func TestOnlyTheLeaderTellsOfAutoScalers(t *testing.T) {
	f := tellingAt(t)
	f.store(unchanged)
	assert.Equal(t, -99.0, f.value("autoscale_target_replicas"))
	assert.Equal(t, map[string]float64{"": 0}, f.series("autoscale_leader"))
	end := f.lead()
	assert.Equal(t, 5.0, f.value("autoscale_target_replicas"))
	assert.Equal(t, map[string]float64{"": 1}, f.series("autoscale_leader"))
	end()
	assert.Equal(t, -99.0, f.value("autoscale_target_replicas"))
	assert.Equal(t, map[string]float64{"": 0}, f.series("autoscale_leader"))
}

func TestTheSeriesOfAnAutoScalerVanishWithIt(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(unchanged)
	f.evaluate(5)
	require.Equal(t, 5.0, f.value("autoscale_recommended_replicas"))
	f.cache.autoscalers = nil // before the reconciler has seen it
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(f.Telemetry))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				assert.NotContains(t, []string{"namespace", "autoscaler"}, l.GetName(), family.GetName())
			}
		}
	}
}

// fleetOf is a leader with so many AutoScalers, each decided about, whose status is what
// one is usually.
func fleetOf(b *testing.B, count int) *Telemetry {
	b.Helper()
	cache := &cacheOf{deployments: map[types.NamespacedName]*appsv1.Deployment{}}
	t := NewTelemetry(cache, testingclock.NewFakePassiveClock(noon))
	for i := range count {
		name := fmt.Sprintf("service-%05d", i)
		a := builders.MakeAutoScaler("production", name).UID(name).Target(name).Obj()
		a.Status.AppliedReplicas = number(5)
		for _, kind := range []string{"Ready", "Bound", "TargetAvailable", "MetricsAvailable", "AbleToScale", "ScalingLimited"} {
			a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Managing"})
		}
		cache.autoscalers = append(cache.autoscalers, *a)
		cache.deployments[nameOf(a)] = builders.Deployment("production", name, 5)
		t.begins(a)
		t.seen[nameOf(a)].decided, t.seen[nameOf(a)].recommended = noon, number(5)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- t.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-done)
	})
	for t.leading.Load() == nil {
		runtime.Gosched()
	}
	return t
}

func BenchmarkScrape(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			registry := prometheus.NewRegistry()
			require.NoError(b, registry.Register(fleetOf(b, count)))
			handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
			request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				size = answer.Body.Len()
			}
			b.ReportMetric(float64(size)/float64(count), "B/autoscaler")
		})
	}
}
