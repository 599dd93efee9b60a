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

// Target is the Deployment that a claim is confirmed for.
type Target struct {
	UID types.UID
	// Guard is closed where the owner is about to write; see ScaleBindingSpec.
	Guard v1alpha1.GuardState
}

// Confirm makes a claim effective, once per epoch and target: before the first
// write it looks live for another replica manager of the target (one may have been
// created beside the claim) and records the Deployment's UID. A manager gives a
// *ManagerError and leaves the claim unconfirmed. A binding that is confirmed
// already only gets its guard set. b may come from a cache: an older version than
// the stored one gives a conflict.
func (a *Arbiter) Confirm(ctx context.Context, b *v1alpha1.ScaleBinding, target Target) (*v1alpha1.ScaleBinding, error) {
	if b.Confirmed(target.UID) {
		return a.Set(ctx, b, b.Phase(), target.Guard, "")
	}
	if err := a.Managers.FindLive(ctx, b.Namespace, b.Spec.TargetRef.Name); err != nil {
		return nil, err
	}
	reason := "confirmed"
	if b.Spec.TargetUID != "" && b.Spec.TargetUID != target.UID {
		reason = "confirmed again: the Deployment was replaced"
	}
	next := b.DeepCopy()
	next.Spec.TargetUID = target.UID
	return a.set(ctx, b, next, v1alpha1.PhaseHeld, target.Guard, reason)
}

// Set writes the guard and the phase of a binding where they differ from these, on
// behalf of its owner. The reason is for the history, which a change of the guard
// alone does not enter.
func (a *Arbiter) Set(ctx context.Context, b *v1alpha1.ScaleBinding, phase v1alpha1.ScaleBindingPhase, guard v1alpha1.GuardState, reason string) (*v1alpha1.ScaleBinding, error) {
	return a.set(ctx, b, b.DeepCopy(), phase, guard, reason)
}

func (a *Arbiter) set(ctx context.Context, b, next *v1alpha1.ScaleBinding, phase v1alpha1.ScaleBindingPhase, guard v1alpha1.GuardState, reason string) (*v1alpha1.ScaleBinding, error) {
	if b.Closed() != (guard == v1alpha1.GuardClosed) {
		next.Spec.Guard = guard
	}
	if next.Spec.TargetUID != b.Spec.TargetUID || next.Spec.Guard != b.Spec.Guard {
		if err := a.Writer.Update(ctx, next); err != nil {
			return nil, err
		}
	}
	if phase == b.Phase() && next.Spec.TargetUID == b.Spec.TargetUID {
		return next, nil
	}
	return a.note(ctx, next, phase, "", reason)
}

// Hold is what must still be true of a confirmed binding right before a write.
func Hold(b *v1alpha1.ScaleBinding) Holding {
	return Holding{
		Namespace: b.Namespace, Target: b.Spec.TargetRef.Name,
		OwnerUID: b.Spec.OwnerUID, TargetUID: b.Spec.TargetUID, Epoch: b.Spec.Epoch,
	}
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
	b.Spec.Guard = v1alpha1.GuardOpen
	b.Spec.Epoch++
	if err := a.Writer.Update(ctx, b); err != nil {
		return 0, err
	}
	_, err = a.note(ctx, b, v1alpha1.PhaseFree, "", reason)
	return 0, err
}
