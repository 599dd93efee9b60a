package controller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

// cacheOf is a cache with these objects. As the real one it shares them with readers
// who ask for no copy.
type cacheOf struct {
	autoscalers []v1alpha1.AutoScaler
	profiles    []v1alpha1.MetricProfile
	deployments map[types.NamespacedName]*appsv1.Deployment
}

func (c *cacheOf) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *v1alpha1.AutoScalerList:
		list.Items = c.autoscalers
	case *v1alpha1.MetricProfileList:
		list.Items = c.profiles
	}
	return nil
}

func (c *cacheOf) Get(_ context.Context, key types.NamespacedName, into client.Object, _ ...client.GetOption) error {
	if d := c.deployments[key]; d != nil {
		*into.(*appsv1.Deployment) = *d
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name)
}

// telling is a Telemetry, its clock, and what it reads.
type telling struct {
	*Telemetry
	t     *testing.T
	clock *testingclock.FakePassiveClock
	cache *cacheOf
}

// tellingAt begins at noon; it does not lead.
func tellingAt(t *testing.T) *telling {
	t.Helper()
	c := &cacheOf{deployments: map[types.NamespacedName]*appsv1.Deployment{}}
	fake := testingclock.NewFakePassiveClock(noon)
	return &telling{Telemetry: NewTelemetry(c, fake), t: t, clock: fake, cache: c}
}

// lead makes it lead until the test, or the returned function, ends that.
func (f *telling) lead() (end func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Start(ctx) }()
	require.Eventually(f.t, func() bool { return f.leading.Load() != nil }, 10*time.Second, time.Millisecond)
	return func() {
		cancel()
		require.NoError(f.t, <-done)
	}
}

func (f *telling) after(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

// series are those of a metric: its labels' values, in their order of name, and its
// value; of a histogram, the sum of the observations.
func (f *telling) series(name string) map[string]float64 {
	f.t.Helper()
	all := map[string]float64{}
	for _, m := range f.gather(name) {
		key := ""
		for _, l := range m.GetLabel() {
			key += "/" + l.GetValue()
		}
		switch {
		case m.GetGauge() != nil:
			all[key] = m.GetGauge().GetValue()
		case m.GetCounter() != nil:
			all[key] = m.GetCounter().GetValue()
		default:
			all[key] = m.GetHistogram().GetSampleSum()
		}
	}
	return all
}

// observed are the number and the sum of a histogram's observations.
func (f *telling) observed(name string) (count int, sum float64) {
	f.t.Helper()
	metrics := f.gather(name)
	require.Len(f.t, metrics, 1)
	return int(metrics[0].GetHistogram().GetSampleCount()), metrics[0].GetHistogram().GetSampleSum() //nolint:gosec // a small number
}

func (f *telling) gather(name string) []*dto.Metric {
	f.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(f.t, registry.Register(f.Telemetry))
	families, err := registry.Gather()
	require.NoError(f.t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()
		}
	}
	return nil
}

// evaluation of the AutoScaler production/web, whose Deployment has 5 replicas, all
// ready, and whose one metric asks for so many.
func (f *telling) evaluation(result int32) *evaluation {
	a := builders.MakeAutoScaler("production", "web").UID("a").Obj()
	a.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	e := &evaluation{now: f.clock.Now(), before: a, autoscaler: a.DeepCopy(), holding: holdingOf("d")}
	e.target = target{key: types.NamespacedName{Namespace: "production", Name: "web"}, uid: "d", replicas: 5, ready: 5}
	e.policy = scaling.Policy{MinReplicas: 2, MaxReplicas: 20, PollInterval: 15 * time.Second, Metrics: make([]scaling.Metric, 1)}
	e.samples = []scaling.Sample{{Value: float64(result) * 100, Validity: scaling.Valid}}
	e.decision = scaling.Decision{Recommended: result, Desired: result, Replicas: result, TotalMetrics: 1, ValidMetrics: 1}
	e.decision.Metrics[0] = scaling.MetricTrace{Validity: scaling.Valid, Raw: result, Bounded: result, Stabilized: result, Limited: result}
	e.trace()
	e.ableToScale()
	return e
}

// trace puts the decision into the status again.
func (e *evaluation) trace() {
	o := scaling.Observation{Now: e.now, Current: e.target.replicas, Samples: e.samples}
	e.describe(&o)
}

// evaluate goes through an evaluation up to its decision.
func (f *telling) evaluate(result int32, change ...func(*evaluation)) *evaluation {
	e := f.evaluation(result)
	for _, c := range change {
		c(e)
	}
	e.trace()
	f.begins(e.before)
	f.decided(e)
	return e
}

var web = types.NamespacedName{Namespace: "production", Name: "web"}

