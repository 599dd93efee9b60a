package controller

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
)

const (
	// maxBackOff is the longest wait after a foreign change: a writer that comes
	// back every time costs four writes an hour, and one that has stopped leaves the
	// service at a wrong count for no longer than that. A writer is forgotten after
	// as long a quiet, since one that comes more rarely cannot cause more writes.
	maxBackOff = 15 * time.Minute
	// maxBackOffUnit bounds the poll interval that the back-off counts in: a
	// pipeline that resets the count once must not leave a service at it for the
	// whole of a long interval.
	maxBackOffUnit = v1alpha1.DefaultPollIntervalSeconds * time.Second
	// maxManager bounds the names in a status; see v1alpha1.Contention.
	maxManager = 1024 - len("…")
)

// sighting is what an evaluation saw of a Deployment's replica count.
type sighting struct {
	now  time.Time
	poll time.Duration
	// baseline is the count that this AutoScaler saw or wrote last, of the same
	// Deployment and while it was in charge; nil: there is none to compare with.
	baseline *int32
	current  int32
	// setBy names who set the current count, as far as managedFields know.
	setBy string
	// held: nothing would be written anyway, because the AutoScaler is paused, a dry
	// run or not the owner, or the Deployment is at 0. Whoever scales then may.
	held bool
}

// backOff is the wait after the nth foreign change in a row:
// min(poll, 15 s) · 2^n, at most maxBackOff.
func backOff(changes int32, poll time.Duration) time.Duration {
	wait := min(poll, maxBackOffUnit)
	for range changes {
		if wait *= 2; wait >= maxBackOff {
			return maxBackOff
		}
	}
	return wait
}

// nextContention is the contention after a sighting. Each foreign change of the
// count is one, and each that comes within maxBackOff after the end of the last
// back-off lengthens the next; a change during a back-off, when nothing of ours is
// undone, does not. nil: there is none, or none any more.
func nextContention(was *v1alpha1.Contention, s *sighting) *v1alpha1.Contention {
	if s.held {
		return nil
	}
	// In whole seconds, as storage keeps it.
	now := s.now.Truncate(time.Second)
	foreign := s.baseline != nil && *s.baseline != s.current
	was = remembered(was, s)
	if !foreign {
		return was
	}
	next := &v1alpha1.Contention{
		Manager: shortened(s.setBy, maxManager), From: *s.baseline, To: s.current, Changes: 1, Time: metav1.NewTime(now),
	}
	if was != nil {
		next.Changes = was.Changes
		if s.now.Before(was.RetryTime.Time) {
			next.RetryTime = was.RetryTime
			return next
		}
		next.Changes++
	}
	next.RetryTime = metav1.NewTime(now.Add(backOff(next.Changes, s.poll)))
	return next
}

// remembered is a contention as far as it still counts.
func remembered(was *v1alpha1.Contention, s *sighting) *v1alpha1.Contention {
	if was == nil || s.now.Sub(was.RetryTime.Time) >= maxBackOff {
		return nil
	}
	if limit := s.now.Truncate(time.Second).Add(backOff(was.Changes, s.poll)); was.RetryTime.After(limit) {
		// It was set by a clock that ran ahead, or for a longer interval.
		was = was.DeepCopy()
		was.RetryTime = metav1.NewTime(limit)
	}
	return was
}

// lookForContention compares the count with the one that this AutoScaler saw or
// wrote last. It runs before anything is written.
func (e *evaluation) lookForContention() {
	s := sighting{
		now: e.now, poll: spec.PollInterval(e.autoscaler), baseline: e.baseline(), current: e.target.replicas,
		setBy: strings.Join(e.target.setBy, ", "), held: e.mayNotWrite(),
	}
	if e.target.scaledByUs {
		s.setBy = FieldManager // a write of ours is in the baseline: it is another operator's
	}
	e.record.contention = nextContention(e.record.contention, &s)
	e.record.baseline = nil
	if !s.held {
		e.record.baseline = &count{target: e.target.uid, replicas: e.target.replicas, at: e.now}
	}
	e.autoscaler.Status.Contention = e.record.contention.DeepCopy()
	if c := e.record.contention; c != nil {
		e.after = min(e.after, e.contentionEnds(c))
	}
}

// baseline is nil where the last count says nothing: it is another Deployment's, or
// this AutoScaler may have been out of charge since, with a spec that was refused,
// or one that was paused and resumed between two evaluations.
func (e *evaluation) baseline() *int32 {
	known, before := e.record.baseline, &e.before.Status
	switch ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady); {
	case known == nil, known.target != e.target.uid:
		return nil
	case e.before.Generation > before.ObservedGeneration+1:
		return nil
	case ready != nil && ready.Reason == v1alpha1.ReasonInvalidSpec:
		return nil
	case e.autoscaler.Spec.Paused && e.before.Generation != before.ObservedGeneration:
		return nil // a pause that has begun and ended by itself meanwhile
	}
	return &known.replicas
}

// inCharge says whether a status is that of an AutoScaler that would have written.
func inCharge(s *v1alpha1.AutoScalerStatus) bool {
	able := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAbleToScale)
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionBound) && able != nil &&
		able.Reason != v1alpha1.ReasonPaused && able.Reason != v1alpha1.ReasonTargetSuspended
}

// contentionEnds is the wait until the next thing to do about a contention: to
// write again, or to say that it is over. Later it is no reason to wake up.
func (e *evaluation) contentionEnds(c *v1alpha1.Contention) time.Duration {
	for _, at := range []time.Time{c.RetryTime.Time, e.quietAt(c)} {
		if at.After(e.now) {
			return at.Sub(e.now)
		}
	}
	return e.after
}

// quietAt is when a contention counts as over, if nothing happens until then: as
// long after the end of the back-off as that was.
func (e *evaluation) quietAt(c *v1alpha1.Contention) time.Time {
	return c.RetryTime.Add(backOff(c.Changes, spec.PollInterval(e.autoscaler)))
}

// contended says whether another writer changes the count against this AutoScaler:
// until the back-off is over, and then until its own write has lasted. The status
// keeps the contention a while longer, for the writer that comes back.
func (e *evaluation) contended() bool {
	c := e.record.contention
	return c != nil && e.now.Before(e.quietAt(c))
}

// backsOff says whether nothing may be written yet.
func (e *evaluation) backsOff() bool {
	c := e.record.contention
	return c != nil && e.now.Before(c.RetryTime.Time)
}

// otherWriter says who changed the count.
func otherWriter(c *v1alpha1.Contention) string {
	if c.Manager == "" {
		return "a writer that managedFields do not name"
	}
	return fmt.Sprintf("field manager %q", c.Manager)
}

// holdContended names the other writer and the way out.
func (e *evaluation) holdContended() {
	e.hold(v1alpha1.ReasonContended, v1alpha1.ReasonContended, fmt.Sprintf(
		"%s changed spec.replicas of Deployment %q although this AutoScaler holds it. The next write waits until status.contention.retryTime, "+
			"longer each time that it is undone. Leave spec.replicas out of what that manager applies, or set spec.paused to scale by hand",
		otherWriter(e.record.contention), e.target.key.Name))
}
