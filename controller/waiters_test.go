package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

// waiting is a reconciler beside an AutoScaler "waiter" that stands by for the
// Deployment of "holder". What it reads live is counted, and is another store than its
// cache.
type waiting struct {
	*Reconciler
	waiter       *v1alpha1.AutoScaler
	cached, live client.WithWatch
	reads        int
}

func waitsBehind(t *testing.T) *waiting {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	asks := func(name string) *v1alpha1.AutoScaler {
		return builders.MakeAutoScaler("ns", name).UID("uid-of-" + name).Target("web").ClaimPolicy(v1alpha1.ClaimWait).Obj()
	}
	holder, waiter := asks("holder"), asks("waiter")
	holder.CreationTimestamp, waiter.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
	held := &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: v1alpha1.ScaleBindingSpec{
			TargetRef: v1alpha1.TargetReference{Name: "web"}, Epoch: 1,
			OwnerRef: &v1alpha1.OwnerReference{Name: "holder"}, OwnerUID: holder.UID, TargetUID: "d",
		},
		Status: v1alpha1.ScaleBindingStatus{Phase: v1alpha1.PhaseHeld, Epoch: 1},
	}
	store := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(holder.DeepCopy(), waiter.DeepCopy(), held.DeepCopy()).
			WithStatusSubresource(&v1alpha1.ScaleBinding{}).
			WithIndex(&v1alpha1.AutoScaler{}, binding.AutoScalerTarget, binding.IndexAutoScaler)
	}
	w := &waiting{waiter: waiter, cached: store().Build()}
	w.live = store().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.reads++
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	w.Reconciler = &Reconciler{Client: w.cached, Arbiter: &binding.Arbiter{
		Live: w.live, Writer: w.live, Clock: clocktesting.NewFakePassiveClock(noon), Grace: binding.DefaultGrace,
		Usable: func(*v1alpha1.AutoScaler) bool { return true },
	}}
	return w
}

// claims is what an evaluation of the waiter comes to.
func (w *waiting) claims(t *testing.T) (*v1alpha1.ScaleBinding, error) {
	t.Helper()
	e := &evaluation{now: noon, autoscaler: w.waiter, target: target{key: types.NamespacedName{Namespace: "ns", Name: "web"}}}
	return w.ownBinding(t.Context(), e)
}

func TestWhoStandsByAsksTheAPIServerNothingWhileTheCacheNamesAHolder(t *testing.T) {
	w := waitsBehind(t)
	var held *binding.HeldError
	for range 3 {
		_, err := w.claims(t)
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "holder", held.Holder)
	}
	assert.Zero(t, w.reads)
}

func TestWhoStandsByClaimsByLiveReadsWhenTheCacheNamesNoHolderAnyMore(t *testing.T) {
	gone := builders.MakeAutoScaler("ns", "holder").Obj()
	w := waitsBehind(t)
	require.NoError(t, w.cached.Delete(t.Context(), gone))

	_, err := w.claims(t)

	require.ErrorAs(t, err, new(*binding.HeldError), "what the API server says counts")
	assert.Positive(t, w.reads)

	require.NoError(t, w.live.Delete(t.Context(), gone))
	claimed, err := w.claims(t)
	require.NoError(t, err)
	assert.Equal(t, w.waiter.UID, claimed.Spec.OwnerUID)
}
