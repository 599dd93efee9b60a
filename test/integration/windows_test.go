//go:build integration

package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// Scale and status are two writes with no transaction around them. These tests
// stand in every window between a decision and its record.

func TestScaleSucceedsAndStatusFails_TheNextRoundCountsTheWriteAndDoesNotAddASecondStep(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "after a crash": true} {
		t.Run(name, func(t *testing.T) {
			h := aboutToScaleUp(t)
			h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
			_, err := h.reconcile("web")
			require.ErrorContains(t, err, "etcd is down", "a lost status is never silent")
			require.Equal(t, int32(6), h.replicas(), "the scale was written")
			require.Equal(t, int32(2), *h.get("web").Status.TargetReplicas, "and nobody recorded it")

			h.beforeStatus = nil
			if restart {
				h.restart()
			}
			h.advance(50 * time.Millisecond)
			a := h.poll()
			assert.Equal(t, int32(6), h.replicas(), "the step of this interval was already taken")
			assert.Equal(t, int32(6), *a.Status.AppliedReplicas, "the record is made good")
			assert.NotNil(t, a.Status.LastSuccessfulScaleTime)

			h.restart() // whoever comes next knows it from the status
			h.advance(50 * time.Millisecond)
			h.poll()
			assert.Equal(t, int32(6), h.replicas(), "nor does a restart grant a second step")

			h.advance(15 * time.Second)
			h.poll()
			assert.Equal(t, int32(10), h.replicas(), "the next interval has its own step")
		})
	}
}

func TestScaleDownSucceedsAndStatusFails_TheCooldownIsKept(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "after a crash": true} {
		t.Run(name, func(t *testing.T) {
			h := aboutToScaleDown(t, 60)
			h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
			_, err := h.reconcile("web")
			require.Error(t, err)
			require.Equal(t, int32(9), h.replicas())

			h.beforeStatus = nil
			if restart {
				h.restart()
			}
			for range 3 {
				h.advance(15 * time.Second)
				h.poll()
				require.Equal(t, int32(9), h.replicas(), "60 s must pass between two scale-downs")
			}
			h.pollFor(45 * time.Second)
			assert.Equal(t, int32(8), h.replicas())
		})
	}
}

// staleDecision changes the world between the decision and its write.
func staleDecision(t *testing.T, change func(h *harness)) (*harness, *v1alpha1.AutoScaler) {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.beforeScale = func() error {
		h.beforeScale = nil
		change(h)
		return nil
	}
	a := h.poll()
	return h, a
}

func TestTargetIsReplacedBetweenDecisionAndWrite_TheDecisionIsDroppedAndMadeAnew(t *testing.T) {
	h, a := staleDecision(t, func(h *harness) {
		d := builders.Deployment(h.namespace, "web", 2)
		require.NoError(h, h.client.Delete(h.ctx, d))
		require.NoError(h, h.client.Create(h.ctx, d))
	})
	assert.Equal(t, int32(2), h.replicas(), "what was decided for one Deployment is not done to another")
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonScaleConflict)
	assert.Nil(t, a.Status.AppliedReplicas)

	h.advance(time.Second)
	a = h.poll()
	assert.Equal(t, int32(9), h.replicas())
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionTrue, v1alpha1.ReasonScaleReady)
}

func TestReplicasAreChangedBetweenDecisionAndWrite_TheDecisionIsDropped(t *testing.T) {
	h, a := staleDecision(t, func(h *harness) { h.scaleByHand(12) })

	assert.Equal(t, int32(12), h.replicas(), "the old number is never applied again")
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonScaleConflict)
}

