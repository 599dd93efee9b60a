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

func TestFC56_TwoEvaluationsWithin50msTakeOneStep(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(2, 1).Obj())
	h.metrics.Value(2000)

	h.poll()
	h.advance(50 * time.Millisecond)
	h.poll()

	assert.Equal(t, int32(4), h.replicas())
	assert.Equal(t, int32(1), h.scaleWrites.Load())
}

func TestFC56_AStaleCacheAfterAnOwnWriteActsOnNothing(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(2, 1).Poll(5).Obj())
	h.metrics.Value(2000)
	h.poll()
	require.Equal(t, int32(4), h.replicas())

	h.staleReplicas = new(int32) // the watch is delayed: the cache still says 2
	*h.staleReplicas = 2
	h.advance(6 * time.Second)
	h.poll()
	assert.Equal(t, int32(4), h.replicas(), "2 is not what the API server has, so the decision is dropped")
	assert.Equal(t, int32(1), h.scaleWrites.Load())

	h.staleReplicas = nil
	h.advance(time.Second)
	h.poll()
	assert.Equal(t, int32(6), h.replicas())
}

func TestFC22_ADeploymentAtZeroIsLeftAloneUntilAPersonScalesItUp(t *testing.T) {
	h := newHarness(t)
	h.deployment(0)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)

	a := h.pollFor(time.Minute)
	assert.Zero(t, h.replicas())
	h.requireCondition(a, v1alpha1.ConditionTargetAvailable, metav1.ConditionFalse, v1alpha1.ReasonTargetSuspended)
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetSuspended)

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas = 3 })
	h.poll()
	assert.Zero(t, h.replicas(), "a raised minimum does not revive it")

	h.scaleByHand(1)
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, int32(9), h.replicas())
}

func TestFC22_ADeploymentWithoutACountHasOne(t *testing.T) {
	h := newHarness(t)
	h.deployment(-1)
	h.create(h.autoscaler().Bounds(1, 20).Obj())
	h.metrics.Value(0)

	assert.Equal(t, int32(1), *h.poll().Status.TargetReplicas)
	assert.Zero(t, h.scaleWrites.Load())
}

func TestFC23_ALoweredMaximumObeysPauseDryRunStepsAndFailingMetrics(t *testing.T) {
	lowered := func(t *testing.T, change func(*v1alpha1.AutoScaler)) *harness {
		t.Helper()
		h := newHarness(t)
		h.deployment(40)
		h.create(h.autoscaler().Bounds(2, 50).Steps(4, 2).Window(300).Obj())
		h.metrics.Value(4000)
		h.poll()
		h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 5; change(a) })
		h.advance(15 * time.Second)
		return h
	}
	t.Run("paused", func(t *testing.T) {
		h := lowered(t, func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
		assert.Equal(t, int32(5), *h.poll().Status.DesiredReplicas, "what would be is told")
		assert.Equal(t, int32(40), h.replicas())
	})
	t.Run("dry run", func(t *testing.T) {
		h := lowered(t, func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
		assert.Equal(t, int32(5), *h.poll().Status.DesiredReplicas)
		assert.Equal(t, int32(40), h.replicas())
	})
	t.Run("steps, but not the window", func(t *testing.T) {
		h := lowered(t, func(*v1alpha1.AutoScaler) {})
		h.poll()
		assert.Equal(t, int32(38), h.replicas())
		h.advance(15 * time.Second)
		h.poll()
		assert.Equal(t, int32(36), h.replicas())
	})
	t.Run("metrics fail", func(t *testing.T) {
		h := lowered(t, func(*v1alpha1.AutoScaler) {})
		h.metrics.Empty()
		h.requireCondition(h.poll(), v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonOutOfBounds)
		assert.Equal(t, int32(40), h.replicas())
	})
}

// As a Deployment begins that is made anew while Prometheus is down, from a manifest without
// a count.
func TestTheMinimumIsRestoredWhileNoMetricIsUsable(t *testing.T) {
	h := newHarness(t)
	h.deployment(1)
	h.metrics.Empty()
	h.create(h.autoscaler().Bounds(4, 20).Steps(2, 2).Obj())

	h.requireCondition(h.poll(), v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonBelowMinimum)
	assert.Equal(t, int32(3), h.replicas())
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, int32(4), h.replicas())
	// What is no problem any more is taken back at leisure.
	h.requireCondition(h.pollFor(5*time.Minute), v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonAllMetricsInvalid)
	assert.Equal(t, int32(4), h.replicas())
	assert.EqualValues(t, 2, h.scaleWrites.Load())
}

func TestFC16_ADemandOfZeroStaysAtTheMinimumAndWritesNothing(t *testing.T) {
	h := newHarness(t)
	h.deployment(15)
	h.create(h.autoscaler().Bounds(15, 60).Obj())
	h.metrics.Value(0)

	a := h.pollFor(2 * time.Minute)

	assert.Equal(t, int32(15), h.replicas())
	assert.Zero(t, h.scaleWrites.Load())
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonAtMinReplicas)
}

func TestFC11_AnEnormousLoadScalesToTheMaximumAndNotToTheMinimum(t *testing.T) {
	for name, value := range map[string]float64{"past int32": 214748365, "past int64": 1e19, "the largest float": 1.7e308} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deployment(50)
			h.create(builders.MakeAutoScaler(h.namespace, "web").Bounds(1, 50).Metric("load", h.profile("total"), "100m").Obj())
			h.metrics.Value(value)

			a := h.pollFor(time.Minute)

			assert.Equal(t, int32(50), h.replicas())
			assert.Positive(t, *a.Status.RecommendedReplicas)
		})
	}
}
