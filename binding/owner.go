package binding

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// claimable says whether c may take a binding that is not its own: nil when it
// is free or its owner is gone.
func (a *Arbiter) claimable(ctx context.Context, b *v1alpha1.ScaleBinding, c Claimant) error {
	if b.Free() || b.Spec.OwnerUID == c.UID {
		return nil
	}
	state, err := a.owner(ctx, b, c.UID)
	if err != nil {
		return err
	}
	switch state {
	case ownerGone:
		return nil
	case ownerPending:
		// Only one object of a name can be stored. Two creations of one name that
		// are under way at once are settled by storage, and the reconciler then
		// claims for the one that got in.
		if b.Spec.OwnerRef.Name == c.Name {
			return nil
		}
	}
	return &HeldError{Namespace: c.Namespace, Target: c.Target, Holder: b.Spec.OwnerRef.Name, Pending: state == ownerPending}
}

type ownerState int

const (
	ownerGone ownerState = iota
	ownerPending
	ownerAlive
)

// owner looks at the AutoScaler that a binding names. Alive: it exists, is not
// being deleted, is enabled and points at the target. Pending: it is not (yet)
// like that, but the claim is unconfirmed and younger than the grace, so the
// request that made it may still be under way. Under another UID than the one
// that claimed, it may be the one of two creations of a name that was stored: it will
// claim by itself, and for the claim's grace is alive for everybody but itself (the
// claimant).
func (a *Arbiter) owner(ctx context.Context, b *v1alpha1.ScaleBinding, claimant types.UID) (ownerState, error) {
	var owner v1alpha1.AutoScaler
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.OwnerRef.Name}
	err := a.Live.Get(ctx, key, &owner)
	switch {
	case apierrors.IsNotFound(err):
		return a.pendingOrGone(b), nil
	case err != nil:
		return ownerAlive, fmt.Errorf("looking for AutoScaler %s, the holder of Deployment %s: %w", key, b.Spec.TargetRef.Name, err)
	case owner.UID == claimant, owner.DeletionTimestamp != nil:
		return ownerGone, nil
	case owner.DecodeError != "":
		// It cannot be told what it wants; it keeps what it has.
		return ownerAlive, nil
	case !owner.Spec.DryRun && owner.Spec.TargetRef.Name == b.Spec.TargetRef.Name:
		return a.asking(b, &owner), nil
	case owner.UID != b.Spec.OwnerUID:
		// The name is taken: who claimed cannot be stored any more.
		return ownerGone, nil
	}
	return a.pendingOrGone(b), nil
}

// asking is the state of an owner that asks for the binding's target. Under the UID
// that claimed it is alive, unless nothing was ever confirmed for it and its spec
// cannot be used. Under another one it is a new object of an old name, which stands in
// line like any other once the claim's grace is over.
func (a *Arbiter) asking(b *v1alpha1.ScaleBinding, owner *v1alpha1.AutoScaler) ownerState {
	switch {
	case owner.UID != b.Spec.OwnerUID && a.graceLeft(b) == 0:
		return ownerGone
	case !b.Seen() && !a.Usable(owner):
		return a.pendingOrGone(b)
	}
	return ownerAlive
}

func (a *Arbiter) pendingOrGone(b *v1alpha1.ScaleBinding) ownerState {
	if a.graceLeft(b) > 0 {
		return ownerPending
	}
	return ownerGone
}

// graceLeft is how long an unconfirmed claim still counts as alive. One that is
// dated more than a grace ahead comes from a clock that is wrong, and has none.
func (a *Arbiter) graceLeft(b *v1alpha1.ScaleBinding) time.Duration {
	if b.Spec.ClaimedAt == nil || b.Seen() {
		return 0
	}
	age := a.Clock.Since(b.Spec.ClaimedAt.Time)
	if age < -a.Grace {
		return 0
	}
	return min(a.Grace, a.Grace-age)
}
