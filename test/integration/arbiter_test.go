//go:build integration

package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

// bound gives a harness whose AutoScaler "web" holds the Deployment, confirmed.
func bound(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	require.Equal(t, v1alpha1.PhaseHeld, h.binding().Status.Phase)
	return h
}

func (h *harness) arbiter() *binding.Arbiter { return h.reconciler.Arbiter }

// rival is another AutoScaler that asks for the same Deployment.
func (h *harness) rival() binding.Claimant {
	return claimant(builders.MakeAutoScaler(h.namespace, "rival").UID("rival").Obj())
}

func (h *harness) requireHeld(err error, pending bool) {
	h.Helper()
	var held *binding.HeldError
	require.ErrorAs(h, err, &held)
	require.Equal(h, "web", held.Holder)
	require.Equal(h, pending, held.Pending)
}

func TestAConfirmedOwnerIsGoneWhenItNoLongerAsks(t *testing.T) {
	for name, change := range map[string]func(h *harness){
		"deleted": func(h *harness) { require.NoError(h, h.client.Delete(h.ctx, h.get("web"))) },
		"being deleted": func(h *harness) {
			h.edit(func(a *v1alpha1.AutoScaler) { a.Finalizers = []string{"example.com/wait"} })
			require.NoError(h, h.client.Delete(h.ctx, h.get("web")))
		},
		"a dry run":         func(h *harness) { h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }) },
		"pointed elsewhere": func(h *harness) { h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" }) },
		"replaced by a dry run of its name": func(h *harness) {
			a := h.get("web")
			require.NoError(h, h.client.Delete(h.ctx, a))
			h.create(builders.MakeAutoScaler(h.namespace, "web").DryRun().Metric("load", h.namespace+"-total", "1").Obj())
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := bound(t)
			h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), false)
			change(h)

			b, err := h.arbiter().Claim(h.ctx, h.rival())

			require.NoError(t, err)
			assert.Equal(t, int64(2), b.Spec.Epoch)
			assert.Equal(t, v1alpha1.PhasePending, b.Status.Phase)
			assert.Empty(t, b.Spec.TargetUID, "the new owner is confirmed for itself")
			assert.Contains(t, b.Status.Transitions[0].Reason, "took over from AutoScaler web")
		})
	}
}

func TestAPausedOwnerKeepsItsClaim(t *testing.T) {
	h := bound(t)
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
	h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), false)
}

func TestAClaimUnderWayCountsAsAliveForItsGrace(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	web := claimant(h.autoscaler().UID("on-its-way").Obj())
	_, err := h.arbiter().Claim(h.ctx, web)
	require.NoError(t, err)

	h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), true)
	again := web
	again.UID = "second-attempt"
	assert.NoError(t, h.arbiter().Check(h.ctx, again), "a second attempt at the same name need not wait")

	h.advance(binding.DefaultGrace + time.Second)
	assert.NoError(t, h.arbiter().Check(h.ctx, h.rival()))
}

func TestAnUpdatesClaimIsNotFreedForWhatIsStillStored(t *testing.T) {
	h := bound(t)
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }) // and not reconciled yet
	// Admission of dryRun: false claims; the update is on its way into storage.
	update := claimant(h.get("web"))
	update.Anew = true
	_, err := h.arbiter().Claim(h.ctx, update)
	require.NoError(t, err)

	_, err = h.reconcile("web")
	require.NoError(t, err)

	assert.False(t, h.binding().Free())
	h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), true)
}

func TestOfTwoCreationsOfOneNameTheStoredOneIsTheHolder(t *testing.T) {
	h := bound(t)
	b := h.binding()
	b.Spec.OwnerUID = "lost-in-storage" // the other creation claimed last
	b.Spec.Epoch++
	require.NoError(t, h.client.Update(h.ctx, b))

	h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), false)
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, h.get("web").UID, h.binding().Spec.OwnerUID)
}