func TestTheDecisionLagIsOfTheArrivalThatWokeAndOncePerArrival(t *testing.T) {
	f := tellingAt(t)
	f.evaluate(5)
	count, _ := f.observed("autoscale_decision_lag_seconds")
	require.Zero(t, count, "a spec's change woke it: it has no lag, however old the answers are")

	f.Woken(web)
	f.after(2 * time.Second)
	f.Woken(web)
	f.evaluate(5)
	count, sum := f.observed("autoscale_decision_lag_seconds")
	assert.Equal(t, 1, count)
	assert.Equal(t, 2.0, sum, "from the first of the arrivals that the queue made one evaluation of")

	f.after(time.Second)
	f.evaluate(5)
	count, _ = f.observed("autoscale_decision_lag_seconds")
	assert.Equal(t, 1, count, "woken between two arrivals")
}

func TestAnArrivalDuringAnEvaluationIsTheNextOnes(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(5)
	f.begins(e.before)
	f.Woken(web)
	f.after(time.Second)
	f.decided(e)
	count, _ := f.observed("autoscale_decision_lag_seconds")
	require.Zero(t, count)
	f.after(time.Second)
	f.evaluate(5)
	_, sum := f.observed("autoscale_decision_lag_seconds")
	assert.Equal(t, 2.0, sum)
}

func TestAnArrivalWhoseEvaluationDecidesNothingIsNoLagLater(t *testing.T) {
	f := tellingAt(t)
	f.Woken(web)
	f.begins(f.evaluation(5).before) // and ends, as the Deployment is missing
	f.after(time.Hour)
	f.evaluate(5)
	count, _ := f.observed("autoscale_decision_lag_seconds")
	assert.Zero(t, count)
}

func TestTakeoverIsToldOncePerAutoScalerThatWasThereBefore(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.after(3 * time.Second)
	f.evaluate(5)
	f.after(15 * time.Second)
	f.evaluate(5)
	count, sum := f.observed("autoscale_takeover_seconds")
	assert.Equal(t, 1, count)
	assert.Equal(t, 3.0, sum)

	created := f.evaluation(5).before
	created.Name, created.CreationTimestamp = "new", metav1.NewTime(noon.Add(time.Second))
	f.begins(created)
	f.evaluate(5, func(e *evaluation) { e.before, e.autoscaler.Name = created, "new" })
	count, _ = f.observed("autoscale_takeover_seconds")
	assert.Equal(t, 1, count, "nobody took that over")
}

func TestTheWriteLagIsFromTheDecisionToTheWrittenScale(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluate(8)
	f.after(30 * time.Millisecond)
	f.wrote(e)
	count, sum := f.observed("autoscale_write_lag_seconds")
	assert.Equal(t, 1, count)
	assert.InDelta(t, 0.03, sum, 1e-9)
	f.notWritten(v1alpha1.ReasonScaleConflict)
	assert.Equal(t, map[string]float64{"/written": 1, "/ScaleConflict": 1}, f.series("autoscale_scale_writes_total"))
}

func TestAScaleUpIsReadyWhenAnEvaluationSeesAllItsReplicasReady(t *testing.T) {
	has := func(replicas, ready int32) func(*evaluation) {
		return func(e *evaluation) { e.target.replicas, e.target.ready = replicas, ready }
	}
	for name, tc := range map[string]struct {
		meanwhile, then func(*evaluation)
		want            float64 // 0: not told
	}{
		"all ready":                         {has(8, 6), has(8, 8), 40},
		"one is missing":                    {has(8, 6), has(8, 7), 0},
		"a ramp went on, its first step is": {has(12, 6), has(12, 8), 40},
		"lowered by hand meanwhile":         {has(3, 3), has(8, 8), 0},
		"another Deployment of that name":   {func(e *evaluation) { e.target.uid = "new" }, has(8, 8), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := tellingAt(t)
			f.wrote(f.evaluate(8))
			f.after(20 * time.Second)
			f.evaluate(8, tc.meanwhile)
			f.after(20 * time.Second)
			f.evaluate(8, tc.then)
			_, sum := f.observed("autoscale_ready_lag_seconds")
			assert.Equal(t, tc.want, sum)
		})
	}
}

func TestAScaleDownEndsTheWaitForReadyReplicas(t *testing.T) {
	f := tellingAt(t)
	f.wrote(f.evaluate(8))
	f.wrote(f.evaluate(8, func(e *evaluation) { e.target.replicas = 9 }))
	f.after(time.Minute)
	f.evaluate(8, func(e *evaluation) { e.target.replicas, e.target.ready = 8, 8 })
	count, _ := f.observed("autoscale_ready_lag_seconds")
	assert.Zero(t, count)
}

func TestDecisionsAreCountedByDirectionAndLimit(t *testing.T) {
	f := tellingAt(t)
	f.evaluate(8)
	f.evaluate(5)
	f.evaluate(4, func(e *evaluation) { e.decision.Rule = scaling.RuleScaleDownStep })
	f.evaluate(20, func(e *evaluation) { e.decision.Rule = scaling.RuleMaxReplicas })
	assert.Equal(t, map[string]float64{"/up": 2, "/hold": 1, "/down": 1}, f.series("autoscale_decisions_total"))
	assert.Equal(t, map[string]float64{"/ScaleDownStepLimited": 1, "/AtMaxReplicas": 1}, f.series("autoscale_decisions_limited_total"))
}

