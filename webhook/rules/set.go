package rules

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/expr"
)

// Timeout is the time that all rules have together for one AutoScaler.
const Timeout = expr.Timeout

// Set is the rules of one configuration, in its order. It is immutable and safe
// for concurrent use; a nil Set has no rules.
type Set struct {
	rules    []*rule
	defaults v1alpha1.Defaults
	memory   memory
	timeout  time.Duration
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
// stored object violates it just as much, and must still be repaired elsewhere. It
// is warned of. Rules about the change itself, those that read oldObject or request,
// always hold; and so do all where the update asks for a Deployment anew.
//
// An update that does nothing but pause, or make a dry run, is never denied, only
// warned of: pausing is how a person takes over.
//
// All rules together have [Timeout]. A rule whose turn does not come within it, or
// before ctx ends, counts as violated.
func (s *Set) Check(ctx context.Context, in Input) (field.ErrorList, []string) {
	if s == nil || len(s.rules) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	e, err := s.evaluated(&in)
	if err != nil {
		return field.ErrorList{field.InternalError(field.NewPath(defaultField), fmt.Errorf("the platform rules could not be evaluated: %w", err))}, nil
	}
	stops, claims := e.stops(), e.claims()
	var errs field.ErrorList
	var warnings []string
	for _, r := range s.rules {
		message, violated := r.check(ctx, e.vars)
		switch {
		case !violated:
		case r.Action == Warn:
			warnings = append(warnings, r.Field+": "+message)
		case stops:
			warnings = append(warnings, r.Field+": "+message+" (pausing and dry runs are never refused)")
		case in.OldObject != nil && !claims && r.untouched(e.vars):
			warnings = append(warnings, r.Field+": "+message+" (it was so before and is left as it is)")
		default:
			errs = append(errs, field.Forbidden(field.NewPath(r.Field), message))
		}
	}
	return errs, warnings
}
