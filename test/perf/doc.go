// Package perf measures, on a real API server, what admission and the guard add to
// requests. Its tests have the build tag perf: they compare within one run, and want
// a machine that does nothing else.
package perf
