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
//	needed_i     = value / target                             Total           demand.go
//	             = ready * value / target                     PerReplicaAverage
//	             = (arrivals + value / clearance) / target    Backlog
//	raw_i        = ceil(needed_i)
//	tolerated_i  = current where needed_i is within           tolerance.go
//	               (1-ToleranceDown)*current and (1+ToleranceUp)*current,
//	               raw_i elsewhere
//	bounded_i    = clamp(tolerated_i, min, max)               demand.go
//	floor_i      = max(raw_i over the last DownStabilization) stabilize.go, window.go
//	ceiling_i    = min(raw_i over the last UpStabilization)
//	               both current while that window is not covered
//	stabilized_i = max(bounded_i, min(current, clamp(floor_i)))     on the way down
//	             = min(bounded_i, max(current, clamp(ceiling_i)))   on the way up
//	limited_i    = stabilized_i, moved away from current by   limits.go
//	               no more than the steps, the interval
//	               between downs and the rate of ups allow    rate.go
//
// and then, over the metrics that can be used,
//
//	replicas = max(limited_i), and at least current if any    combine.go
//	           metric is not fully valid; if none can be used, current,
//	           or the minimum by the same limits where that is higher
//	replicas = max(current, clamp(floor)) if none could be    fallback.go
//	           used for Fallback.After
//	replicas = current where the freeze forbids the move      freeze.go
//
// The bounds apply to the demand, before the steps. The result therefore lies
// between current and the bounded demand, and is outside the bounds only where
// current already was: a lowered maximum is approached by the same steps, but
// without waiting for the window. The base of every step is the replica count
// that is asked for, never the one that runs, so the surge of a rolling update
// is not mistaken for demand.
//
// # Waking early
//
// Decide may be called at any time and as often as one likes. Steps, interval and
// rate count from the records of successful writes, so being called again grants
// nothing: with the same samples the calls between two polls write nothing, and
// every poll writes what it would have written without them. That is exact while
// there are no windows and every time is a multiple of the poll interval. A window or
// another time can end between two polls; then a call may use it at once, and a demand
// that was read again counts until it was last read. Each limit is kept in real
// time all the same: a move is never earlier than its window, interval and rate
// allow, and for having been woken at most a poll interval later.
//
// # Memory
//
// [Memory] is all that one decision leaves for the next. It has a fixed size,
// compares with ==, and holds times as whole microseconds, so that it survives
// a round trip through an API object unchanged. Losing it is safe: scale-down
// then waits for a full window. It is dropped when the target is another
// object, and a metric's windows start anew when the metric's key changes or when
// the evaluations had a gap. The window of the scale-down also does when the
// metric's sample is not valid; that of the scale-up does not, as a failing metric
// must not keep capacity away.
package scaling
