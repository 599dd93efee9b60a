// Package scaling answers one question: how many replicas should a workload
// have now? It is pure. The clock, the samples and the history come in as
// values, the decision and the next history go out as values; there is no
// network, no logger, no randomness and no Kubernetes. The controller, the
// command line and a replay of old traffic call the same [Decide].
//
// # Algorithm
//
// For each metric i, with current = the replicas asked for now:
//
//	raw_i        = ceil(value_i / target_i)                              demand.go
//	bounded_i    = clamp(raw_i, min, max)                                demand.go
//	floor_i      = max(raw_i over the last DownStabilization)            window.go
//	               or current while that window is not covered
//	stabilized_i = max(bounded_i, min(current, clamp(floor_i, min, max))) window.go
//	limited_i    = stabilized_i, moved away from current by no more
//	               than the steps and the interval between downs allow   limits.go
//
// and then, over the metrics that can be used,
//
//	replicas = max(limited_i), and at least current if any metric is
//	           not fully valid; current if none can be used              combine.go
//
// The bounds apply to the demand, before the steps. The result therefore lies
// between current and the bounded demand, and is outside the bounds only where
// current already was: a lowered maximum is approached by the same steps, but
// without waiting for the window. The base of every step is the replica count
// that is asked for, never the one that runs, so the surge of a rolling update
// is not mistaken for demand.
//
// # Memory
//
// [Memory] is all that one decision leaves for the next. It has a fixed size,
// compares with ==, and holds times as whole microseconds, so that it survives
// a round trip through an API object unchanged. Losing it is safe: scale-down
// then waits for a full window. It is dropped when the target is another
// object, and a metric's window starts anew when the metric's key changes,
// when its sample is not valid, or when the evaluations had a gap.
package scaling
