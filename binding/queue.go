package binding

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// AutoScalerTarget is the index of AutoScalers by the Deployment they target.
const AutoScalerTarget = "binding.autoscalerTarget"

// IndexAutoScaler gives the index value of an AutoScaler: its target's name.
func IndexAutoScaler(obj client.Object) []string {
	a, ok := obj.(*v1alpha1.AutoScaler)
	if !ok || a.DecodeError != "" {
		return nil
	}
	return []string{a.Spec.TargetRef.Name}
}

// Asks says whether an AutoScaler wants to own its target's replica count and can:
// it is no dry run, is not being deleted, and its spec is valid.
func Asks(a *v1alpha1.AutoScaler, limits v1alpha1.Limits) bool {
	return a.DeletionTimestamp == nil && !a.Spec.DryRun && len(v1alpha1.ValidateAutoScaler(a, limits)) == 0
}

// Before is the order in which AutoScalers of one Deployment take over when its
// holder goes: by creation, then by UID. Whoever is not stored yet comes last.
func Before(a, b *v1alpha1.AutoScaler) bool {
	switch {
	case a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.UID < b.UID
	case a.CreationTimestamp.IsZero() || b.CreationTimestamp.IsZero():
		return b.CreationTimestamp.IsZero()
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// FirstInLine gives the stored AutoScaler that comes before all others that ask for
// the target of a, other than a itself, if it also comes before a; else nil. The
// reader must have the index AutoScalerTarget.
func FirstInLine(ctx context.Context, indexed client.Reader, a *v1alpha1.AutoScaler, limits v1alpha1.Limits) (*v1alpha1.AutoScaler, error) {
	var list v1alpha1.AutoScalerList
	target := a.Spec.TargetRef.Name
	if err := indexed.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingFields{AutoScalerTarget: target}); err != nil {
		return nil, fmt.Errorf("looking for other AutoScalers of Deployment %s/%s: %w", a.Namespace, target, err)
	}
	var first *v1alpha1.AutoScaler
	for i := range list.Items {
		other := &list.Items[i]
		if other.UID != a.UID && Before(other, a) && Asks(other, limits) && (first == nil || Before(other, first)) {
			first = other
		}
	}
	return first, nil
}
