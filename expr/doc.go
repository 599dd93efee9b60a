// Package expr compiles and evaluates the CEL expressions of the operator's
// configuration: the targets of other replica managers and the platform's rules.
//
// They are written in the API server's own dialect, with its function libraries,
// so that what an administrator knows from a ValidatingAdmissionPolicy holds here
// too: https://kubernetes.io/docs/reference/using-api/cel. A compiled Program is
// immutable and safe for concurrent use.
//
// An expression is trusted as configuration is, but what it is evaluated over is
// not: every evaluation is bounded in cost ([CostLimit]), in the size of its
// result, and by its context.
package expr
