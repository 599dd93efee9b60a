package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// holdContract claims the replica count, again and idempotently: admission may
// have been off when the AutoScaler was stored. Without the claim, or beside
// another replica manager, the evaluation goes on and only recommends.
func (r *Reconciler) holdContract(ctx context.Context, e *evaluation) (bool, error) {
	a := e.autoscaler
	if a.Spec.DryRun {
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonDryRun, "a dry run takes no claim")
		return false, nil
	}
	err := r.claim(ctx, e)
	var held *binding.HeldError
	var manager *binding.ManagerError
	switch {
	case errors.As(err, &held) && a.Spec.ClaimPolicy == v1alpha1.ClaimWait:
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonWaitingForRelease, "stands by until the replica count is free: "+held.Waiting())
	case errors.As(err, &held):
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonHeldByAnother, err.Error())
	case errors.As(err, &manager):
		e.conflicts(manager)
		return false, r.contend(ctx, e, manager)
	case err != nil:
		return true, err
	default:
		holding := binding.Hold(e.binding)
		e.holding = &holding
		e.bound()
	}
	return false, nil
}

// conflicts tells of another replica manager. Who may wait, and was never confirmed,
// stands by for it.
func (e *evaluation) conflicts(manager *binding.ManagerError) {
	switch {
	case e.autoscaler.Spec.ClaimPolicy == v1alpha1.ClaimWait && e.binding != nil && !e.binding.Confirmed(e.target.uid):
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonWaitingForRelease, "stands by until that is gone: "+manager.Error())
	case manager.Kind == binding.HPAKind:
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonConflictingHPA, manager.Error())
	default:
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonConflictingManager, manager.Error())
	}
}

// bound tells of the claim, and of other writers that have set the count: they may set
// it again, unless that was what a pause is for. Who made a Deployment without a count is
// among them, since the default is booked to the maker.
func (e *evaluation) bound() {
	message := fmt.Sprintf("ScaleBinding %q names this AutoScaler", e.binding.Name)
	if others := e.target.setBy; len(others) > 0 {
		message += "; spec.replicas was last set by " + strings.Join(others, ", ")
		switch {
		case e.paused:
			message += ", which it may be while paused"
		case e.target.replicas > 0:
			message += "; if the manifest names a count, take it out"
		}
	}
	if e.managersUnknown != nil {
		e.setTrue(v1alpha1.ConditionBound, v1alpha1.ReasonManagersUnknown, message+"; other replica managers cannot be looked for: "+tellable(e.managersUnknown))
		return
	}
	e.setTrue(v1alpha1.ConditionBound, v1alpha1.ReasonClaimHeld, message)
}

// claim makes this AutoScaler the confirmed holder, and e.binding what says so.
func (r *Reconciler) claim(ctx context.Context, e *evaluation) (err error) {
	if e.binding, err = r.ownBinding(ctx, e); err != nil {
		return err
	}
	if e.guard() == v1alpha1.GuardOpen && e.binding.Closed() {
		// First of all: who paused is about to scale by hand.
		if e.binding, err = r.Arbiter.Set(ctx, e.binding, e.binding.Phase(), v1alpha1.GuardOpen, ""); err != nil {
			return err
		}
	}
	// A manager that came after the claim is found by index at every evaluation; the
	// live look at confirmation covers the time before. That some kind cannot be looked
	// up is no reason to leave a service without an autoscaler that had one.
	err = r.Managers.Find(ctx, e.target.key.Namespace, e.target.key.Name)
	if manager := (*binding.ManagerError)(nil); err != nil && !errors.As(err, &manager) && e.binding.Confirmed(e.target.uid) {
		e.managersUnknown, err = err, nil
	}
	if err != nil {
		return err
	}
	defer r.turns.take(e.target.key)()
	ctx, cancel := context.WithTimeout(ctx, turnDeadline)
	defer cancel()
	confirmed, err := r.Arbiter.Confirm(ctx, e.binding, binding.Target{UID: e.target.uid, Guard: e.guard()})
	if err == nil {
		e.binding = confirmed
	}
	return err
}

// guard is closed while this AutoScaler is to write the count, and nobody else.
func (e *evaluation) guard() v1alpha1.GuardState {
	if e.paused || e.target.replicas == 0 {
		return v1alpha1.GuardOpen
	}
	return v1alpha1.GuardClosed
}

// ownBinding is the ScaleBinding that names this AutoScaler: from the cache when
// that already does, for the write itself verifies it live; else claimed.
func (r *Reconciler) ownBinding(ctx context.Context, e *evaluation) (*v1alpha1.ScaleBinding, error) {
	seen, err := r.cachedBinding(ctx, e.target.key)
	switch {
	case err != nil:
		return nil, err
	case seen != nil && seen.Spec.OwnerUID == e.autoscaler.UID:
		return seen, nil
	}
	c := binding.ClaimantOf(e.autoscaler, FieldManager)
	c.Seen = seen != nil
	// Who stands by is evaluated with each of its samples. It asks the API server only
	// when the cache, whose events wake it, no longer says that somebody holds the count.
	if held := (*binding.HeldError)(nil); seen != nil && errors.As(r.Arbiter.CheckIn(ctx, r.Client, c), &held) {
		return nil, held
	}
	if err := r.Arbiter.Check(ctx, c); err != nil {
		return nil, err
	}
	ahead, err := r.Arbiter.Ahead(ctx, r.Client, e.autoscaler)
	if err != nil {
		return nil, err
	}
	if len(ahead) > 0 {
		return nil, &binding.HeldError{Namespace: c.Namespace, Target: c.Target, Holder: ahead[0].Name, InLine: true}
	}
	return r.Arbiter.Claim(ctx, c)
}

