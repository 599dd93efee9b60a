//go:build integration

package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
)

// aboutToScaleUp is a Deployment of 2 that may add 4 at a time, and whose load has just
// grown tenfold.
func aboutToScaleUp(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(4, 1).Obj())
	h.metrics.Value(200)
	h.poll() // the status knows the 2
	h.advance(15 * time.Second)
	h.metrics.Value(2000)
	return h
}

// aboutToScaleDown is a Deployment of 10 that may remove 1 at a time, with an interval
// of so many seconds, and whose load has just gone to a fifth.
func aboutToScaleDown(t *testing.T, interval int32) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(10)
	h.create(h.autoscaler().Steps(4, 1).DownInterval(interval).Obj())
	h.metrics.Value(1000)
	h.poll()
	h.advance(15 * time.Second)
	h.metrics.Value(200)
	return h
}

// errAnswerLost is what a client has that got no answer in time.
var errAnswerLost = apierrors.NewTimeoutError("the answer was lost", 0)

// loseTheAnswer lets the next scale write be stored, and something else be answered.
// It gives what became of the evaluation.
func (h *harness) loseTheAnswer(replicas int32, answer error) error {
	h.Helper()
	h.beforeScale = func() error {
		h.beforeScale = nil
		h.scaleAs(replicas, controller.FieldManager)
		return answer
	}
	_, err := h.reconcile("web")
	require.Equal(h, replicas, h.replicas())
	h.advance(50 * time.Millisecond)
	return err
}

func TestTheAnswerToAScaleDownIsLost_TheCooldownIsKept(t *testing.T) {
	for name, answer := range map[string]error{
		"a time-out": errAnswerLost,
		// A client repeats a write whose answer it did not get, and conflicts with its own.
		"a false conflict": apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", errors.New("changed")),
	} {
		t.Run(name, func(t *testing.T) {
			h := aboutToScaleDown(t, 600)
			_ = h.loseTheAnswer(9, answer)

			h.poll()

			assert.Equal(t, int32(9), h.replicas(), "600 s between two scale-downs")
		})
	}
}

func TestAScaleWriteThatDidNotHappenIsNotCounted(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(4, 1).Obj())
	h.metrics.Value(2000)
	h.beforeScale = func() error {
		h.beforeScale = nil
		return apierrors.NewInternalError(errors.New("etcd is down"))
	}
	_, err := h.reconcile("web")
	require.Error(t, err)
	require.Equal(t, int32(2), h.replicas())

	h.advance(50 * time.Millisecond)
	h.poll()
	assert.Equal(t, int32(6), h.replicas())
}

func TestAfterACrashTheLostWriteIsCountedEvenIfTheFirstEvaluationFails(t *testing.T) {
	h := aboutToScaleDown(t, 600)
	h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
	_, err := h.reconcile("web")
	require.Error(t, err)
	require.Equal(t, int32(9), h.replicas())

	h.beforeStatus = nil
	h.restart()
	h.failing = func(_ string, obj client.Object) error {
		if _, ok := obj.(*v1alpha1.ScaleBinding); ok {
			return apierrors.NewServiceUnavailable("overloaded")
		}
		return nil
	}
	_, err = h.reconcile("web")
	require.Error(t, err)
	h.requireCondition(h.get("web"), v1alpha1.ConditionReady, "False", v1alpha1.ReasonEvaluationFailed)
	h.failing = nil
	h.advance(time.Second)
	h.poll()

	assert.Equal(t, int32(9), h.replicas(), "600 s between two scale-downs")
}

func TestAfterACrashAChangeByAPersonIsNotTakenForOurs(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(4, 1).Obj())
	h.metrics.Value(200)
	h.poll()
	h.scaleByHand(6)
	h.restart()
	h.metrics.Value(2000)
	h.poll()
	h.advance(30 * time.Second)

	h.poll()

	assert.Equal(t, int32(10), h.replicas(), "once the other writer has been let be for a while, a step from its count")
}

