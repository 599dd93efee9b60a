//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

// waiter is another AutoScaler of the Deployment "web" that may wait.
func (h *harness) waiter(name string) *v1alpha1.AutoScaler {
	return builders.MakeAutoScaler(h.namespace, name).ClaimPolicy(v1alpha1.ClaimWait).Metric("load", h.namespace+"-total", "100").Obj()
}

func TestFC26_OneThatWaitsIsAdmittedWithoutAClaimAndMayBeEdited(t *testing.T) {
	h := bound(t)
	before := h.binding()

	h.create(h.waiter("web-hpa"))
	a := h.get("web-hpa")
	a.Spec.MaxReplicas = 30
	require.NoError(t, h.client.Update(h.ctx, a))
	// What does not wait any more was admitted before, and may still be edited.
	a.Spec.ClaimPolicy = v1alpha1.ClaimReject
	require.NoError(t, h.client.Update(h.ctx, a))

	assert.Equal(t, before, h.binding(), "the holder's claim is not touched")
	assert.Len(t, h.bindings(), 1)
}

func TestFC26_MovingOntoATakenTargetWaitsToo(t *testing.T) {
	h := bound(t)
	h.create(builders.Deployment(h.namespace, "api", 2))
	mover := h.waiter("mover")
	mover.Spec.TargetRef.Name = "api"
	h.create(mover)

	mover.Spec.TargetRef.Name = "web"
	require.NoError(t, h.client.Update(h.ctx, mover))

	assert.Equal(t, "web", h.binding().Spec.OwnerRef.Name)
	h.metrics.Value(200)
	h.advance(binding.DefaultGrace + time.Second) // its claim on "api" was never confirmed
	h.requireCondition(h.pollNamed("mover"), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
	var left v1alpha1.ScaleBinding
	require.NoError(t, h.client.Get(h.ctx, h.key("api"), &left))
	assert.True(t, left.Free(), "what it left is free")
}

func TestANewAutoScalerDoesNotJumpTheLine(t *testing.T) {
	h := bound(t)
	h.create(h.waiter("waiting"))
	require.NoError(t, h.client.Delete(h.ctx, h.get("web"))) // and nothing was reconciled since
	// Creation times have whole seconds; a later one is later in line.
	waiting := h.get("waiting")
	require.Eventually(t, func() bool {
		probe := h.waiter("probe")
		require.NoError(t, h.client.Create(h.ctx, probe, client.DryRunAll))
		return waiting.CreationTimestamp.Before(&probe.CreationTimestamp)
	}, 10*time.Second, 50*time.Millisecond)

	err := h.client.Create(h.ctx, builders.MakeAutoScaler(h.namespace, "late").Metric("load", h.namespace+"-total", "100").Obj())
	assert.ErrorContains(t, err, `AutoScaler "waiting" was created earlier`)
	require.NoError(t, h.client.Create(h.ctx, h.waiter("later")))
	assert.Equal(t, "web", h.binding().Spec.OwnerRef.Name, "nobody claimed")

	h.metrics.Value(200)
	h.requireCondition(h.pollNamed("later"), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
	h.requireCondition(h.pollNamed("waiting"), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
}

// Helm creates what is new before it deletes what is gone.
func TestFC27_AnAutoScalerThatWaitsReplacesAnHPAInOneUpgrade(t *testing.T) {
	h := newHarness(t)
	h.deployment(5)
	hpa := builders.HPA(h.namespace, "web", "web")
	h.create(hpa)
	h.profile("total")
	h.metrics.Value(500)
	require.ErrorContains(t, h.client.Create(h.ctx, builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "100").Obj()),
		`HorizontalPodAutoscaler "web"`)

	h.create(h.waiter("web"))
	assert.Empty(t, h.bindings(), "who stands by claims nothing")
	h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)

	hpa.Finalizers = []string{"example.com/wait"} // it may take its time to go
	require.NoError(t, h.client.Update(h.ctx, hpa))
	require.NoError(t, h.client.Delete(h.ctx, hpa))
	h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	assert.Equal(t, int32(5), h.replicas(), "the count stays")
}
