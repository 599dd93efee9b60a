//go:build integration

package integration

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

// pollBoth evaluates two AutoScalers by turns for a while.
func (h *harness) pollBoth(a, b string, d time.Duration) {
	h.Helper()
	for end := h.clock.Now().Add(d); h.clock.Now().Before(end); {
		h.advance(15 * time.Second)
		h.pollNamed(a)
		h.pollNamed(b)
	}
}

// The holder's deletion was not seen before its name came back: the new object has
// its own place in the line, behind who waited.
func TestAHolderThatComesBackUnderItsNameStandsInLine(t *testing.T) {
	h := bound(t)
	h.second("other", v1alpha1.ClaimWait)
	h.pollNamed("other")
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	h.second("web", v1alpha1.ClaimWait)
	h.metrics.Value(900)
	first, second := "other", "web"
	if h.reconciler.Arbiter.StandsBefore(h.get("web"), h.get("other")) { // both within one second
		first, second = "web", "other"
	}

	h.pollBoth("web", "other", 2*time.Minute)

	h.requireOwner(first, v1alpha1.PhaseHeld)
	assert.Equal(t, int32(9), h.replicas())
	h.requireCondition(h.get(second), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
}

func TestAHolderThatComesBackInvalidIsNoHolder(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	h.create(builders.MakeAutoScaler(h.namespace, "web").Bounds(2, 5000).Metric("load", h.namespace+"-total", "100").Obj())
	h.second("other", v1alpha1.ClaimWait)

	h.pollBoth("web", "other", 2*time.Minute)

	h.requireOwner("other", v1alpha1.PhaseHeld)
}

// Replicas of the operator may have different limits for a while.
func TestAClaimOfASpecThatTheLeaderRefusesEndsWithItsGrace(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Bounds(2, 900).Obj())
	h.limit(500)

	h.poll()
	h.requireHeld(h.arbiter().Check(h.ctx, h.rival()), true)
	h.advance(binding.DefaultGrace + time.Second)
	h.poll()

	assert.True(t, h.binding().Free())
	assert.NoError(t, h.arbiter().Check(h.ctx, h.rival()))
}

func TestAConfirmedOwnerKeepsItsClaimWhenItsSpecIsRefused(t *testing.T) {
	h := bound(t)
	h.limit(5)

	h.poll()

	b := h.requireOwner("web", v1alpha1.PhaseHeld)
	assert.Equal(t, v1alpha1.GuardOpen, b.Spec.Guard, "it cannot write now, so others may")
}

// failingManagers cannot look up some kind.
type failingManagers struct{ *binding.Managers }

func (failingManagers) Find(context.Context, string, string) error {
	return errors.New("watching scaledobjects: forbidden")
}

func TestFC38_AKindThatCannotBeLookedUpIsToldAndStopsNoOwner(t *testing.T) {
	h := bound(t)
	h.reconciler.Managers = failingManagers{h.reconciler.Managers.(*binding.Managers)}
	h.metrics.Value(900)

	message := h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonManagersUnknown)

	assert.Contains(t, message, "other replica managers cannot be looked for")
	assert.Equal(t, int32(9), h.replicas())
	assert.Len(t, only(h.events.take(), v1alpha1.ReasonManagersUnknown), 1)

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
	h.poll()
	assert.Equal(t, v1alpha1.GuardOpen, h.binding().Spec.Guard, "who paused may scale by hand")
}

func TestFC38_AKindThatCannotBeLookedUpConfirmsNoNewOwner(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.reconciler.Managers = failingManagers{h.reconciler.Managers.(*binding.Managers)}
	h.metrics.Value(900)

	_, err := h.reconcile("web")

	require.Error(t, err, "it is tried again")
	h.requireCondition(h.get("web"), v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonEvaluationFailed)
	assert.Zero(t, h.scaleWrites.Load())
}

func TestABrokenBindingElsewhereStopsNoHolder(t *testing.T) {
	h := bound(t)
	stray := &v1alpha1.ScaleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "api"}}
	stray.Spec = v1alpha1.ScaleBindingSpec{
		TargetRef: v1alpha1.TargetReference{Name: "api"}, OwnerRef: &v1alpha1.OwnerReference{Name: "web"}, OwnerUID: "another", Epoch: v1alpha1.MaxEpoch,
	}
	h.create(stray)
	h.metrics.Value(900)
	h.advance(15 * time.Second)

	h.poll()

	assert.Equal(t, int32(9), h.replicas())
}

func TestAnotherOperatorThatWritesUnderOurNameIsContention(t *testing.T) {
	h := scaledTo8(t)
	h.scaleAs(3, "autoscale-operator")
	h.advance(15 * time.Second)

	a := h.poll()

	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonContended)
	assert.Equal(t, "autoscale-operator", a.Status.Contention.Manager)
	assert.Equal(t, int32(3), h.replicas())
}

func TestContentionDoesNotDriveTheClaimOutOfTheHistory(t *testing.T) {
	h := scaledTo8(t)
	for range 6 {
		h.scaleByHand(3)
		h.pollFor(18 * time.Minute)
	}

	history := h.binding().Status.Transitions

	require.Len(t, history, 3, "%v", history)
	assert.Equal(t, []string{"Held", "Held", "Pending"}, phases(h.binding()), "what it came back to, confirmed, claimed")
	assert.NotEmpty(t, history[2].By)
}

func TestFC27_WithWaitAnAutoScalerStandsByForAnHPA(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.profile("total")
	h.create(builders.HPA(h.namespace, "old", "web"))
	h.second("web", v1alpha1.ClaimWait)
	h.metrics.Value(900)

	message := h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)

	assert.Contains(t, message, `HorizontalPodAutoscaler "old"`)
	assert.Empty(t, only(h.events.take(), v1alpha1.ReasonWaitingForRelease), "it was asked for")
	assert.Zero(t, h.scaleWrites.Load())

	require.NoError(t, h.client.Delete(h.ctx, builders.HPA(h.namespace, "old", "web")))
	h.poll()
	h.requireOwner("web", v1alpha1.PhaseHeld)
	assert.Equal(t, int32(9), h.replicas())
}

// The operator was killed between the spec and the status of a confirmation.
func TestAPauseOpensTheGuardOfAConfirmationThatWasNotRecorded(t *testing.T) {
	h := newHarness(t)
	d := h.deployment(2)
	h.create(h.autoscaler().Paused().Obj())
	h.metrics.Value(900)
	b := h.binding()
	b.Spec.TargetUID, b.Spec.Guard = d.UID, v1alpha1.GuardClosed
	require.NoError(t, h.client.Update(h.ctx, b))

	h.poll()

	assert.Equal(t, v1alpha1.GuardOpen, h.requireOwner("web", v1alpha1.PhaseHeld).Spec.Guard)
	assert.Equal(t, []string{"Held", "Pending"}, phases(h.binding()))
}

func TestTheRecordOfALostReleaseIsMadeGood(t *testing.T) {
	h := newHarness(t)
	_, err := h.arbiter().Claim(h.ctx, claimant(h.autoscaler().UID("never-stored").Obj()))
	require.NoError(t, err)
	b := h.binding()
	b.Spec.OwnerRef, b.Spec.OwnerUID, b.Spec.ClaimedAt = nil, "", nil
	b.Spec.Epoch++
	require.NoError(t, h.client.Update(h.ctx, b)) // and the operator is killed

	h.retain()

	b = h.binding()
	assert.Equal(t, v1alpha1.PhaseFree, b.Status.Phase)
	assert.Equal(t, b.Spec.Epoch, b.Status.Epoch)
}
