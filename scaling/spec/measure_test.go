package spec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAMeasureIsRenderedForOneDeploymentWithinThePollInterval(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Poll(5).Metric("load", "total", "100").Obj()
	profile := builders.MakeMetricProfile("total").Query("sum(rate(x{namespace=$namespace,deployment=$target}[1m]))").Obj()
	profile.Spec.TimeoutSeconds = 60

	m, err := Measure(a, 0, profile)

	require.NoError(t, err)
	assert.Equal(t, prometheus.Measure{
		Load: prometheus.Question{
			Profile: "total", Endpoint: "main", Expr: `sum(rate(x{namespace="production",deployment="web"}[1m]))`,
			Timeout: 5 * time.Second, // never longer than the poll interval
		},
		Namespace: "production", Target: "web", MaxAge: 45 * time.Second,
	}, m)
}

func TestAMeasureTakesAllThatTheProfileSays(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "queue", "100").Obj()
	a.Spec.Metrics[0].MaxAgeSeconds = 0
	a.Spec.Metrics[0].Parameters = map[string]string{"queue": `o"rders`}
	profile := builders.MakeMetricProfile("queue").Query("sum(depth{queue=$queue,shard=$shard})").Obj()
	profile.Spec.Semantics = v1alpha1.SemanticsBacklog
	profile.Spec.ArrivalRateQuery, profile.Spec.ClearanceSeconds = "sum(rate(in{queue=$queue}[1m]))", 60
	profile.Spec.Parameters = []v1alpha1.ProfileParameter{{Name: "queue", Pattern: ".*"}, {Name: "shard", Values: []v1alpha1.ParameterValue{"1", "2"}, Default: "2"}}
	profile.Spec.Freshness = &v1alpha1.Freshness{Query: "avg(up{namespace=$namespace,shard=$shard})", MinHealthyShare: "0.8"}
	profile.Spec.OnEmpty, profile.Spec.MaxResponseBytes, profile.Spec.MaxSeries, profile.Spec.Budget = v1alpha1.EmptyZero, 4096, 7, 30

	m, err := Measure(a, 0, profile)

	require.NoError(t, err)
	asked := func(expr string) prometheus.Question {
		return prometheus.Question{
			Profile: "queue", Endpoint: "main", Expr: expr, Timeout: 2 * time.Second,
			MaxResponseBytes: 4096, MaxSeries: 7, OnEmptyZero: true, BudgetPerMinute: 30,
		}
	}
	assert.Equal(t, asked(`sum(depth{queue="o\"rders",shard="2"})`), m.Load)
	assert.Equal(t, asked(`sum(rate(in{queue="o\"rders"}[1m]))`), m.Arrivals)
	fresh := asked(`avg(up{namespace="production",shard="2"})`)
	fresh.OnEmptyZero = false
	assert.Equal(t, prometheus.Freshness{Question: fresh, MinHealthyShare: 0.8}, m.Freshness, "no answer is no freshness")
	assert.Equal(t, 60*time.Second, m.MaxAge)

	seconds := int32(90)
	profile.Spec.Freshness = &v1alpha1.Freshness{Query: "max(time() - timestamp(up))", MaxAgeSeconds: &seconds}
	m, err = Measure(a, 0, profile)
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, m.Freshness.MaxAge)
	assert.Zero(t, m.Freshness.MinHealthyShare)
}

func TestAllAutoScalersOfAPerTargetProfileAskTheSameQuestion(t *testing.T) {
	profile := builders.MakeMetricProfile("all").Query("sum by (ns, app) (rate(x[1m]))").Obj()
	profile.Spec.Series = v1alpha1.SeriesPerTarget
	profile.Spec.SeriesLabels = &v1alpha1.SeriesLabels{Namespace: "ns", Target: "app"}
	profile.Spec.Semantics = v1alpha1.SemanticsBacklog
	profile.Spec.ArrivalRateQuery, profile.Spec.ClearanceSeconds = "sum by (ns, app) (rate(in[1m]))", 60
	profile.Spec.Freshness = &v1alpha1.Freshness{Query: "avg by (ns, app) (up)", MinHealthyShare: "1"}
	first, err := Measure(builders.MakeAutoScaler("a", "web").Target("web").Obj(), 0, profile)
	require.NoError(t, err)
	second, err := Measure(builders.MakeAutoScaler("b", "api").Target("api").Obj(), 0, profile)
	require.NoError(t, err)

	assert.Equal(t, prometheus.SeriesLabels{Namespace: "ns", Target: "app"}, first.Load.Series)
	assert.Equal(t, first.Load, second.Load)
	assert.Equal(t, first.Arrivals, second.Arrivals)
	assert.Equal(t, first.Freshness, second.Freshness)
	assert.Equal(t, first.Load.Series, first.Freshness.Series)
	assert.False(t, first.Load.EveryAnswer)
	assert.Equal(t, [2]string{"a", "web"}, [2]string{first.Namespace, first.Target})
	assert.Equal(t, [2]string{"b", "api"}, [2]string{second.Namespace, second.Target})

	profile.Spec.SeriesLabels = nil
	m, err := Measure(builders.MakeAutoScaler("a", "web").Obj(), 0, profile)
	require.NoError(t, err)
	assert.Equal(t, prometheus.SeriesLabels{Namespace: "namespace", Target: "deployment"}, m.Load.Series)
}

