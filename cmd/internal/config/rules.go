package config

import (
	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// Rules is the section `rules`: the platform's own rules for AutoScalers, in
// the order in which they are answered. docs/platform-rules.md is its manual.
type Rules []rules.Config

// Compile checks all of them. The error tells every mistake with its place, so
// that the operator does not start with a rule that would never be evaluated. Rules
// see AutoScalers with these defaults.
func (c Rules) Compile(defaults v1alpha1.Defaults) (*rules.Set, error) {
	return rules.New(c, defaults)
}