func TestEveryRuleHasAReasonToBeCountedBy(t *testing.T) {
	for rule := scaling.RuleNone + 1; rule.String() != "Unknown"; rule++ {
		assert.NotEmpty(t, limits[rule].reason, rule)
	}
}

func TestFC3_SamplesAreCountedByReason(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(5)
	e.samples = []scaling.Sample{{Reason: "NoData"}, {Validity: scaling.Valid, Value: 1}, {Reason: v1alpha1.ReasonProfileNotFound}}
	orders := builders.MakeMetricProfile("orders").Obj()
	f.sampled(e, []*v1alpha1.MetricProfile{orders, orders, nil}, noon.Add(-4*time.Second))
	assert.Equal(t, map[string]float64{"/orders/NoData": 1, "/orders/Valid": 1, "//ProfileNotFound": 1}, f.series("autoscale_metric_samples_total"))
	_, age := f.observed("autoscale_sample_age_seconds")
	assert.Equal(t, 4.0, age)

	f.sampled(e, []*v1alpha1.MetricProfile{orders, orders, nil}, time.Time{})
	count, _ := f.observed("autoscale_sample_age_seconds")
	assert.Equal(t, 1, count, "without an answer there is no age")
}

func TestQueriesAreCountedByEndpointProfileAndReason(t *testing.T) {
	f := tellingAt(t)
	f.Asked("orders", "main", "", 40*time.Millisecond)
	f.Asked("orders", "main", "Timeout", 2*time.Second)
	f.Delayed("orders", "main")
	assert.Equal(t, map[string]float64{"/main/orders/Answered": 1, "/main/orders/Timeout": 1}, f.series("autoscale_queries_total"))
	assert.Equal(t, map[string]float64{"/main/orders": 1}, f.series("autoscale_queries_delayed_total"))
	assert.InDelta(t, 2.04, f.series("autoscale_query_duration_seconds")["/main/orders"], 1e-9)
}

// ofProfiles are the metrics with a series per MetricProfile.
var ofProfiles = []string{
	"autoscale_queries_total", "autoscale_queries_delayed_total", "autoscale_query_duration_seconds", "autoscale_metric_samples_total",
}

func TestTheSeriesOfAMetricProfileVanishWithIt(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	e := f.evaluation(5)
	f.cache.profiles = []v1alpha1.MetricProfile{*builders.MakeMetricProfile("orders").Obj(), *builders.MakeMetricProfile("gone").Obj()}
	for i := range f.cache.profiles {
		f.sampled(e, []*v1alpha1.MetricProfile{&f.cache.profiles[i]}, noon)
		f.Asked(f.cache.profiles[i].Name, "main", "", time.Second)
		f.Delayed(f.cache.profiles[i].Name, "main")
	}
	f.sampled(e, []*v1alpha1.MetricProfile{nil}, noon)
	for _, name := range ofProfiles[:3] {
		require.Len(t, f.series(name), 2, name)
	}
	f.cache.profiles = f.cache.profiles[:1]
	for _, name := range ofProfiles[:3] {
		assert.Len(t, f.series(name), 1, name)
	}
	assert.Equal(t, map[string]float64{"/orders/Valid": 1, "//Valid": 1}, f.series("autoscale_metric_samples_total"),
		"the series of metrics without a profile stays")
	assert.NotContains(t, f.profiles, "gone")
}

func TestTheSeriesOfAProfileThatNobodyAsksForEnd(t *testing.T) {
	f := tellingAt(t)
	f.Asked("orders", "main", "", time.Second)
	f.Delayed("orders", "main")
	f.Asked("other", "main", "", time.Second)
	f.Forgotten("orders")
	assert.Equal(t, map[string]float64{"/main/other/Answered": 1}, f.series("autoscale_queries_total"))
	assert.Empty(t, f.series("autoscale_queries_delayed_total"))
}

func TestNothingIsKeptOfADeletedAutoScaler(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluate(5)
	f.Woken(types.NamespacedName{Namespace: "production", Name: "late"})
	f.forget(web)
	f.forget(types.NamespacedName{Namespace: "production", Name: "late"})
	assert.Empty(t, f.seen)
	// The rest of an evaluation that was under way brings nothing back.
	f.decided(e)
	f.wrote(e)
	assert.Empty(t, f.seen)
}

func TestAnAutoScalerThatWasDeletedAndCreatedAgainIsAnotherOne(t *testing.T) {
	f := tellingAt(t)
	f.wrote(f.evaluate(8))
	again := f.evaluation(8)
	again.before.UID = "b"
	f.Woken(web)
	f.begins(again.before)
	assert.Equal(t, &subject{uid: "b", arrived: noon}, f.seen[web])
}