func TestWhatTheDecisionRestedOnIsCheckedLiveRightBeforeTheWrite(t *testing.T) {
	// The reconciler's own reads are a moment old here: it sees the world as it
	// was before the change.
	for name, change := range map[string]func(h *harness){
		"the binding has another owner": func(h *harness) {
			b := h.binding()
			b.Spec.OwnerUID, b.Spec.OwnerRef.Name = "other", "other"
			b.Spec.Epoch++
			require.NoError(h, h.client.Update(h.ctx, b))
		},
		"the binding was released and claimed again": func(h *harness) {
			b := h.binding()
			b.Spec.Epoch++
			require.NoError(h, h.client.Update(h.ctx, b))
		},
		"the binding is gone": func(h *harness) { require.NoError(h, h.client.Delete(h.ctx, h.binding())) },
		"the AutoScaler was paused": func(h *harness) {
			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
		},
		"the AutoScaler was replaced by another of its name": func(h *harness) {
			a := h.get("web")
			require.NoError(h, h.client.Delete(h.ctx, a))
			a.ObjectMeta = metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}
			require.NoError(h, h.client.Create(h.ctx, a))
		},
		"the Deployment was replaced by another of its name and count": func(h *harness) {
			d := builders.Deployment(h.namespace, "web", 2)
			require.NoError(h, h.client.Delete(h.ctx, d))
			require.NoError(h, h.client.Create(h.ctx, d))
		},
		"the binding was confirmed for another Deployment": func(h *harness) {
			b := h.binding()
			b.Spec.TargetUID = "other"
			require.NoError(h, h.client.Update(h.ctx, b))
		},
		"the Deployment was scaled by hand": func(h *harness) { h.scaleByHand(3) },
		"the Deployment is gone": func(h *harness) {
			require.NoError(h, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 0)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withoutWebhooks)
			h.deployment(2)
			h.create(h.autoscaler().Obj())
			h.metrics.Value(200)
			h.poll()
			h.advance(15 * time.Second)
			h.metrics.Value(900)
			h.afterSample = func() { change(h) }

			_, err := h.reconcile("web")

			require.NoError(t, err, "a lost race is not an error of the operator")
			assert.Zero(t, h.scaleWrites.Load())
		})
	}
}

func TestAMissingPermissionIsSaidAndLookedAtAgainAtTheNextPoll(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.beforeScale = func() error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments/scale"}, "web", errors.New("no"))
	}

	result, err := h.reconcile("web")

	require.NoError(t, err, "no retry mends a missing permission")
	assert.Equal(t, 17*time.Second, result.RequeueAfter, "with the next answer, or when that is overdue")
	h.requireCondition(h.get("web"), v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonForbidden)
	assert.Equal(t, int32(2), h.replicas())
}

func TestAnAPIServerThatFailsIsRetriedWithBackOff(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.beforeScale = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }

	_, err := h.reconcile("web")

	require.ErrorContains(t, err, "etcd is down", "the error goes back to the queue, which backs off")
	h.requireCondition(h.get("web"), v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonScaleFailed)
}

func TestADeletedAutoScalerReleasesItsBindingAndLeavesTheReplicas(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.poll()
	require.Equal(t, v1alpha1.PhaseHeld, h.binding().Status.Phase)

	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	_, err := h.reconcile("web")
	require.NoError(t, err)

	b := h.binding()
	assert.True(t, b.Free())
	assert.Equal(t, v1alpha1.PhaseFree, b.Status.Phase)
	assert.Equal(t, int32(9), h.replicas())
	var d appsv1.Deployment
	require.NoError(t, h.client.Get(h.ctx, h.key("web"), &d), "the Deployment is not ours to delete")
	assert.Empty(t, d.OwnerReferences)
}

func TestAnAutoScalerPointedElsewhereOrTurnedIntoADryRunReleasesItsBinding(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.AutoScaler){
		"dry run":   func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true },
		"elsewhere": func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deployment(2)
			h.create(builders.Deployment(h.namespace, "api", 2))
			h.create(h.autoscaler().Obj())
			h.metrics.Value(200)
			h.poll()

			h.edit(change)
			h.advance(15 * time.Second)
			h.poll()

			assert.True(t, h.binding().Free())
		})
	}
}

func TestAnHPAThatComesLaterIsHeldAgainstNotFought(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	h.create(builders.HPA(h.namespace, "late", "web"))
	h.metrics.Value(900)
	h.advance(15 * time.Second)

	message := h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonConflictingHPA)

	assert.Contains(t, message, `"late"`)
	assert.Contains(t, message, "delete hpa late", "the way out is named")
	assert.Zero(t, h.scaleWrites.Load())
}
