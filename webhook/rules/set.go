package rules

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Set is the rules of one configuration, in its order. It is immutable and safe
// for concurrent use; a nil Set has no rules.
type Set struct {
	rules  []*rule
	memory memory
}

// Uses says whether any rule reads a variable, so that nothing is gathered in
// vain.
func (s *Set) Uses(variable string) bool {
	if s == nil {
		return false
	}
	for _, r := range s.rules {
		if r.uses(variable) {
			return true
		}
	}
	return false
}

// Check evaluates every rule, in the order of the configuration. It gives the
// errors of rules that deny and the warnings of those that warn. A rule that
// cannot be evaluated counts as violated, and says so: what an administrator
// demands of our own kind is not lost to a mistake in how it is written.
//
// An update that touches nothing of what a rule reads is not denied by it: the
// stored object violates it just as much, and must still be paused or repaired
// elsewhere. It is warned of. Rules about the change itself, those that read
// oldObject or request, always hold.
func (s *Set) Check(ctx context.Context, in Input) (field.ErrorList, []string) {
	if s == nil || len(s.rules) == 0 {
		return nil, nil
	}
	vars, err := s.variables(&in)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath(defaultField), fmt.Errorf("the platform rules could not be evaluated: %w", err))}, nil
	}
	var errs field.ErrorList
	var warnings []string
	for _, r := range s.rules {
		message, violated := r.check(ctx, vars)
		switch {
		case !violated:
		case r.Action == Warn:
			warnings = append(warnings, r.Field+": "+message)
		case in.OldObject != nil && r.untouched(vars):
			warnings = append(warnings, r.Field+": "+message+" (it was so before and is left as it is)")
		default:
			errs = append(errs, field.Forbidden(field.NewPath(r.Field), message))
		}
	}
	return errs, warnings
}
