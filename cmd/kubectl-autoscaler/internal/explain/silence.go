package explain

import (
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

const (
	// refreshPolls and checkpoints are how the operator writes a status: one that wavers
	// with the load at this many polls, and the memory of a pending scale-down so often
	// per window.
	refreshPolls, checkpoints = 4, 12
	// missed is how many looks may fail before the operator counts as silent.
	missed = 3
)

// silence is for how long the operator has not looked, and the move that has been due
// meanwhile; 0 where the status does not show that. A status is not written at every
// look: only what would have been written tells.
func silence(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, now time.Time) (gone time.Duration, overdue *Move, err error) {
	trace := a.Status.LastDecision
	if trace == nil || a.PausedAt(now) || !a.Spec.DryRun && still(a) != "" {
		return 0, nil, nil
	}
	seen, patience := lastLook(a), missed*spec.PollInterval(a)
	moves, err := foretellFor(a, profiles, seen, min(now.Sub(seen), horizon))
	if err != nil {
		return 0, nil, err
	}
	if len(moves) > 0 {
		due := seen.Add(moves[0].In)
		told := trace.Time.Add(refreshPolls * spec.PollInterval(a)) // by then another demand would be in the status
		if told.Before(due) {
			told = due
		}
		if now.Sub(told) > patience {
			late := now.Sub(due)
			return now.Sub(seen), &Move{Replicas: moves[0].Replicas, Late: late, LateSeconds: int64(late / time.Second)}, nil
		}
	}
	policy, _, err := spec.Policy(a, profiles, now)
	if err != nil {
		return 0, nil, err
	}
	if wait := pending(&policy, trace); wait > 0 && now.Sub(seen) > wait/checkpoints+patience {
		return now.Sub(seen), nil, nil
	}
	return 0, nil, nil
}

// lastLook is the last one that the status tells of.
func lastLook(a *v1alpha1.AutoScaler) time.Time {
	seen := a.Status.LastDecision.Time.Time
	if m := a.Status.Memory; m != nil && m.ObservedTime.After(seen) {
		seen = m.ObservedTime.Time
	}
	return seen
}

// pending is the longest wait of what a decision has pending, whose memory is written
// meanwhile; 0 where nothing is.
func pending(p *scaling.Policy, trace *v1alpha1.DecisionTrace) (wait time.Duration) {
	if trace.Freeze != "" || len(trace.Metrics) != len(p.Metrics) {
		return 0
	}
	down := true
	for i := range trace.Metrics {
		m := &trace.Metrics[i]
		down = down && m.Validity == scaling.Valid.String() && m.Bounded < trace.Result
		if up := p.Metrics[i].Behavior.UpStabilization; up > 0 && m.Bounded > trace.Result {
			wait = max(wait, up)
		}
	}
	for i := range p.Metrics {
		if b := &p.Metrics[i].Behavior; down {
			wait = max(wait, p.PollInterval, b.DownStabilization, b.DownMinInterval)
		}
	}
	return wait
}
