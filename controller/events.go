package controller

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Actions of events, as the events API wants them.
const (
	actionScale    = "Scale"
	actionEvaluate = "Evaluate"
)

// reasonScheduled is the event when other schedules come into force.
const reasonScheduled = "Scheduled"

// maxNote is what the API server takes of an event's note, less the ellipsis.
const maxNote = 1024 - len("…")

// problem says for each condition which status is worth a warning.
var problem = map[string]metav1.ConditionStatus{
	v1alpha1.ConditionBound:            metav1.ConditionFalse,
	v1alpha1.ConditionTargetAvailable:  metav1.ConditionFalse,
	v1alpha1.ConditionMetricsAvailable: metav1.ConditionFalse,
}

// tell records the events of an evaluation whose status is stored: one for a
// scale, and one for each condition that became, or ceased to be, a problem.
func (r *Reconciler) tell(e *evaluation) {
	if s := e.record.untold; s != nil {
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeNormal, "Scaled", actionScale, "%s", s.String())
	}
	r.tellOfPause(e)
	r.tellOfSchedules(e)
	for _, now := range e.autoscaler.Status.Conditions {
		was := meta.FindStatusCondition(e.before.Status.Conditions, now.Type)
		if !transition(was, &now) {
			continue
		}
		eventType := corev1.EventTypeNormal
		if isProblem(&now) {
			eventType = corev1.EventTypeWarning
		}
		r.Events.Eventf(e.autoscaler, nil, eventType, now.Reason, actionEvaluate, "%s", shortened(now.Message, maxNote))
	}
}

// tellOfSchedules tells when other schedules come into force.
func (r *Reconciler) tellOfSchedules(e *evaluation) {
	var was, is []string
	if d := e.before.Status.LastDecision; d != nil {
		was = d.Schedules
	}
	d := e.autoscaler.Status.LastDecision
	if d == nil {
		return // nothing was decided, which ends no schedule
	}
	is = d.Schedules
	switch {
	case slices.Equal(was, is):
	case len(is) == 0:
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeNormal, reasonScheduled, actionEvaluate, "no schedule is in force any more")
	default:
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeNormal, reasonScheduled, actionEvaluate, "%s",
			shortened("in force by schedule: "+strings.Join(is, ", "), maxNote))
	}
}

// transition says whether a condition's change is news: it became a problem, it
// became another problem, it was mended, or who stood by has taken over. Another limit
// in the place of one that was a problem mends nothing, nor does a new question.
func transition(was, now *metav1.Condition) bool {
	switch {
	case isProblem(now):
		return was == nil || was.Status != now.Status || was.Reason != now.Reason
	case was != nil && was.Reason == v1alpha1.ReasonWaitingForRelease && now.Type == v1alpha1.ConditionBound:
		return now.Status == metav1.ConditionTrue
	case now.Reason == v1alpha1.ReasonAwaitingSamples:
		return false
	}
	return was != nil && isProblem(was) && now.Type != v1alpha1.ConditionScalingLimited
}

// isProblem: demand beyond the cap is one, because the service lacks capacity and
// nothing else says so. A dry run, a pause or standing by was asked for.
func isProblem(c *metav1.Condition) bool {
	switch {
	case c.Reason == v1alpha1.ReasonDryRun, c.Reason == v1alpha1.ReasonPaused, c.Reason == v1alpha1.ReasonWaitingForRelease:
		return false
	case c.Reason == v1alpha1.ReasonManagersUnknown:
		return true
	case c.Type == v1alpha1.ConditionScalingLimited:
		return c.Status == metav1.ConditionTrue && slices.Contains([]string{
			v1alpha1.ReasonAtMaxReplicas, v1alpha1.ReasonOutOfBounds, v1alpha1.ReasonFallbackFloor, v1alpha1.ReasonBelowMinimum,
		}, c.Reason)
	case c.Type == v1alpha1.ConditionReady:
		return c.Reason == v1alpha1.ReasonInvalidSpec
	case c.Type == v1alpha1.ConditionAbleToScale:
		// Its other reasons are told by another condition; a lost race is none.
		return slices.Contains([]string{
			v1alpha1.ReasonForbidden, v1alpha1.ReasonScaleFailed, v1alpha1.ReasonEvaluationFailed, v1alpha1.ReasonContended,
		}, c.Reason)
	}
	bad, known := problem[c.Type]
	return known && c.Status == bad
}