// cachedBinding is what the cache has of a Deployment's ScaleBinding, or nil. One
// that is not readable is as good as none: the live read says what is wrong.
func (r *Reconciler) cachedBinding(ctx context.Context, target types.NamespacedName) (*v1alpha1.ScaleBinding, error) {
	var b v1alpha1.ScaleBinding
	err := r.Client.Get(ctx, target, &b)
	if apierrors.IsNotFound(err) || err == nil && b.DecodeError != "" {
		return nil, nil
	}
	return &b, err
}

// contend says on the binding that another replica manager writes the count too,
// and lets it: two that both hold back would leave the service without any.
func (r *Reconciler) contend(ctx context.Context, e *evaluation, manager *binding.ManagerError) error {
	if e.binding == nil {
		return nil
	}
	_, err := r.Arbiter.Set(ctx, e.binding, v1alpha1.PhaseContended, v1alpha1.GuardOpen,
		fmt.Sprintf("%s %s targets the Deployment too", manager.Kind, manager.Name))
	return err
}

// settle brings the phase of a held binding in line with what the evaluation saw.
func (r *Reconciler) settle(ctx context.Context, e *evaluation) error {
	if e.holding == nil {
		if e.target.uid == "" && e.condition(v1alpha1.ConditionTargetAvailable).Status == metav1.ConditionFalse {
			return r.letGo(ctx, e.before, !e.before.Spec.DryRun)
		}
		return nil
	}
	phase, reason := v1alpha1.PhaseHeld, "nobody else changes the replica count any more"
	if e.contended() {
		phase, reason = v1alpha1.PhaseContended, otherWriter(e.record.contention)+" changed the replica count"
	}
	_, err := r.Arbiter.Set(ctx, e.binding, phase, e.guard(), reason)
	return err
}

// letGo opens the guards of what this AutoScaler holds and cannot manage now: its
// Deployment is missing, or its spec cannot be used.
func (r *Reconciler) letGo(ctx context.Context, a *v1alpha1.AutoScaler, orphaned bool) error {
	held, err := r.bindingsOf(ctx, nameOf(a))
	if err != nil {
		return err
	}
	for i := range held {
		b := &held[i]
		if b.DecodeError != "" || b.Spec.OwnerUID != a.UID {
			continue
		}
		phase, reason := b.Phase(), ""
		if orphaned && b.Name == a.Spec.TargetRef.Name {
			phase, reason = v1alpha1.PhaseOrphaned, "there is no Deployment to own"
		}
		if _, err := r.Arbiter.Set(ctx, b, phase, v1alpha1.GuardOpen, reason); err != nil {
			return err
		}
	}
	return nil
}

// bindingsOf are the bindings that name an AutoScaler of this name.
func (r *Reconciler) bindingsOf(ctx context.Context, key types.NamespacedName) ([]v1alpha1.ScaleBinding, error) {
	var list v1alpha1.ScaleBindingList
	err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{bindingOwner: key.Name})
	return list.Items, err
}

// reap frees the bindings that name this AutoScaler and should not: it is gone
// (nil), a dry run, or points elsewhere. The wait is set while a claim is so
// young that its owner may still be on its way into storage.
func (r *Reconciler) reap(ctx context.Context, key types.NamespacedName, a *v1alpha1.AutoScaler) (time.Duration, error) {
	named, err := r.bindingsOf(ctx, key)
	if err != nil {
		return 0, err
	}
	var wait time.Duration
	for i := range named {
		b := &named[i]
		if b.DecodeError != "" || a != nil && r.keeps(a, b) {
			continue // who needs one that is not readable is told; see binding.BrokenError
		}
		again, err := r.release(ctx, b)
		if err != nil {
			return 0, fmt.Errorf("releasing ScaleBinding %s/%s: %w", b.Namespace, b.Name, err)
		}
		if again > 0 && (wait == 0 || again < wait) {
			wait = again
		}
	}
	return wait, nil
}

// keeps says whether a binding that names an AutoScaler is rightly its own: also with
// a spec that is refused now, if it was confirmed before.
func (r *Reconciler) keeps(a *v1alpha1.AutoScaler, b *v1alpha1.ScaleBinding) bool {
	asks := b.Seen() && !a.Spec.DryRun || r.Arbiter.Asks(a)
	return asks && b.Spec.OwnerUID == a.UID && a.Spec.TargetRef.Name == b.Name
}

// release frees a binding in its turn. What is wrong with one must not stop the others
// of its owner.
func (r *Reconciler) release(ctx context.Context, b *v1alpha1.ScaleBinding) (time.Duration, error) {
	defer r.turns.take(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})()
	ctx, cancel := context.WithTimeout(ctx, turnDeadline)
	defer cancel()
	wait, err := r.Arbiter.Reap(ctx, b.Namespace, b.Name, b.Spec.OwnerUID)
	var broken *binding.BrokenError
	switch {
	case apierrors.IsConflict(err):
		return conflictDelay, nil // it changed meanwhile
	case errors.As(err, &broken):
		log.FromContext(ctx).Info("a ScaleBinding that names this AutoScaler cannot be released", "why", broken.Error())
		return 0, nil
	}
	return wait, err
}
