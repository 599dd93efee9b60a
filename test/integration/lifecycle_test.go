//go:build integration

package integration

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// second creates another AutoScaler for the Deployment "web".
func (h *harness) second(name string, policy v1alpha1.ClaimPolicy) {
	h.Helper()
	h.create(builders.MakeAutoScaler(h.namespace, name).ClaimPolicy(policy).Metric("load", h.namespace+"-total", "100").Obj())
}

func (h *harness) delete(name string) {
	h.Helper()
	require.NoError(h, h.client.Delete(h.ctx, h.get(name)))
	_, err := h.reconcile(name)
	require.NoError(h, err)
}

func (h *harness) requireOwner(name string, phase v1alpha1.ScaleBindingPhase) *v1alpha1.ScaleBinding {
	h.Helper()
	b := h.binding()
	require.NotNil(h, b.Spec.OwnerRef, "nobody owns it")
	require.Equal(h, name+" "+string(phase), b.Spec.OwnerRef.Name+" "+string(b.Status.Phase))
	return b
}

func TestFC26_ARenameThatCreatesBeforeItDeletesIsAHandOver(t *testing.T) {
	h := bound(t)
	h.second("web-hpa", v1alpha1.ClaimWait)

	a := h.pollNamed("web-hpa")
	message := h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
	assert.Contains(t, message, `held by AutoScaler "web"`)
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonNotBound)

	h.delete("web")
	a = h.pollNamed("web-hpa")

	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	b := h.requireOwner("web-hpa", v1alpha1.PhaseHeld)
	assert.Equal(t, int64(3), b.Spec.Epoch, "released, and claimed anew")
	assert.Equal(t, int32(2), h.replicas(), "the count stays")
	assert.Zero(t, h.scaleWrites.Load())
}

func TestFC26_WithRejectTheRenameIsRefusedAndSaysWhoHoldsIt(t *testing.T) {
	h := bound(t)

	err := h.client.Create(h.ctx, builders.MakeAutoScaler(h.namespace, "web-hpa").Metric("load", h.namespace+"-total", "100").Obj())

	require.ErrorContains(t, err, `spec.targetRef.name`)
	require.ErrorContains(t, err, `held by AutoScaler "web"`)
	h.requireOwner("web", v1alpha1.PhaseHeld)
}