func TestAnAverageIsSeenWithTheReplicasThatAreReadyThen(t *testing.T) {
	profile := builders.MakeMetricProfile("each").Query("avg(x)").Obj()
	profile.Spec.Semantics = v1alpha1.SemanticsPerReplicaAverage
	profile.Spec.Freshness = &v1alpha1.Freshness{Query: "avg(up)", MinHealthyShare: "1"}
	m, err := Measure(builders.MakeAutoScaler("a", "web").Obj(), 0, profile)
	require.NoError(t, err)
	assert.True(t, m.Load.EveryAnswer && m.Freshness.EveryAnswer)
}

func TestWhatCannotBeAskedSaysWhoseFaultItIs(t *testing.T) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MetricProfileSpec)
		want   string
	}{
		"the query":   {func(s *v1alpha1.MetricProfileSpec) { s.Query = "up{a=$b}" }, "spec.query: query: position 6: unknown placeholder $b"},
		"the arrival": {func(s *v1alpha1.MetricProfileSpec) { s.Semantics, s.ArrivalRateQuery = v1alpha1.SemanticsBacklog, "" }, "spec.arrivalRateQuery: query: is empty"},
		"the freshness": {func(s *v1alpha1.MetricProfileSpec) {
			s.Freshness = &v1alpha1.Freshness{Query: "up{", MinHealthyShare: "2"}
		}, "spec.freshness.minHealthyShare: must be a share"},
		"all for many targets": {func(s *v1alpha1.MetricProfileSpec) { s.Series = v1alpha1.SeriesPerTarget }, "spec.query: query: no value for $namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			profile := builders.MakeMetricProfile("total").Obj()
			tc.change(&profile.Spec)
			_, err := Measure(a, 0, profile)
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), `"total"`, "the caller names the profile")
			assert.NotEmpty(t, ValidateMetricProfile(profile), "admission refuses it")
			var parameters *ParameterError
			assert.NotErrorAs(t, err, &parameters)
		})
	}
}

func TestFC10_OnlyDeclaredAndAllowedParametersAreAsked(t *testing.T) {
	profile := builders.MakeMetricProfile("queue").Query("sum(depth{queue=$queue})").Obj()
	profile.Spec.Parameters = []v1alpha1.ProfileParameter{{Name: "queue", Pattern: "[a-z]+"}}
	a := builders.MakeAutoScaler("production", "web").Metric("load", "queue", "100").Obj()
	for _, value := range []string{`"} or vector(1e9) #`, "orders\n", "Orders", "", "orders-"} {
		a.Spec.Metrics[0].Parameters = map[string]string{"queue": value}
		m, err := Measure(a, 0, profile)
		var parameters *ParameterError
		require.ErrorAs(t, err, &parameters, "%q", value)
		assert.Equal(t, "spec.metrics[0].parameters[queue]", parameters.Errs[0].Field)
		assert.Zero(t, m)
	}
	a.Spec.Metrics[0].Parameters = map[string]string{"queue": "orders"}
	m, err := Measure(a, 0, profile)
	require.NoError(t, err)
	assert.Equal(t, `sum(depth{queue="orders"})`, m.Load.Expr)
}

// What an evaluation pays for each metric.
func BenchmarkMeasure(b *testing.B) {
	a := builders.MakeAutoScaler("production", "web").Metric("load", "total", "100").Obj()
	profile := builders.MakeMetricProfile("total").Obj()
	for b.Loop() {
		if _, err := Measure(a, 0, profile); err != nil {
			b.Fatal(err)
		}
	}
}
