// Package rules evaluates the platform's own rules for AutoScalers: CEL
// expressions of the operator's configuration that deny, or warn of, what the
// API would allow. docs/platform-rules.md is their manual.
//
// A rule is evaluated over values only, so admission and a command line that
// looks at a manifest give the same answer.
package rules
