package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// reasonResumed is the event at the end of a pause.
const reasonResumed = "Resumed"

// pausedMessage says that the AutoScaler is paused, until when, and why as far as
// whoever paused it has told.
func (e *evaluation) pausedMessage() string {
	s := &e.autoscaler.Spec
	message := "spec.paused is set"
	if s.PausedUntil != nil {
		message += " until " + s.PausedUntil.UTC().Format(time.RFC3339)
	}
	if e.holding == nil {
		message += ": nothing is written"
	} else {
		message += ": the claim is kept, nothing is written"
	}
	if s.PauseReason != "" {
		message += fmt.Sprintf(" (%s)", s.PauseReason)
	}
	return message
}

// wasPaused says whether a status is that of a paused AutoScaler.
func wasPaused(s *v1alpha1.AutoScalerStatus) bool {
	able := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAbleToScale)
	return able != nil && able.Reason == v1alpha1.ReasonPaused
}

// tellOfPause tells when a pause begins, and when it has ended: whoever resumes beside
// an HPA that came meanwhile must learn that nothing is written all the same.
func (r *Reconciler) tellOfPause(e *evaluation) {
	was, is := wasPaused(&e.before.Status), wasPaused(&e.autoscaler.Status)
	bound := e.condition(v1alpha1.ConditionBound)
	switch {
	case !was && is:
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeNormal, v1alpha1.ReasonPaused, actionEvaluate, "%s",
			shortened(e.condition(v1alpha1.ConditionAbleToScale).Message, maxNote))
	case !was || is || e.paused:
	case bound.Status == metav1.ConditionFalse && bound.Reason != v1alpha1.ReasonDryRun:
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeWarning, reasonResumed, actionEvaluate, "%s",
			shortened("the pause is over, but nothing is written: "+bound.Message, maxNote))
	default:
		r.Events.Eventf(e.autoscaler, nil, corev1.EventTypeNormal, reasonResumed, actionEvaluate, "the pause is over")
	}
}
