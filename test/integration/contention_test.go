//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// scaledTo8 is a Deployment "web" that its AutoScaler has scaled to 8, as its load
// demands.
func scaledTo8(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(800)
	h.poll()
	require.Equal(t, int32(8), h.replicas())
	h.scaleWrites.Store(0)
	h.events.take()
	return h
}

// contended checks that an AutoScaler says whom it backs off from.
func (h *harness) contended(a *v1alpha1.AutoScaler, changes int32) *v1alpha1.Contention {
	h.Helper()
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonContended)
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonContended)
	require.NotNil(h, a.Status.Contention)
	require.Equal(h, changes, a.Status.Contention.Changes)
	require.Equal(h, v1alpha1.PhaseContended, h.binding().Status.Phase)
	return a.Status.Contention
}

func TestADeploymentScaledByHandIsNamedAndMendedAfterAShortWait(t *testing.T) {
	h := scaledTo8(t)
	h.advance(15 * time.Second)
	h.scaleByHand(3)

	a := h.poll()

	c := h.contended(a, 1)
	assert.Equal(t, "kubectl-scale", c.Manager)
	assert.Equal(t, [2]int32{8, 3}, [2]int32{c.From, c.To})
	assert.Contains(t, h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonContended), `field manager "kubectl-scale"`)
	assert.Len(t, only(h.events.take(), v1alpha1.ReasonContended), 1)
	assert.Equal(t, int32(3), h.replicas(), "not undone at once")

	h.pollFor(30 * time.Second)
	assert.Equal(t, int32(8), h.replicas())
	assert.Equal(t, int32(1), h.scaleWrites.Load())

	a = h.pollFor(30 * time.Second)
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionTrue, v1alpha1.ReasonScaleReady)
	assert.Empty(t, only(h.events.take(), v1alpha1.ReasonContended), "told once")

	a = h.pollFor(15 * time.Minute)
	assert.Nil(t, a.Status.Contention, "forgotten after a quiet time")
	assert.Equal(t, v1alpha1.PhaseHeld, h.binding().Status.Phase)
	assert.Equal(t, int32(1), h.scaleWrites.Load())
}

func TestTheEvaluationAfterABackOffComesWhenItIsOver(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Poll(3600).Obj())
	h.metrics.Value(800)
	h.poll()
	h.scaleByHand(3)
	h.advance(time.Second)

	result, err := h.reconcile("web")

	require.NoError(t, err)
	assert.InDelta(t, 30, result.RequeueAfter.Seconds(), 1, "and not at the next poll, an hour later")
}

func TestARestartGoesOnWithTheBackOff(t *testing.T) {
	h := scaledTo8(t)
	for range 3 { // 30 s, 1 min, 2 min
		h.scaleByHand(3)
		h.pollFor(150 * time.Second)
		require.Equal(t, int32(8), h.replicas())
	}
	h.scaleByHand(3)
	a := h.poll()
	before := h.contended(a, 4)
	writes := h.scaleWrites.Load()
	h.restart()

	h.advance(15 * time.Second)
	a = h.poll()

	assert.Equal(t, before, h.contended(a, 4))
	h.pollFor(3 * time.Minute)
	assert.Equal(t, writes, h.scaleWrites.Load(), "it waits 4 min")
	h.pollFor(time.Minute)
	assert.Equal(t, int32(8), h.replicas())
}

func TestAChangeWhileTheOperatorWasDownIsContentionToo(t *testing.T) {
	h := scaledTo8(t)
	h.restart()
	h.scaleByHand(3)
	h.advance(10 * time.Minute)

	c := h.contended(h.poll(), 1)

	assert.Equal(t, [2]int32{8, 3}, [2]int32{c.From, c.To})
	assert.Equal(t, int32(3), h.replicas())
}

func TestAChangeIsStillContentionWhenTheStatusThatTellsOfItIsLost(t *testing.T) {
	h := scaledTo8(t)
	h.scaleByHand(3)
	h.beforeStatus = func() error {
		h.beforeStatus = nil
		h.edit(func(a *v1alpha1.AutoScaler) { a.Labels = map[string]string{"touched": "meanwhile"} })
		return nil
	}
	_, err := h.reconcile("web")
	require.NoError(t, err)
	require.Nil(t, h.get("web").Status.Contention)

	h.advance(time.Second)

	h.contended(h.poll(), 1)
}

