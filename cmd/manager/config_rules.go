package main

import "example.com/platform/autoscale-operator/webhook/rules"

// rulesConfig is the section `rules`: the platform's own rules for AutoScalers, in
// the order in which they are answered. docs/platform-rules.md is its manual.
type rulesConfig []rules.Config

// compile checks all of them. The error tells every mistake with its place, so
// that the operator does not start with a rule that would never be evaluated.
func (c rulesConfig) compile() (*rules.Set, error) {
	return rules.New(c)
}
