package config

import "example.com/platform/autoscale-operator/binding"

// Managers is the section "managers": the kinds of other replica managers. A
// list replaces the built-in one, an empty list turns it off, and without the
// section the built-in one counts.
type Managers []binding.ManagerConfig

// Registered are the kinds that count.
func (c Managers) Registered() []binding.ManagerConfig {
	if c == nil {
		return binding.DefaultManagers()
	}
	return c
}
