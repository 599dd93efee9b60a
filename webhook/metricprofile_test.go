package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAllErrorsOfAMetricProfileComeAtOnce(t *testing.T) {
	v := &MetricProfileValidator{Endpoints: []string{"main"}}
	p := builders.MakeMetricProfile("bad").Endpoint("other").Query("rate(a[2h]) + b").Obj()
	p.Spec.RequireNamespaceMatcher = true

	_, err := v.ValidateCreate(t.Context(), p)

	require.Error(t, err)
	assert.NotContains(t, err.Error(), p.Spec.Query, "an error does not repeat the query")
	for _, want := range []string{
		`spec.endpoint: Unsupported value: "other": supported values: "main"`,
		"position 6: selector a[2h] looks back 7200 s",
		"position 6: selector a[2h] lacks namespace=$namespace",
		"position 15: selector b lacks namespace=$namespace",
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestAnUpdateOfAProfileMayKeepAQueryBeyondItsBoundsButNotMakeAnother(t *testing.T) {
	v := &MetricProfileValidator{Endpoints: []string{"main"}}
	stored := builders.MakeMetricProfile("old").Query("sum(rate(up[2h]))").Obj()
	update := func(change func(*v1alpha1.MetricProfile)) error {
		p := stored.DeepCopy()
		change(p)
		_, err := v.ValidateUpdate(t.Context(), stored, p)
		return err
	}

	assert.NoError(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.TimeoutSeconds++ }), "kept")
	assert.NoError(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.MaxRangeSeconds = 7200 }), "mended by its bound")
	assert.NoError(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.Query = "sum(rate(up[1h]))" }), "mended by its query")
	assert.ErrorContains(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.Query = "sum(rate(up[3h]))" }), "looks back 10800 s")
	assert.ErrorContains(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.MaxRangeSeconds = 60 }), "allows 60 s")
	assert.ErrorContains(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.RequireNamespaceMatcher = true }), "lacks namespace")
	assert.ErrorContains(t, update(func(p *v1alpha1.MetricProfile) { p.Spec.Query = "sum(rate(up[2h])) + 1" }), "looks back 7200 s",
		"another query with the same fault is not the one that was kept")
	assert.NoError(t, update(func(p *v1alpha1.MetricProfile) {
		now := metav1.Now()
		p.DeletionTimestamp, p.Spec.Query = &now, "("
	}), "an object on its way out is left alone")
}

func TestAnUpdateOfAProfileMayKeepEachOfItsQueriesButNotMakeAnotherBadOne(t *testing.T) {
	v := &MetricProfileValidator{Endpoints: []string{"main"}}
	stored := builders.MakeMetricProfile("old").Obj()
	stored.Spec.Semantics, stored.Spec.ClearanceSeconds = v1alpha1.SemanticsBacklog, 60
	stored.Spec.ArrivalRateQuery = "sum(rate(arrived[2h]))"
	stored.Spec.Freshness = &v1alpha1.Freshness{Query: "max(rate(up[3h]))", MinHealthyShare: "0.5"}
	update := func(change func(*v1alpha1.MetricProfileSpec)) error {
		p := stored.DeepCopy()
		change(&p.Spec)
		_, err := v.ValidateUpdate(t.Context(), stored, p)
		return err
	}

	assert.NoError(t, update(func(s *v1alpha1.MetricProfileSpec) { s.TimeoutSeconds++ }), "kept")
	assert.NoError(t, update(func(s *v1alpha1.MetricProfileSpec) { s.ArrivalRateQuery = "sum(rate(arrived[1h]))" }), "mended")
	assert.ErrorContains(t, update(func(s *v1alpha1.MetricProfileSpec) { s.ArrivalRateQuery += " + 1" }), "spec.arrivalRateQuery")
	assert.ErrorContains(t, update(func(s *v1alpha1.MetricProfileSpec) { s.Freshness.Query += " + 1" }), "spec.freshness.query")
	assert.ErrorContains(t, update(func(s *v1alpha1.MetricProfileSpec) { s.MaxRangeSeconds = 60 }), "allows 60 s", "another bound")
}

func TestWhoLosesAProfileThatIsNarrowedIsNamedBeforeIt(t *testing.T) {
	stored := builders.MakeMetricProfile("total").Allow("shop", "billing").Obj()
	stored.Spec.Query = "sum(a{queue=$queue})"
	stored.Spec.Parameters = []v1alpha1.ProfileParameter{{Name: "queue", Values: []v1alpha1.ParameterValue{"fast", "slow"}, Default: "fast"}}
	user := func(namespace, name, queue string) client.Object {
		a := builders.MakeAutoScaler(namespace, name).Target(name).Metric("load", "total", "1").Obj()
		if queue != "" {
			a.Spec.Metrics[0].Parameters = map[string]string{"queue": queue}
		}
		return a
	}
	elsewhere := builders.MakeAutoScaler("shop", "other").Metric("load", "another", "1").Obj()
	v := &MetricProfileValidator{Endpoints: []string{"main"}, Cached: store(t, elsewhere,
		user("shop", "e", ""), user("shop", "d", ""), user("shop", "c", "slow"), user("billing", "b", ""), user("billing", "a", ""),
		user("never", "x", ""))}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MetricProfileSpec)
		want   []string
	}{
		"a namespace is taken out": {
			func(s *v1alpha1.MetricProfileSpec) { s.AllowedNamespaces = s.AllowedNamespaces[1:] },
			[]string{"spec.allowedNamespaces: this takes the metric from 3 AutoScaler(s), which are then not scaled down: shop/c, shop/d, shop/e"},
		},
		"all are": {
			func(s *v1alpha1.MetricProfileSpec) { s.AllowedNamespaces = []v1alpha1.NamespaceName{"new"} },
			[]string{"spec.allowedNamespaces: this takes the metric from 5 AutoScaler(s), which are then not scaled down: billing/a, billing/b, shop/c and 2 more"},
		},
		"a value is taken out, and a namespace": {
			func(s *v1alpha1.MetricProfileSpec) {
				s.AllowedNamespaces, s.Parameters[0].Values = s.AllowedNamespaces[:1], s.Parameters[0].Values[:1]
			},
			[]string{"spec.allowedNamespaces: this takes the metric from 2 AutoScaler(s), which are then not scaled down: billing/a, billing/b",
				"spec.parameters: this takes the metric from 1 AutoScaler(s), which are then not scaled down: shop/c"},
		},
		"a namespace is added": {func(s *v1alpha1.MetricProfileSpec) { s.AllowedNamespaces = append(s.AllowedNamespaces, "third") }, nil},
		"something else":       {func(s *v1alpha1.MetricProfileSpec) { s.TimeoutSeconds++ }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := stored.DeepCopy()
			tc.change(&p.Spec)
			warnings, err := v.ValidateUpdate(t.Context(), stored, p)
			require.NoError(t, err)
			assert.ElementsMatch(t, tc.want, warnings)
		})
	}
}

func TestUsersThatCannotBeLookedUpStopNoUpdateOfAProfile(t *testing.T) {
	failing := interceptor.NewClient(store(t), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no")
		},
	})
	v := &MetricProfileValidator{Endpoints: []string{"main"}, Cached: failing}
	stored := builders.MakeMetricProfile("total").Obj()
	narrowed := stored.DeepCopy()
	narrowed.Spec.AllowedNamespaces = []v1alpha1.NamespaceName{"other"}
	warnings, err := v.ValidateUpdate(t.Context(), stored, narrowed)
	require.NoError(t, err)
	assert.Empty(t, warnings)
}
