//go:build integration

package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
			if a.Status.TargetUID == "" {
				assert.Nil(t, a.Status.AppliedReplicas, "of another Deployment")
			}
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
	b.Spec.Epoch, b.Spec.OwnerRef, b.Spec.OwnerUID = v1alpha1.MaxEpoch, nil, ""
	require.NoError(t, h.client.Update(h.ctx, b))
	h.advance(15 * time.Second)

	_, err := h.reconcile("web")

	require.Error(t, err)
	a := h.get("web")
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonEvaluationFailed)
	require.NoError(t, h.client.Delete(h.ctx, a))
	next := builders.MakeAutoScaler(h.namespace, "next").Metric("load", h.namespace+"-total", "100").Obj()
	err = h.client.Create(h.ctx, next)
	assert.ErrorContains(t, err, "Internal error")
	assert.ErrorContains(t, err, "delete scalebinding web", "the way out")
	assert.False(t, meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionAbleToScale))
}

func TestTheAimOfADryRunIsNotAWriteAtEveryPoll(t *testing.T) {
	h := newHarness(t)
	h.deployment(5)
	h.create(h.autoscaler().Window(300).DryRun().Obj())
	h.metrics.Value(990)
	h.poll()

	before := h.statusWrites.Load()
	for i := range 20 { // 5 minutes, one window
		h.metrics.Value([]float64{890, 990}[i%2])
		h.advance(15 * time.Second)
		h.poll()
	}

	assert.LessOrEqual(t, h.statusWrites.Load()-before, int32(12+5), "the memory twelve times per window, the numbers once a minute")
	assert.Contains(t, []int32{9, 10}, *h.get("web").Status.RecommendedReplicas)
	assert.Equal(t, int32(10), h.get("web").Status.Shadow.Replicas)
}

func TestALoadThatWaversAboutTheCapIsNoStormOfEvents(t *testing.T) {
	h := newHarness(t)
	h.deployment(20)
	h.create(h.autoscaler().Window(300).Obj())
	h.metrics.Value(1990)
	h.poll()
	h.events.take()

	before := h.statusWrites.Load()
	for i := range 40 { // 10 minutes
		h.metrics.Value([]float64{2010, 1990}[i%2])
		h.advance(15 * time.Second)
		h.poll()
	}

	assert.LessOrEqual(t, h.statusWrites.Load()-before, int32(21), "said at once, taken back at every fourth poll")
	events := only(h.events.take(), v1alpha1.ReasonAtMaxReplicas)
	assert.NotEmpty(t, events)
	assert.LessOrEqual(t, len(events), 11)
}

func TestAMessageOfManyMetricsFitsIntoItsEvent(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(5)
	b := builders.MakeAutoScaler(h.namespace, "web")
	for i := range v1alpha1.MaxMetrics {
		b.Metric(fmt.Sprintf("%s-%d", strings.Repeat("m", 60), i), strings.Repeat("p", 250), "1")
	}
	h.create(b.Obj())

	message := h.requireCondition(h.poll(), v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, v1alpha1.ReasonProfileNotFound)

	assert.Greater(t, len(message), 1024, "the condition names them all")
	assert.Len(t, only(h.events.take(), v1alpha1.ReasonProfileNotFound), 1)
}

func TestAReleaseThatIsForbiddenIsSaidOnTheObject(t *testing.T) {
	h := bound(t)
	h.create(builders.Deployment(h.namespace, "api", 2))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" })
	h.failing = func(verb string, obj client.Object) error {
		if _, ok := obj.(*v1alpha1.ScaleBinding); ok && verb == "update" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "scalebindings"}, obj.GetName(), errors.New("no"))
		}
		return nil
	}
	h.advance(15 * time.Second)

	a := h.poll()

	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonForbidden)
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionUnknown, v1alpha1.ReasonNotEvaluated)
}

func TestAnOldScaleFailureDoesNotStandForANewOne(t *testing.T) {
	h := bound(t)
	h.metrics.Value(900)
	h.beforeScale = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
	h.advance(15 * time.Second)
	_, err := h.reconcile("web")
	require.Error(t, err)
	h.beforeScale = nil
	h.failing = func(verb string, obj client.Object) error {
		if _, ok := obj.(*v1alpha1.ScaleBinding); ok && verb == "get" {
			return apierrors.NewServiceUnavailable("overloaded")
		}
		return nil
	}
	h.advance(15 * time.Second)
	_, err = h.reconcile("web")
	require.Error(t, err)

	message := h.requireCondition(h.get("web"), v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonEvaluationFailed)

	assert.Contains(t, message, "overloaded")
	assert.NotContains(t, message, "etcd")
}

func TestABindingBrokenPastTheSchemaIsSaidWithItsWayOut(t *testing.T) {
	for name, spec := range map[string]map[string]any{
		"unreadable":            {"targetRef": map[string]any{"name": "web"}, "epoch": "one"},
		"an owner without name": {"targetRef": map[string]any{"name": "web"}, "epoch": int64(7), "ownerUID": "somebody"},
	} {
		t.Run(name, func(t *testing.T) {
			h := bound(t)
			b := h.binding()
			require.NoError(t, h.client.Delete(h.ctx, b))
			h.storePastTheSchemaOf("scalebindings", &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ScaleBinding",
				"metadata": map[string]any{"name": "web", "namespace": h.namespace}, "spec": spec,
			}})
			h.advance(15 * time.Second)

			_, err := h.reconcile("web")

			require.Error(t, err)
			message := h.requireCondition(h.get("web"), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonEvaluationFailed)
			assert.Contains(t, message, "delete scalebinding web")
			require.NoError(t, h.client.Delete(h.ctx, b))
			h.poll()
			assert.Equal(t, h.get("web").UID, h.binding().Spec.OwnerUID)
		})
	}
}
