package main

import "example.com/platform/autoscale-operator/binding"

// managersConfig is the section "managers": the kinds of other replica managers. A
// list replaces the built-in one, an empty list turns it off, and without the
// section the built-in one counts.
type managersConfig []binding.ManagerConfig

func (c managersConfig) registered() []binding.ManagerConfig {
	if c == nil {
		return binding.DefaultManagers()
	}
	return c
}