func TestFC30_AnHPAThatTheCacheHasNotSeenIsFoundBeforeTheFirstWrite(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.create(builders.HPA(h.namespace, "parallel", "web"))
	h.staleHPAs = true
	h.metrics.Value(900)

	message := h.requireCondition(h.poll(), v1alpha1.ConditionBound, "False", v1alpha1.ReasonConflictingHPA)

	assert.Contains(t, message, `"parallel"`)
	assert.Zero(t, h.scaleWrites.Load())
	b := h.binding()
	assert.Equal(t, v1alpha1.PhaseContended, b.Status.Phase)
	assert.Empty(t, b.Spec.TargetUID, "not confirmed")
	assert.Equal(t, v1alpha1.GuardOpen, b.Spec.Guard)
}

func TestFC30_TheLoserMakesNoScaleWrites(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	profile := h.profile("total")
	h.create(builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "100").Obj())
	h.metrics.Value(150)
	h.poll()
	h.create(builders.MakeAutoScaler(h.namespace, "rival").Metric("load", profile, "10").Obj())
	for range 4 {
		h.poll()
		h.pollNamed("rival")
		h.advance(15 * time.Second)
	}
	assert.Equal(t, int32(2), h.replicas())
	assert.Zero(t, h.scaleWrites.Load(), "2 is right for the holder; the rival would have 15")
}

func TestNothingIsWrittenForAClaimWhoseConfirmationFailed(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.failing = func(verb string, obj client.Object) error {
		if _, ok := obj.(*v1alpha1.ScaleBinding); ok && verb == "update status" {
			return apierrors.NewInternalError(errors.New("etcd is down"))
		}
		return nil
	}

	_, err := h.reconcile("web")

	require.Error(t, err)
	assert.Zero(t, h.scaleWrites.Load())
}

func TestAReleaseThatWasNotRecordedIsMadeGood(t *testing.T) {
	h := bound(t)
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	h.failing = func(verb string, _ client.Object) error {
		if verb == "update status" {
			return apierrors.NewInternalError(errors.New("etcd is down"))
		}
		return nil
	}
	_, err := h.reconcile("web")
	require.NoError(t, err)
	b := h.binding()
	require.True(t, b.Free())
	require.Equal(t, v1alpha1.PhaseHeld, b.Status.Phase, "of the epoch before")
	require.Less(t, b.Status.Epoch, b.Spec.Epoch)

	h.failing = nil
	_, err = h.reconcile("web")
	require.NoError(t, err)
	assert.Equal(t, v1alpha1.PhaseFree, h.binding().Status.Phase)
}

func TestOnlyTheOwnerThatWasSeenGoneIsRemoved(t *testing.T) {
	h := bound(t)
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	_, err := h.arbiter().Claim(h.ctx, h.rival())
	require.NoError(t, err)

	h.advance(binding.DefaultGrace + time.Second) // nothing but the UID protects the rival now

	_, err = h.arbiter().Reap(h.ctx, h.namespace, "web", types.UID("web's, as seen a moment ago"))

	require.NoError(t, err)
	assert.Equal(t, types.UID("rival"), h.binding().Spec.OwnerUID)
}

func TestAnInvalidSpecDoesNotForgetAClaimToReap(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.create(h.autoscaler().Bounds(2, 5000).Obj())
	stray := h.get("web")
	stray.Spec.TargetRef.Name = "api"
	_, err := h.arbiter().Claim(h.ctx, claimant(stray))
	require.NoError(t, err)

	result, err := h.reconcile("web")

	require.NoError(t, err)
	assert.LessOrEqual(t, result.RequeueAfter, binding.DefaultGrace)
}

func TestTransitionsAreBounded(t *testing.T) {
	h := bound(t)
	for range v1alpha1.MaxTransitions + 3 {
		h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = !a.Spec.DryRun })
		h.advance(time.Minute)
		h.poll()
	}
	b := h.binding()
	assert.Len(t, b.Status.Transitions, v1alpha1.MaxTransitions)
	assert.Equal(t, b.Spec.Epoch, b.Status.Transitions[0].Epoch, "newest first")
}

func TestAClaimFromAClockFarAheadHasNoGrace(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.advance(time.Hour)
	_, err := h.arbiter().Claim(h.ctx, claimant(h.autoscaler().UID("never-stored").Obj()))
	require.NoError(t, err)
	h.advance(-time.Hour)

	assert.NoError(t, h.arbiter().Check(h.ctx, h.rival()))
}
