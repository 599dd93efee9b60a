package controller

import (
	"time"

	"example.com/platform/autoscale-operator/scaling"
)

// plan has the next evaluation come in time for what neither a sample nor a watch
// tells of: the end of a pause, a schedule's begin or end, the fallback, and the end of
// a step or an interval that held the count. An answer that comes a moment before that end would
// otherwise have the next step wait for the answer after it.
func (e *evaluation) plan() {
	s := &e.autoscaler.Spec
	if e.paused && s.PausedUntil != nil {
		e.wakeAt(s.PausedUntil.Time)
	}
	if !e.schedule.Change.IsZero() {
		e.wakeAt(e.schedule.Change)
	}
	m := &e.record.memory
	switch e.decision.Rule {
	case scaling.RuleScaleUpStep:
		e.wakeAt(time.UnixMicro(m.Up.At).Add(e.policy.PollInterval))
	case scaling.RuleScaleDownStep:
		e.wakeAt(time.UnixMicro(m.Down.At).Add(e.policy.PollInterval))
	case scaling.RuleScaleDownMinInterval:
		for i := range e.policy.Metrics {
			e.wakeAt(time.UnixMicro(m.LastDown).Add(e.policy.Metrics[i].Behavior.DownMinInterval))
		}
	}
	if e.policy.Fallback.FloorReplicas > 0 && m.AllInvalidSince != 0 {
		e.wakeAt(time.UnixMicro(m.AllInvalidSince).Add(e.policy.Fallback.After))
	}
}

// wakeAt has the next evaluation come at a time at the latest, if that is yet to come.
func (e *evaluation) wakeAt(at time.Time) {
	if at.After(e.now) {
		e.after = min(e.after, at.Sub(e.now))
	}
}
