package binding

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// note records a change that the spec already holds. A failure leaves the
// ownership right and the record behind; whoever changes the binding next, or
// confirms it, writes the phase again.
func (a *Arbiter) note(ctx context.Context, b *v1alpha1.ScaleBinding, phase v1alpha1.ScaleBindingPhase, by, reason string) (*v1alpha1.ScaleBinding, error) {
	next := b.DeepCopy()
	if c := unrecordedClaim(b); c != nil && phase != v1alpha1.PhasePending {
		remember(&next.Status, *c)
	}
	if wavers(next.Status.Transitions, b.Spec.Epoch, phase) {
		next.Status.Transitions = next.Status.Transitions[1:]
	}
	remember(&next.Status, v1alpha1.BindingTransition{
		Epoch: b.Spec.Epoch, Phase: phase, Owner: ownerName(b), By: by, Reason: reason, Time: metav1.NewTime(a.Clock.Now()),
	})
	next.Status.Phase, next.Status.Epoch = phase, b.Spec.Epoch
	if err := a.Writer.Status().Update(ctx, next); err != nil {
		if phase == v1alpha1.PhaseFree || phase == v1alpha1.PhasePending {
			return b, nil
		}
		return nil, err
	}
	return next, nil
}

// wavers says whether an entry goes on with a change to and fro between Held and
// Contended. Of those the history keeps the last one only, lest they drive out who
// claimed and who held before.
func wavers(history []v1alpha1.BindingTransition, epoch int64, phase v1alpha1.ScaleBindingPhase) bool {
	held := func(epoch2 int64, phase v1alpha1.ScaleBindingPhase) bool {
		return epoch2 == epoch && (phase == v1alpha1.PhaseHeld || phase == v1alpha1.PhaseContended)
	}
	return len(history) > 1 && held(epoch, phase) &&
		held(history[0].Epoch, history[0].Phase) && held(history[1].Epoch, history[1].Phase)
}

// unrecordedClaim is the claim of the current epoch where the history lacks it: a
// first claim is a single write, and the record of a later one may have been lost.
func unrecordedClaim(b *v1alpha1.ScaleBinding) *v1alpha1.BindingTransition {
	if b.Free() || b.Spec.ClaimedAt == nil || b.Status.Epoch == b.Spec.Epoch {
		return nil
	}
	return &v1alpha1.BindingTransition{
		Epoch: b.Spec.Epoch, Phase: v1alpha1.PhasePending, Owner: ownerName(b),
		By: b.Spec.ClaimedBy, Reason: "claimed", Time: *b.Spec.ClaimedAt,
	}
}

// remember puts the newest entry first and forgets the oldest.
func remember(s *v1alpha1.ScaleBindingStatus, entry v1alpha1.BindingTransition) {
	s.Transitions = append([]v1alpha1.BindingTransition{entry}, s.Transitions...)
	if len(s.Transitions) > v1alpha1.MaxTransitions {
		s.Transitions = s.Transitions[:v1alpha1.MaxTransitions]
	}
}

func ownerName(b *v1alpha1.ScaleBinding) string {
	if b.Spec.OwnerRef == nil {
		return ""
	}
	return b.Spec.OwnerRef.Name
}