func TestWaitersTakeOverInTheOrderOfTheirCreation(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.metrics.Value(200)
	h.create(h.autoscaler().Obj())
	h.poll()
	// Creation times have whole seconds, so that these three may have the same one:
	// then the UID decides, which is random.
	h.second("b", v1alpha1.ClaimWait)
	h.second("a", v1alpha1.ClaimWait)
	h.second("c", v1alpha1.ClaimWait)
	order := []string{"a", "b", "c"}
	slices.SortFunc(order, func(x, y string) int {
		a, b := h.get(x), h.get(y)
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	holder := "web"
	for i, next := range order {
		h.delete(holder)
		for j := len(order) - 1; j > i; j-- {
			h.requireCondition(h.pollNamed(order[j]), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
			assert.True(t, h.binding().Free(), "%s does not jump the line", order[j])
		}
		h.pollNamed(next)
		h.requireOwner(next, v1alpha1.PhaseHeld)
		holder = next
	}
}

func TestAnInvalidWaiterDoesNotHoldUpTheLine(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.metrics.Value(200)
	invalid := h.autoscaler().Obj()
	invalid.Name = "invalid"
	invalid.Spec.MaxReplicas = v1alpha1.DefaultLimits.MaxReplicas + 1
	h.create(invalid)
	h.second("web", v1alpha1.ClaimWait)

	h.poll()

	h.requireOwner("web", v1alpha1.PhaseHeld)
}

func TestOfTwoThatWereStoredPastAdmissionExactlyOneWrites(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.metrics.Value(900)
	h.create(h.autoscaler().Obj())
	h.second("other", "")
	winner, loser := "web", "other"
	if h.reconciler.Arbiter.StandsBefore(h.get("other"), h.get("web")) {
		winner, loser = "other", "web"
	}

	message := h.requireCondition(h.pollNamed(loser), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonHeldByAnother)
	assert.Contains(t, message, `AutoScaler "`+winner+`" was created earlier`)
	h.requireCondition(h.pollNamed(winner), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	message = h.requireCondition(h.pollNamed(loser), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonHeldByAnother)

	assert.Contains(t, message, `held by AutoScaler "`+winner+`"`)
	assert.Equal(t, int32(9), h.replicas())
	assert.Equal(t, int32(1), h.scaleWrites.Load())
}

func TestADryRunThatIsSwitchedOffWaitsOrIsRefused(t *testing.T) {
	h := bound(t)
	h.create(builders.MakeAutoScaler(h.namespace, "shadow").DryRun().Metric("load", h.namespace+"-total", "100").Obj())
	shadow := h.get("shadow")
	shadow.Spec.DryRun = false
	require.ErrorContains(t, h.client.Update(h.ctx, shadow), `held by AutoScaler "web"`)

	shadow.Spec.ClaimPolicy = v1alpha1.ClaimWait
	require.NoError(t, h.client.Update(h.ctx, shadow))
	h.requireCondition(h.pollNamed("shadow"), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
	h.poll()
	h.pollNamed("shadow")
	h.requireOwner("shadow", v1alpha1.PhaseHeld)
}

func TestAChangedTargetIsClaimedAndTheOldOneReleased(t *testing.T) {
	h := bound(t)
	h.create(builders.Deployment(h.namespace, "api", 3))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" })
	h.metrics.Value(400)

	h.poll()

	assert.True(t, h.binding().Free())
	assert.Equal(t, v1alpha1.PhaseFree, h.binding().Status.Phase)
	var b v1alpha1.ScaleBinding
	require.NoError(t, h.client.Get(h.ctx, h.key("api"), &b))
	assert.Equal(t, "web Held", b.Spec.OwnerRef.Name+" "+string(b.Status.Phase))
	assert.Equal(t, int32(2), h.replicas())
}

func TestAReplacedDeploymentIsOrphanedThenConfirmedAnew(t *testing.T) {
	h := bound(t)
	require.Equal(t, v1alpha1.GuardClosed, h.binding().Spec.Guard)
	old := h.binding().Spec.TargetUID
	require.NoError(t, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 0)))
	h.poll()
	b := h.requireOwner("web", v1alpha1.PhaseOrphaned)
	assert.Equal(t, v1alpha1.GuardOpen, b.Spec.Guard)

	h.deployment(2)
	h.advance(15 * time.Second)
	h.poll()

	b = h.requireOwner("web", v1alpha1.PhaseHeld)
	assert.NotEqual(t, old, b.Spec.TargetUID)
	assert.Equal(t, v1alpha1.GuardClosed, b.Spec.Guard)
	assert.Contains(t, b.Status.Transitions[0].Reason, "the Deployment was replaced")
}

func TestAnAutoScalerBeforeItsDeploymentIsOrphanedUntilThatAppears(t *testing.T) {
	h := newHarness(t)
	h.create(h.autoscaler().Obj())
	h.poll()
	b := h.requireOwner("web", v1alpha1.PhaseOrphaned)
	assert.Equal(t, []string{"Orphaned", "Pending"}, phases(b), "the claim at admission is in the history")
	assert.NotEmpty(t, b.Status.Transitions[1].By)

	h.metrics.Value(200)
	h.deployment(2)
	h.poll()
	h.requireOwner("web", v1alpha1.PhaseHeld)
}

func phases(b *v1alpha1.ScaleBinding) []string {
	var names []string
	for _, t := range b.Status.Transitions {
		names = append(names, string(t.Phase))
	}
	return names
}

func TestTheGuardIsOpenWhenTheOperatorWouldNotWrite(t *testing.T) {
	guardAfter := func(t *testing.T, change func(h *harness)) v1alpha1.GuardState {
		t.Helper()
		h := bound(t)
		require.Equal(t, v1alpha1.GuardClosed, h.binding().Spec.Guard)
		change(h)
		_, err := h.reconcile("web")
		require.NoError(t, err)
		return h.binding().Spec.Guard
	}
	for name, change := range map[string]func(h *harness){
		"paused":    func(h *harness) { h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }) },
		"a dry run": func(h *harness) { h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }) },
		"deleted":   func(h *harness) { require.NoError(h, h.client.Delete(h.ctx, h.get("web"))) },
		"at zero":   func(h *harness) { h.scaleByHand(0) },
		"an HPA":    func(h *harness) { h.create(builders.HPA(h.namespace, "late", "web")) },
		"an invalid spec": func(h *harness) {
			h.reconciler.Limits.MaxReplicas = 5
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, v1alpha1.GuardOpen, guardAfter(t, change)) })
	}
	t.Run("but not when metrics fail", func(t *testing.T) {
		assert.Equal(t, v1alpha1.GuardClosed, guardAfter(t, func(h *harness) { h.metrics.Empty() }))
	})
}

