//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// shadowing is a dry run beside a live HPA, with a load that asks for 20 of the 2.
func shadowing(t *testing.T, change func(b *builders.AutoScaler)) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.HPA(h.namespace, "live", "web"))
	b := h.autoscaler().Steps(4, 1).DryRun()
	change(b)
	h.create(b.Obj())
	h.metrics.Value(2000)
	return h
}

func asIs(*builders.AutoScaler) {}

// requireShadow checks what a dry run has come to, and how far the real count is from it.
func (h *harness) requireShadow(a *v1alpha1.AutoScaler, replicas, divergence int32) {
	h.Helper()
	require.NotNil(h, a.Status.Shadow)
	require.Equal(h, [2]int32{replicas, divergence}, [2]int32{a.Status.Shadow.Replicas, a.Status.Shadow.Divergence})
}

func TestADryRunBesideALiveHPAGoesByTheStepsThatItWouldTake(t *testing.T) {
	h := shadowing(t, asIs)
	h.requireShadow(h.poll(), 6, 4)
	h.advance(time.Second)
	h.requireShadow(h.poll(), 6, 4) // waking early grants no step
	h.advance(14 * time.Second)
	h.requireShadow(h.poll(), 10, 8)

	h.restart()
	h.advance(time.Second)
	h.requireShadow(h.poll(), 10, 8) // nor does a restart
	h.advance(14 * time.Second)
	a := h.poll()
	h.requireShadow(a, 14, 12)
	assert.Equal(t, int32(10), a.Status.LastDecision.Current, "it decides from its own count")

	h.scaleAs(9, "horizontal-pod-autoscaler")
	a = h.poll()
	h.requireShadow(a, 14, 5)
	assert.Nil(t, a.Status.Contention)
	assert.Nil(t, a.Status.AppliedReplicas)
	assert.Zero(t, h.scaleWrites.Load())
	assert.Equal(t, int32(9), h.replicas())
	message := h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonDryRun)
	assert.Contains(t, message, "status.shadow")
	assert.Empty(t, only(h.events.take(), "Scaled"))
}

func TestADryRunThatIsSteadyWritesNothing(t *testing.T) {
	h := shadowing(t, func(b *builders.AutoScaler) { b.Window(300) })
	h.pollFor(3 * time.Minute)
	h.requireShadow(h.get("web"), 20, 18)

	before := h.statusWrites.Load()
	h.pollFor(10 * time.Minute)

	assert.Equal(t, before, h.statusWrites.Load())
}

func TestADryRunKeepsItsIntervalsAcrossARestart(t *testing.T) {
	h := shadowing(t, func(b *builders.AutoScaler) { b.DownInterval(60) })
	h.pollFor(2 * time.Minute)
	h.metrics.Value(200)
	h.advance(15 * time.Second)
	h.requireShadow(h.poll(), 19, 17)
	for range 3 {
		h.restart()
		h.advance(15 * time.Second)
		h.requireShadow(h.poll(), 19, 17)
	}
	h.advance(15 * time.Second)
	h.requireShadow(h.poll(), 18, 16)
}

func TestADryRunIsSuspendedWithItsDeploymentAndBeginsAnewWithIt(t *testing.T) {
	h := shadowing(t, asIs)
	h.poll()
	h.scaleByHand(0)
	a := h.poll()
	assert.Nil(t, a.Status.Shadow)
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonTargetSuspended)

	h.scaleByHand(3)
	h.advance(15 * time.Second)
	h.requireShadow(h.poll(), 7, 4)
}

func TestADryRunBeginsAnewWithAReplacedDeployment(t *testing.T) {
	h := shadowing(t, asIs)
	h.pollFor(time.Minute)
	require.NoError(t, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 2)))
	h.deployment(5)
	h.advance(15 * time.Second)

	h.requireShadow(h.poll(), 9, 4)
}

// goLive ends a dry run and the HPA beside it.
func (h *harness) goLive() *v1alpha1.AutoScaler {
	h.Helper()
	require.NoError(h, h.client.Delete(h.ctx, builders.HPA(h.namespace, "live", "web")))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = false })
	return h.poll()
}

func TestADryRunThatGoesLiveStartsFromTheRealCountAndOwesNothingForWhatItSimulated(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := shadowing(t, func(b *builders.AutoScaler) { b.DownInterval(600) })
			h.pollFor(2 * time.Minute)
			h.scaleByHand(12)
			h.metrics.Value(200)
			h.advance(15 * time.Second)
			h.requireShadow(h.poll(), 19, 7) // a scale-down that was none
			if restart {
				h.restart()
			}
			h.advance(time.Second)

			a := h.goLive()

			assert.Equal(t, int32(11), h.replicas(), "from 12, and although 600 s have not passed since the simulated one")
			assert.Nil(t, a.Status.Shadow)
			assert.Equal(t, int32(11), *a.Status.AppliedReplicas)
		})
	}
}

func TestADryRunThatGoesLiveKeepsItsWindow(t *testing.T) {
	h := shadowing(t, func(b *builders.AutoScaler) { b.Window(60) })
	h.metrics.Value(200)
	h.scaleByHand(8)
	h.pollFor(2 * time.Minute) // the demand was 2 all the time
	h.advance(time.Second)

	h.goLive()

	assert.Equal(t, int32(7), h.replicas(), "the demand is the same for whoever scales")
}

func TestADryRunInBetweenForgetsNoRealScaleDown(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deployment(10)
			h.create(h.autoscaler().Steps(4, 1).DownInterval(600).Obj())
			h.metrics.Value(1000)
			h.poll()
			h.metrics.Value(200)
			h.advance(15 * time.Second)
			h.poll()
			require.Equal(t, int32(9), h.replicas())

			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
			h.pollFor(3 * time.Minute)
			if restart {
				h.restart()
			}
			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = false })
			h.pollFor(6 * time.Minute)
			assert.Equal(t, int32(9), h.replicas(), "600 s between two real scale-downs")
			h.pollFor(2 * time.Minute)
			assert.Equal(t, int32(8), h.replicas())
		})
	}
}
