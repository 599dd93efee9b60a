package controller

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// A dry run keeps a count of its own, as if it had written each of its decisions. So
// its steps, windows and intervals follow one another as they would, and what it
// recommends can be compared with what is there, also beside a live HPA.

// current is the count that a decision starts from: the Deployment's, or what a dry
// run has come to. That begins with the Deployment's, and anew with another one or
// one that was suspended.
func (e *evaluation) current() int32 {
	rec := &e.record
	switch {
	case !e.autoscaler.Spec.DryRun:
		rec.endShadow(e)
		return e.target.replicas
	case e.target.replicas == 0:
		rec.shadow = nil
		return 0
	case rec.shadow == nil || rec.shadow.target != e.target.uid:
		rec.shadow = &count{target: e.target.uid, replicas: e.target.replicas, at: e.now}
	}
	return rec.shadow.replicas
}

// simulate records the decision of a dry run as if it had been written, and puts what
// it has come to into the status. A dry run that is paused would not have written.
func (e *evaluation) simulate() {
	rec := &e.record
	e.autoscaler.Status.Shadow = nil
	if rec.shadow == nil {
		return
	}
	if from, to := rec.shadow.replicas, e.decision.Replicas; from != to && !e.paused {
		rec.memory = rec.memory.Scaled(e.now, from, to, e.policy.PollInterval)
		rec.shadow = &count{target: rec.shadow.target, replicas: to, at: e.now}
	}
	e.autoscaler.Status.Shadow = &v1alpha1.Shadow{
		TargetUID: rec.shadow.target, Replicas: rec.shadow.replicas,
		Divergence: rec.shadow.replicas - e.target.replicas,
		// In whole seconds, as storage keeps it.
		Time: metav1.NewTime(rec.shadow.at.Truncate(time.Second)),
	}
}

// endShadow forgets what a dry run has simulated. What it has seen of the demand
// stays: that is the same for whoever scales.
func (rec *record) endShadow(e *evaluation) {
	if rec.shadow == nil {
		return
	}
	rec.shadow = nil
	rec.memory = written(rec.memory, rec.lastWrite(e))
}

// lastWrite is when the present Deployment's count was really written last, as far as
// this process or the status knows; zero: never.
func (rec *record) lastWrite(e *evaluation) time.Time {
	s := &e.before.Status
	switch {
	case rec.applied != nil && rec.applied.target == e.target.uid:
		return rec.applied.at
	case s.LastSuccessfulScaleTime != nil && s.TargetUID == e.target.uid:
		// Storage has cut off what is less than a second.
		return s.LastSuccessfulScaleTime.Add(time.Second)
	}
	return time.Time{}
}

// written is a memory without the writes after the last real one. What those have
// replaced is not known any more: a step counts as used up, and the last scale-down as
// made with the last write.
func written(m scaling.Memory, last time.Time) scaling.Memory {
	var at int64
	if !last.IsZero() {
		at = last.UnixMicro()
	}
	if m.Up.At > at {
		m.Up = scaling.Step{At: at}
	}
	if m.Down.At > at {
		m.Down = scaling.Step{At: at, Base: math.MaxInt32}
	}
	m.LastDown = min(m.LastDown, at)
	for i := range m.Ups {
		if m.Ups[i].At > at {
			m.Ups[i] = scaling.Up{}
		}
	}
	return m
}
