package binding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Holding is a confirmed ownership: what must still be true right before a write.
type Holding struct {
	Namespace, Target   string
	OwnerUID, TargetUID types.UID
	// Epoch is the fencing token.
	Epoch int64
}

// ErrLost says that the ownership a decision was made under is no more.
var ErrLost = errors.New("the replica count is no longer held as when the decision was made")

// Confirm makes a claim effective, once per epoch and target: right before the
// first write it looks live for a HorizontalPodAutoscaler of the target (one may
// have been created beside the claim) and records the Deployment's UID. An HPA
// gives a *HPAError and leaves the claim unconfirmed.
func (a *Arbiter) Confirm(ctx context.Context, b *v1alpha1.ScaleBinding, target types.UID) (Holding, error) {
	h := Holding{
		Namespace: b.Namespace, Target: b.Spec.TargetRef.Name,
		OwnerUID: b.Spec.OwnerUID, TargetUID: target, Epoch: b.Spec.Epoch,
	}
	if b.Confirmed(target) {
		return h, nil
	}
	if err := FindHPA(ctx, a.Live, b.Namespace, b.Spec.TargetRef.Name); err != nil {
		return h, err
	}
	next, reason := b.DeepCopy(), "confirmed"
	if b.Spec.TargetUID != target {
		if b.Spec.TargetUID != "" {
			reason = "confirmed again: the Deployment was replaced"
		}
		next.Spec.TargetUID = target
		if err := a.Writer.Update(ctx, next); err != nil {
			return h, err
		}
	}
	_, err := a.note(ctx, next, v1alpha1.PhaseHeld, "", reason)
	return h, err
}

// Verify reads the binding live and gives ErrLost unless it still is as confirmed.
func (a *Arbiter) Verify(ctx context.Context, h Holding) error {
	b, err := a.get(ctx, h.Namespace, h.Target)
	if err != nil {
		return err
	}
	if b == nil || b.Spec.OwnerUID != h.OwnerUID || b.Spec.TargetUID != h.TargetUID || b.Spec.Epoch != h.Epoch {
		return fmt.Errorf("ScaleBinding %s/%s: %w", h.Namespace, h.Target, ErrLost)
	}
	return nil
}

// Reap frees a binding whose owner is gone: deleted, turned into a dry run,
// pointed elsewhere, or refused after its claim. It returns how long to wait
// before looking again when the claim is still within its grace, or 0. Only the
// owner that was seen gone is removed.
func (a *Arbiter) Reap(ctx context.Context, namespace, target string, owner types.UID) (time.Duration, error) {
	b, err := a.get(ctx, namespace, target)
	if err != nil || b == nil {
		return 0, err
	}
	if b.Free() && b.Status.Epoch != b.Spec.Epoch {
		// Freed by a call that did not get to record it.
		_, err := a.note(ctx, b, v1alpha1.PhaseFree, "", "released")
		return 0, err
	}
	if b.Free() || b.Spec.OwnerUID != owner {
		return 0, nil
	}
	state, err := a.owner(ctx, b, "")
	if err != nil {
		return 0, err
	}
	switch state {
	case ownerAlive:
		return 0, nil
	case ownerPending:
		return a.graceLeft(b), nil
	}
	reason := fmt.Sprintf("released: AutoScaler %s is gone, a dry run, or points elsewhere", b.Spec.OwnerRef.Name)
	b.Spec.OwnerRef, b.Spec.OwnerUID, b.Spec.TargetUID = nil, "", ""
	b.Spec.ClaimedBy, b.Spec.ClaimedAt = "", nil
	b.Spec.Epoch++
	if err := a.Writer.Update(ctx, b); err != nil {
		return 0, err
	}
	_, err = a.note(ctx, b, v1alpha1.PhaseFree, "", reason)
	return 0, err
}