func TestFC27_AnHPAThatComesLateIsHeldAgainstWithoutAFight(t *testing.T) {
	h := bound(t)
	h.create(builders.HPA(h.namespace, "late", "web"))
	h.metrics.Value(900)
	a := h.poll()
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonConflictingHPA)
	b := h.requireOwner("web", v1alpha1.PhaseContended)
	assert.Equal(t, v1alpha1.GuardOpen, b.Spec.Guard, "the HPA may write: nobody else does")
	assert.Contains(t, b.Status.Transitions[0].Reason, "HorizontalPodAutoscaler late")
	assert.Zero(t, h.scaleWrites.Load())

	require.NoError(t, h.client.Delete(h.ctx, builders.HPA(h.namespace, "late", "web")))
	h.poll()

	h.requireOwner("web", v1alpha1.PhaseHeld)
	assert.Equal(t, int32(9), h.replicas())
}

func TestFC27_BackToAnHPALeavesTheCountAsItIs(t *testing.T) {
	h := bound(t)
	h.metrics.Value(900)
	h.poll()
	require.Equal(t, int32(9), h.replicas())

	h.delete("web")
	h.create(builders.HPA(h.namespace, "web", "web"))

	assert.True(t, h.binding().Free())
	assert.Equal(t, int32(9), h.replicas())
}

func TestAnEditOfBoundsOrPauseKeepsTheClaimAndItsEpoch(t *testing.T) {
	h := bound(t)
	for _, change := range []func(*v1alpha1.AutoScaler){
		func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas = 3 },
		func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 30 },
		func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true },
		func(a *v1alpha1.AutoScaler) { a.Spec.Paused = false },
	} {
		h.edit(change)
		h.advance(15 * time.Second)
		h.poll()
		assert.Equal(t, int64(1), h.requireOwner("web", v1alpha1.PhaseHeld).Spec.Epoch)
	}
	assert.Equal(t, int32(3), h.replicas())
}

func TestOtherManagersOfTheCountAreNamedWhenTheClaimIsHeld(t *testing.T) {
	h := newHarness(t)
	d := builders.Deployment(h.namespace, "web", 2)
	d.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}
	require.NoError(t, h.client.Create(h.ctx, d, client.FieldOwner("argocd-controller")))
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)

	message := h.requireCondition(h.poll(), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	assert.Contains(t, message, "spec.replicas was last set by argocd-controller")

	// Another wording of the same reason is told within a few polls.
	message = h.requireCondition(h.pollFor(2*time.Minute), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	assert.NotContains(t, message, "argocd", "our write has taken the field over")
}
