package explain

import (
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

const (
	// maxMoves is how many moves are foretold: enough to see where it goes.
	maxMoves = 5
	// horizon is how far is looked ahead: the longest window there can be, and a bit.
	horizon = 25 * time.Hour
)

// Move is what the count will be changed to.
type Move struct {
	// In is the time from now, to the second, at which the move becomes possible; it is
	// made at the first evaluation from then on.
	In       time.Duration `json:"-"`
	Seconds  int64         `json:"inSeconds"`
	Replicas int32         `json:"replicas"`
	// Late is since when a move has been due that the operator has not made.
	Late        time.Duration `json:"-"`
	LateSeconds int64         `json:"lateSeconds,omitempty"`
}

// foretell says what the policy will do if every metric goes on asking for what it asked
// for in the last decision, and every write succeeds. It asks the policy itself, second
// by second, beginning with the memory that a restarted operator would begin with. Only
// the times of schedules are looked at again as they pass.
func foretell(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, now time.Time) ([]Move, error) {
	return foretellFor(a, profiles, now, horizon)
}

func foretellFor(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, now time.Time, long time.Duration) ([]Move, error) {
	trace := a.Status.LastDecision
	if trace == nil {
		return nil, nil
	}
	policy, schedule, err := spec.Policy(a, profiles, now)
	if err != nil {
		return nil, err
	}
	o := &scaling.Observation{Target: string(a.Status.TargetUID), Current: current(a), Samples: samples(trace)}
	memory := spec.Memory(a.Status.Memory)
	var moves []Move
	for t := now; t.Sub(now) <= long && len(moves) < maxMoves; t = t.Add(time.Second) {
		if !schedule.Change.IsZero() && !t.Before(schedule.Change) {
			if policy, schedule, err = spec.Policy(a, profiles, t); err != nil {
				return nil, err
			}
		}
		asRaw(&policy)
		var d scaling.Decision
		o.Now = t
		if d, memory = scaling.Decide(&policy, o, memory); d.Replicas == o.Current {
			continue
		}
		memory = memory.Scaled(t, o.Current, d.Replicas, policy.PollInterval)
		o.Current = d.Replicas
		moves = append(moves, Move{In: t.Sub(now), Seconds: int64(t.Sub(now) / time.Second), Replicas: d.Replicas})
	}
	return moves, nil
}

// current is the count that the policy goes on from: a dry run has one of its own.
func current(a *v1alpha1.AutoScaler) int32 {
	switch s := &a.Status; {
	case a.Spec.DryRun && s.Shadow != nil:
		return s.Shadow.Replicas
	case s.TargetReplicas != nil:
		return *s.TargetReplicas
	default:
		return s.LastDecision.Result
	}
}

// samples ask for what a decision's metrics asked for. That is after the tolerance, whose
// comparison with the very load the status does not repeat.
func samples(trace *v1alpha1.DecisionTrace) []scaling.Sample {
	all := make([]scaling.Sample, len(trace.Metrics))
	for i := range trace.Metrics {
		m := &trace.Metrics[i]
		all[i] = scaling.Sample{Value: float64(m.Tolerated), Reason: m.Reason}
		switch m.Validity {
		case scaling.Valid.String():
			all[i].Validity = scaling.Valid
		case scaling.ScaleUpOnly.String():
			all[i].Validity = scaling.ScaleUpOnly
		default:
			all[i].Validity = scaling.Invalid
		}
	}
	return all
}

// asRaw makes the policy read a sample as a number of replicas. Keys stay, and with them
// the windows.
func asRaw(p *scaling.Policy) {
	for i := range p.Metrics {
		m := &p.Metrics[i]
		m.Semantics, m.TargetPerReplica = scaling.Total, 1
		m.Behavior.ToleranceUp, m.Behavior.ToleranceDown = 0, 0
	}
}
