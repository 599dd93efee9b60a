//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
)

// retain evaluates the retention of the binding "web" and gives the wait.
func (h *harness) retain() time.Duration {
	h.Helper()
	r := controller.RetentionReconciler{Client: h.reconciler.Client, Arbiter: h.arbiter(), Clock: h.clock}
	result, err := r.Reconcile(h.ctx, ctrl.Request{NamespacedName: h.key("web")})
	require.NoError(h, err)
	return result.RequeueAfter
}

func (h *harness) deleteDeployment() {
	h.Helper()
	require.NoError(h, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 0)))
}

// released is a binding "web" that its owner has left.
func released(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	require.Zero(t, h.retain(), "held")
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	_, err := h.reconcile("web")
	require.NoError(t, err)
	require.True(t, h.binding().Free())
	return h
}

func TestAFreeBindingIsDeletedADayAfterItsReleaseWhereThereIsNoDeployment(t *testing.T) {
	h := released(t)
	assert.Zero(t, h.retain(), "there is a Deployment: nothing is due")
	h.deleteDeployment()
	h.advance(time.Hour)

	wait := h.retain()

	assert.InDelta(t, (controller.Retention - time.Hour).Seconds(), wait.Seconds(), 1, "exactly when it is due")
	h.advance(wait - 2*time.Second)
	assert.Positive(t, h.retain())
	require.Len(t, h.bindings(), 1)
	h.advance(2 * time.Second)
	assert.Zero(t, h.retain())
	assert.Empty(t, h.bindings())
	assert.Zero(t, h.retain(), "gone")
}

func TestABindingThatIsClaimedWhileItIsBeingDeletedStays(t *testing.T) {
	h := released(t)
	h.deleteDeployment()
	h.advance(controller.Retention)
	claimed := false
	h.failing = func(verb string, obj client.Object) error {
		// Between the reads and the deletion.
		if _, ok := obj.(*appsv1.Deployment); ok && verb == "get" && !claimed {
			claimed = true
			h.create(builders.MakeAutoScaler(h.namespace, "next").Metric("load", h.namespace+"-total", "100").Obj())
		}
		return nil
	}

	wait := h.retain()

	assert.Equal(t, time.Second, wait, "looked at again")
	b := h.binding()
	require.NotNil(t, b.Spec.OwnerRef)
	assert.Equal(t, "next", b.Spec.OwnerRef.Name)
	assert.Zero(t, h.retain())
	assert.Len(t, h.bindings(), 1)
}

func TestABindingOfAnotherClaimOfTheSameNameStays(t *testing.T) {
	h := released(t)
	h.deleteDeployment()
	h.advance(controller.Retention)
	again := false
	h.failing = func(verb string, obj client.Object) error {
		if _, ok := obj.(*appsv1.Deployment); ok && verb == "get" && !again {
			again = true
			old := h.binding()
			require.NoError(t, h.client.Delete(h.ctx, old))
			h.create(&v1alpha1.ScaleBinding{ObjectMeta: builders.Deployment(h.namespace, "web", 0).ObjectMeta, Spec: v1alpha1.ScaleBindingSpec{TargetRef: old.Spec.TargetRef}})
		}
		return nil
	}

	h.retain()

	assert.Len(t, h.bindings(), 1, "the UID is another")
}

func TestAClaimWhoseOwnerNeverCameIsFreedAndThenDeleted(t *testing.T) {
	h := newHarness(t)
	a := h.autoscaler().UID("never-stored").Obj()
	_, err := h.reconciler.Arbiter.Claim(h.ctx, claimant(a))
	require.NoError(t, err)
	assert.Zero(t, h.retain(), "claimed")

	result, err := h.reconcile("web")
	require.NoError(t, err)
	require.Positive(t, result.RequeueAfter, "within its grace")
	h.advance(result.RequeueAfter)
	_, err = h.reconcile("web")
	require.NoError(t, err)
	require.True(t, h.binding().Free())

	wait := h.retain()
	assert.InDelta(t, controller.Retention.Seconds(), wait.Seconds(), 1)
	h.advance(wait + time.Second)
	h.retain()
	assert.Empty(t, h.bindings())
}

func TestAReleaseDatedAheadIsNotWaitedForLongerThanADay(t *testing.T) {
	h := released(t)
	h.deleteDeployment()
	h.advance(-10 * controller.Retention)

	assert.Equal(t, controller.Retention, h.retain())
}
