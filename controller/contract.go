package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// holdContract claims the replica count, again and idempotently: admission may
// have been off when the AutoScaler was stored. Without the claim, or beside an
// HPA, the evaluation goes on and only recommends.
func (r *Reconciler) holdContract(ctx context.Context, e *evaluation) (bool, error) {
	a := e.autoscaler
	if a.Spec.DryRun {
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonDryRun, "a dry run takes no claim")
		return false, nil
	}
	holding, err := r.claim(ctx, e)
	var held *binding.HeldError
	var hpa *binding.HPAError
	switch {
	case errors.As(err, &held):
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonHeldByAnother, err.Error())
	case errors.As(err, &hpa):
		e.setFalse(v1alpha1.ConditionBound, v1alpha1.ReasonConflictingHPA, err.Error())
	case err != nil:
		return true, err
	default:
		e.holding = &holding
		e.setTrue(v1alpha1.ConditionBound, v1alpha1.ReasonClaimHeld, fmt.Sprintf("ScaleBinding %q names this AutoScaler", holding.Target))
	}
	return false, nil
}

func (r *Reconciler) claim(ctx context.Context, e *evaluation) (binding.Holding, error) {
	a := e.autoscaler
	b, err := r.binding(ctx, e)
	if err != nil {
		return binding.Holding{}, err
	}
	// An HPA that came after the claim is found by index at every evaluation; the
	// live look at confirmation covers the time before.
	if err := binding.FindHPA(ctx, r.Client, a.Namespace, e.target.key.Name,
		client.MatchingFields{binding.HPATarget: e.target.key.Name}); err != nil {
		return binding.Holding{}, err
	}
	return r.Arbiter.Confirm(ctx, b, e.target.uid)
}

// binding is the claimed ScaleBinding: from the cache when that already names this
// AutoScaler and Deployment, for the write itself verifies it live; else claimed.
func (r *Reconciler) binding(ctx context.Context, e *evaluation) (*v1alpha1.ScaleBinding, error) {
	var b v1alpha1.ScaleBinding
	err := r.Client.Get(ctx, e.target.key, &b)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err == nil && b.Spec.OwnerUID == e.autoscaler.UID && b.Confirmed(e.target.uid) {
		return &b, nil
	}
	return r.Arbiter.Claim(ctx, binding.ClaimantOf(e.autoscaler, FieldManager))
}

// reap frees the bindings that name this AutoScaler and should not: it is gone
// (nil), a dry run, or points elsewhere. The wait is set while a claim is so
// young that its owner may still be on its way into storage.
func (r *Reconciler) reap(ctx context.Context, key types.NamespacedName, a *v1alpha1.AutoScaler) (time.Duration, error) {
	var list v1alpha1.ScaleBindingList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{bindingOwner: key.Name}); err != nil {
		return 0, err
	}
	var wait time.Duration
	for i := range list.Items {
		b := &list.Items[i]
		if b.DecodeError != "" {
			continue // who needs it is told; see binding.BrokenError
		}
		if a != nil && b.Spec.OwnerUID == a.UID && !a.Spec.DryRun && a.Spec.TargetRef.Name == b.Name {
			continue
		}
		again, err := r.Arbiter.Reap(ctx, b.Namespace, b.Name, b.Spec.OwnerUID)
		if apierrors.IsConflict(err) {
			again, err = conflictDelay, nil // it changed meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("releasing ScaleBinding %s/%s: %w", b.Namespace, b.Name, err)
		}
		if again > 0 && (wait == 0 || again < wait) {
			wait = again
		}
	}
	return wait, nil
}
