//go:build integration

package integration

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAnAutoScalerThatHasScaledAndIsSteadyWritesNothing(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Window(300).Obj())
	h.metrics.Value(400)
	h.poll()
	require.Equal(t, int32(4), h.replicas())
	h.pollFor(2 * time.Minute) // the numbers settle within a minute

	before := h.statusWrites.Load()
	h.pollFor(10 * time.Minute)

	assert.Equal(t, before, h.statusWrites.Load())
}

func TestALoadThatWaversIsNotAWriteAtEveryPoll(t *testing.T) {
	h := newHarness(t)
	h.deployment(5)
	h.create(h.autoscaler().Window(300).Obj())
	h.metrics.Value(500)
	h.pollFor(6 * time.Minute)

	before := h.statusWrites.Load()
	for i := range 20 { // 5 minutes, one window
		h.metrics.Value([]float64{390, 490}[i%2])
		h.advance(15 * time.Second)
		h.poll()
	}

	require.Equal(t, int32(5), h.replicas())
	assert.LessOrEqual(t, h.statusWrites.Load()-before, int32(12+5), "the memory twelve times per window, the numbers once a minute")
}

func TestAServerTextThatChangesIsNotAWriteAtEveryPoll(t *testing.T) {
	h := newHarness(t)
	h.deployment(5)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(500)
	h.poll()

	before := h.statusWrites.Load()
	for i := range 8 { // 2 minutes
		h.metrics.Error(422, "execution", fmt.Sprintf("too many samples, trace %d", i))
		h.advance(15 * time.Second)
		h.poll()
	}

	assert.LessOrEqual(t, h.statusWrites.Load()-before, int32(3))
}

func TestWhileAPartialAnswerScalesUpReadySaysThatItManages(t *testing.T) {
	h := newHarness(t)
	h.deployment(8)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(1000)
	h.metrics.Warnings("No StoreAPIs matched for this query")

	a := h.poll()

	require.Equal(t, int32(10), h.replicas())
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
	h.requireCondition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, "PartialResponse")
}

func TestNothingOldStandsWhenAnEvaluationEndsEarly(t *testing.T) {
	for name, change := range map[string]func(h *harness){
		"pointed at a Deployment that does not exist": func(h *harness) {
			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" })
		},
		"the spec became invalid": func(h *harness) {
			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 5000 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withoutWebhooks)
			h.deployment(20)
			h.create(h.autoscaler().Obj())
			h.metrics.Value(10000)
			h.poll()
			change(h)
			h.advance(15 * time.Second)

			a := h.poll()

			for _, c := range a.Status.Conditions {
				assert.NotEqual(t, metav1.ConditionTrue, c.Status, "%s: %s", c.Type, c.Message)
				assert.Equal(t, a.Generation, c.ObservedGeneration, c.Type)
			}
			assert.Nil(t, a.Status.RecommendedReplicas)
			assert.Nil(t, a.Status.LastDecision)
		})
	}
}

func TestAMissingTargetIsToldByOneEvent(t *testing.T) {
	h := newHarness(t)
	h.create(h.autoscaler().Obj())
	h.poll()
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, []string{fmt.Sprintf("Warning TargetNotFound there is no Deployment %q in namespace %q", "web", h.namespace)}, h.events.take())
}

func TestAHugeStoredValueIsReportedAndNotRetriedForEver(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.storePastTheSchema(plain(t, h.autoscaler().Obj(), func(spec map[string]any) {
		spec["targetRef"] = map[string]any{"name": strings.Repeat("x", 40000)}
	}))

	message := h.requireCondition(h.poll(), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)

	assert.Contains(t, message, "spec.targetRef.name")
	assert.Less(t, len(message), 5000)
}

func TestABindingThatCannotBeWrittenIsSaidOnTheObjectAndBlamedOnNobody(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	b := h.binding()
	b.Spec.Epoch, b.Spec.OwnerRef, b.Spec.OwnerUID = math.MaxInt64, nil, ""
	require.NoError(t, h.client.Update(h.ctx, b))
	h.advance(15 * time.Second)

	_, err := h.reconcile("web")

	require.Error(t, err)
	a := h.get("web")
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonEvaluationFailed)
	require.NoError(t, h.client.Delete(h.ctx, a))
	next := builders.MakeAutoScaler(h.namespace, "next").Metric("load", h.namespace+"-total", "100").Obj()
	assert.ErrorContains(t, h.client.Create(h.ctx, next), "Internal error")
	assert.False(t, meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionAbleToScale))
}