// withShadow is a Deployment with a holder and a dry run, both evaluated once.
func withShadow(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.create(builders.MakeAutoScaler(h.namespace, "shadow").DryRun().Metric("load", h.namespace+"-total", "100").Obj())
	h.metrics.Value(200)
	h.poll()
	h.pollNamed("shadow")
	return h
}

func TestAShadowNeverClaimsAWriteOfTheHolder(t *testing.T) {
	h := withShadow(t)
	h.restart()
	h.metrics.Value(900)
	h.advance(15 * time.Second)
	h.poll()

	a := h.pollNamed("shadow")

	assert.Nil(t, a.Status.AppliedReplicas)
	assert.Nil(t, a.Status.LastSuccessfulScaleTime)
}

func TestAnEvaluationCutShortByAShutdownWritesNothing(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	ctx, cancel := context.WithCancel(h.ctx)
	h.afterSample = cancel

	_, err := h.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: h.key("web")})

	assert.NoError(t, err)
	assert.Zero(t, h.scaleWrites.Load())
	assert.Zero(t, h.statusWrites.Load())
}

func TestAStatusComputedFromAnOldObjectIsNotStored(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.beforeStatus = func() error {
		h.beforeStatus = nil
		h.edit(func(a *v1alpha1.AutoScaler) { a.Labels = map[string]string{"touched": "meanwhile"} })
		return nil
	}

	result, err := h.reconcile("web")

	require.NoError(t, err)
	assert.Equal(t, time.Second, result.RequeueAfter, "made anew a moment later")
	assert.Empty(t, h.get("web").Status.Conditions)
}

func TestTheScaleIsToldByAnEventAlsoWhenItsStatusCameLater(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
	_, err := h.reconcile("web")
	require.Error(t, err)
	require.Empty(t, h.events.take(), "no event before the status is stored")

	h.beforeStatus = nil
	h.advance(time.Second)
	h.poll()
	assert.Len(t, only(h.events.take(), "Scaled"), 1)
	h.pollFor(time.Minute)
	assert.Empty(t, only(h.events.take(), "Scaled"))
}

func TestAWriteWhoseDirectionIsUncertainDelaysAScaleDown(t *testing.T) {
	h := newHarness(t)
	h.deployment(9)
	h.create(h.autoscaler().Steps(4, 1).DownInterval(600).Obj())
	h.metrics.Value(900)
	h.poll() // 9 is what the status knows
	h.scaleByHand(12)
	h.scaleAs(11, controller.FieldManager) // a scale-down of ours, and a crash before its status
	h.restart()
	h.metrics.Value(200)
	h.advance(15 * time.Second)

	h.poll()

	assert.Equal(t, int32(11), h.replicas(), "9 to 11 looks like a scale-up, and was none")
}

func TestAShadowThatGoesLiveDoesNotClaimWhatTheFormerHolderWrote(t *testing.T) {
	h := withShadow(t)
	h.restart()
	h.pollNamed("shadow")
	h.metrics.Value(900)
	h.advance(15 * time.Second)
	h.poll()
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	_, err := h.reconcile("web")
	require.NoError(t, err)
	shadow := h.get("shadow")
	shadow.Spec.DryRun = false
	require.NoError(t, h.client.Update(h.ctx, shadow))
	h.events.take()

	a := h.pollNamed("shadow")

	assert.Nil(t, a.Status.AppliedReplicas)
	assert.Empty(t, only(h.events.take(), "Scaled"))
}

func TestTheEventNamesTheDeploymentThatWasScaled(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.Deployment(h.namespace, "api", 2))
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
	_, err := h.reconcile("web")
	require.Error(t, err)
	h.beforeStatus = nil
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" })
	h.metrics.Value(200)
	h.advance(time.Second)

	h.poll()

	assert.Equal(t, []string{"Normal Scaled scaled Deployment web from 2 to 9 (recommended 9)"}, only(h.events.take(), "Scaled"))
}
