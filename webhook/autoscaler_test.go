package webhook

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

// reader is what a cache, or the API server, knows.
func reader(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme} {
		require.NoError(t, add(s))
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, binding.HPATarget, binding.IndexHPA).Build()
}

func TestACacheThatIsBehindRefusesNothing(t *testing.T) {
	autoscaler := builders.MakeAutoScaler("ns", "web").Metric("load", "total", "100").Obj()
	allowing := builders.MakeMetricProfile("total").Allow("ns").Obj()
	for name, tc := range map[string]struct{ cached, live client.Reader }{
		"the profile was created a moment ago": {reader(t), reader(t, allowing)},
		"the profile was opened a moment ago":  {reader(t, builders.MakeMetricProfile("total").Allow("other").Obj()), reader(t, allowing)},
		"the HPA was deleted a moment ago":     {reader(t, allowing, builders.HPA("ns", "old", "web")), reader(t, allowing)},
	} {
		t.Run(name, func(t *testing.T) {
			v := &AutoScalerValidator{Cached: tc.cached, Live: tc.live, Limits: v1alpha1.DefaultLimits}
			errs, err := v.check(t.Context(), autoscaler)
			require.NoError(t, err)
			assert.Empty(t, errs)
		})
	}
}

func TestFC29_ADeploymentThatTheCacheHasNotSeenIsNotWarnedOf(t *testing.T) {
	v := &AutoScalerValidator{Cached: reader(t), Live: reader(t, builders.Deployment("ns", "web", 2))}
	assert.Empty(t, v.warnings(t.Context(), builders.MakeAutoScaler("ns", "web").Obj()))
	v.Live = reader(t)
	assert.Len(t, v.warnings(t.Context(), builders.MakeAutoScaler("ns", "web").Obj()), 1)
}

func TestAFailingLookUpBlamesNobodyAndLeaksNothing(t *testing.T) {
	autoscaler := builders.MakeAutoScaler("ns", "web").Metric("load", "total", "100").Obj()
	for name, err := range map[string]error{
		"a permission of the operator is missing": apierrors.NewForbidden(schema.GroupResource{Resource: "autoscalers"}, "web", errors.New("system:serviceaccount:x")),
		"the API server cannot be reached":        &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/apis", Err: errors.New("dial tcp 10.0.0.1:6443: refused")},
	} {
		t.Run(name, func(t *testing.T) {
			failing := interceptor.NewClient(reader(t).(client.WithWatch), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return err
				},
			})
			v := &AutoScalerValidator{Cached: failing, Live: failing, Limits: v1alpha1.DefaultLimits}

			_, refusal := v.ValidateCreate(t.Context(), autoscaler)

			assert.True(t, apierrors.IsInternalError(refusal), "%v", refusal)
			assert.NotContains(t, refusal.Error(), "10.0.0.1")
			assert.NotContains(t, refusal.Error(), "serviceaccount")
			assert.ErrorContains(t, refusal, "try again")
		})
	}
}
