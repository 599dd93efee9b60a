package binding

import (
	"context"
	"errors"
	"fmt"
)

// findLive gives the first manager of a Deployment that the API server lists, or nil.
func findLive(ctx context.Context, kind managerKind, namespace, target string) (*ManagerError, error) {
	var conflict *ManagerError
	err := kind.eachLive(ctx, namespace, func(m *ManagerError) bool {
		if m.Target == target {
			conflict = m
		}
		return conflict != nil
	})
	if err != nil {
		return nil, lookFailure(kind, namespace, target, err)
	}
	return conflict, nil
}

func lookFailure(kind managerKind, namespace, target string, err error) error {
	return fmt.Errorf("looking for %s of Deployment %s/%s: %w", kind.resource(), namespace, target, err)
}

// EachLive calls f with every replica manager of a namespace, or of all where it is
// empty, and each Deployment that it targets, by live lists. An error tells the kinds
// that could not be listed; those that could have been told of.
func (m *Managers) EachLive(ctx context.Context, namespace string, f func(*ManagerError)) error {
	var errs []error
	for _, kind := range m.kinds {
		err := kind.eachLive(ctx, namespace, func(found *ManagerError) bool { f(found); return false })
		if err != nil {
			errs = append(errs, fmt.Errorf("looking for %s: %w", kind.resource(), err))
		}
	}
	return errors.Join(errs...)
}
