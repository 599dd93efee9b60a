package binding

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
// it is no dry run, is not being deleted, and its spec can be used.
func (a *Arbiter) Asks(s *v1alpha1.AutoScaler) bool {
	return s.DeletionTimestamp == nil && !s.Spec.DryRun && a.Usable(s)
}

// order is that in which AutoScalers of one Deployment take over when its holder
// goes: by creation, then by UID. Whoever is not stored yet comes last.
func order(a, b *v1alpha1.AutoScaler) int {
	return cmp.Or(
		compareBool(a.CreationTimestamp.IsZero(), b.CreationTimestamp.IsZero()),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.UID, b.UID),
	)
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// StandsBefore says whether another AutoScaler asks for the target of s and takes it
// before s does.
func (a *Arbiter) StandsBefore(other, s *v1alpha1.AutoScaler) bool {
	return other.UID != s.UID && other.Spec.TargetRef.Name == s.Spec.TargetRef.Name && order(other, s) < 0 && a.Asks(other)
}

// Ahead gives the stored AutoScalers that stand before s in the line for its target,
// the first one first. The reader must have the index AutoScalerTarget.
func (a *Arbiter) Ahead(ctx context.Context, indexed client.Reader, s *v1alpha1.AutoScaler) ([]v1alpha1.AutoScaler, error) {
	var list v1alpha1.AutoScalerList
	target := s.Spec.TargetRef.Name
	if err := indexed.List(ctx, &list, client.InNamespace(s.Namespace), client.MatchingFields{AutoScalerTarget: target}); err != nil {
		return nil, fmt.Errorf("looking for other AutoScalers of Deployment %s/%s: %w", s.Namespace, target, err)
	}
	ahead := slices.DeleteFunc(list.Items, func(other v1alpha1.AutoScaler) bool { return !a.StandsBefore(&other, s) })
	slices.SortFunc(ahead, func(x, y v1alpha1.AutoScaler) int { return order(&x, &y) })
	return ahead, nil
}