// TestWhatIsNoContention: each of these changes the count to 3, and may.
func TestWhatIsNoContention(t *testing.T) {
	pause := func(h *harness, paused bool) { h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = paused }) }
	for name, change := range map[string]func(h *harness){
		"paused, scaled by hand and resumed": func(h *harness) {
			pause(h, true)
			h.poll()
			h.scaleByHand(3)
			h.poll()
			pause(h, false)
		},
		"the same between two evaluations": func(h *harness) {
			pause(h, true)
			h.scaleByHand(3)
			pause(h, false)
		},
		"the same while the operator was down": func(h *harness) {
			h.restart()
			pause(h, true)
			h.scaleByHand(3)
			pause(h, false)
		},
		"suspended by a person, and back": func(h *harness) {
			h.scaleByHand(0)
			a := h.poll()
			h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonTargetSuspended)
			require.Nil(h, a.Status.Contention)
			h.scaleByHand(3)
		},
		"the Deployment is another one": func(h *harness) {
			require.NoError(h, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 0)))
			h.deployment(3)
		},
		"an HPA has scaled it": func(h *harness) {
			hpa := builders.HPA(h.namespace, "hpa", "web")
			h.create(hpa)
			h.poll()
			h.scaleAs(3, "kube-controller-manager")
			require.Nil(h, h.poll().Status.Contention)
			require.NoError(h, h.client.Delete(h.ctx, hpa))
		},
		"a write of ours whose answer was lost": func(h *harness) {
			h.metrics.Value(300)
			require.Error(h, h.loseTheAnswer(3, errAnswerLost))
			h.metrics.Value(800)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := scaledTo8(t)
			h.advance(15 * time.Second)
			change(h)
			h.events.take()

			a := h.poll()

			assert.Nil(t, a.Status.Contention)
			h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionTrue, v1alpha1.ReasonScaleReady)
			assert.Empty(t, only(h.events.take(), v1alpha1.ReasonContended))
			h.advance(15 * time.Second)
			h.poll()
			assert.Equal(t, int32(8), h.replicas())
		})
	}
}

func TestFC22_APersonWhoSuspendsAContendedDeploymentEndsTheContention(t *testing.T) {
	h := scaledTo8(t)
	h.scaleByHand(3)
	h.contended(h.poll(), 1)

	h.scaleByHand(0)
	a := h.poll()

	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonTargetSuspended)
	assert.Nil(t, a.Status.Contention)
	h.pollFor(time.Minute)
	assert.Equal(t, int32(0), h.replicas())
	assert.Equal(t, v1alpha1.PhaseHeld, h.binding().Status.Phase)
}

// cacheOf lets the reconciler read this Deployment, as a cache that lags behind.
func (h *harness) cacheOf(old *appsv1.Deployment) (caughtUp func()) {
	behind := true
	h.reconciler.Client = interceptor.NewClient(h.reconciler.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if d, ok := obj.(*appsv1.Deployment); ok && behind {
				old.DeepCopyInto(d)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	return func() { behind = false }
}

func TestFC56_AnEvaluationWaitsForTheCacheToSeeTheLastWrite(t *testing.T) {
	h := newHarness(t)
	old := h.deployment(2)
	h.create(h.autoscaler().Steps(2, 1).Obj())
	h.metrics.Value(800)
	h.poll()
	require.Equal(t, int32(4), h.replicas())
	caughtUp := h.cacheOf(old)
	writes := h.statusWrites.Load()

	// The next step is due, and the cache still shows 2.
	h.advance(15 * time.Second)
	result, err := h.reconcile("web")
	require.NoError(t, err)
	assert.Equal(t, time.Second, result.RequeueAfter)
	assert.Equal(t, int32(4), h.replicas())
	assert.Equal(t, writes, h.statusWrites.Load(), "nothing is known to say")

	caughtUp()
	h.advance(time.Second)
	a := h.poll()
	assert.Equal(t, int32(6), h.replicas())
	assert.Nil(t, a.Status.Contention, "the old count was no change of somebody's")
}

func TestAnAutoScalerWhoseCacheLagsForGoodSaysSo(t *testing.T) {
	h := newHarness(t)
	old := h.deployment(2)
	h.create(h.autoscaler().Steps(2, 1).Obj())
	h.metrics.Value(800)
	h.poll()
	h.cacheOf(old)
	h.advance(time.Minute)

	a := h.poll()

	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonScaleConflict)
	assert.Equal(t, int32(4), h.replicas())
	assert.Equal(t, int32(1), h.scaleWrites.Load())
	assert.Nil(t, a.Status.Contention, "the old count was no change of somebody's")
}
