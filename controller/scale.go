package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// scaleEvent is a write that happened. recommended is nil where it is not known, and
// so is the rule, which is empty where none cut the recommendation too.
type scaleEvent struct {
	target      string
	from, to    int32
	recommended *int32
	rule        string
}

func (s *scaleEvent) String() string {
	text := fmt.Sprintf("scaled Deployment %s from %d to %d", s.target, s.from, s.to)
	var why []string
	if s.recommended != nil {
		why = append(why, fmt.Sprintf("recommended %d", *s.recommended))
	}
	if s.rule != "" {
		why = append(why, "rule "+s.rule)
	}
	if len(why) > 0 {
		text += " (" + strings.Join(why, ", ") + ")"
	}
	return text
}

// scale writes the decided count, if it differs and writing is allowed.
func (r *Reconciler) scale(ctx context.Context, e *evaluation) (bool, error) {
	a := e.autoscaler
	e.lookForContention()
	r.records.put(a, e.record)
	if e.writesHeld() {
		return true, nil
	}
	from, to := e.target.replicas, e.decision.Replicas
	if from == to {
		e.mayWrite()
		return true, nil
	}
	version, err := r.write(ctx, e, to)
	if err != nil {
		err = r.scaleFailed(e, err)
		r.records.put(a, e.record)
		return true, err
	}
	e.record.scaled(e, to, version)
	r.records.put(a, e.record)
	e.scaled = true
	r.Telemetry.wrote(e)
	e.mayWrite()
	return true, nil
}

// mayNotWrite says whether nothing may be written, whatever the decision. Whoever
// changes the count then does not contend.
func (e *evaluation) mayNotWrite() bool {
	return e.autoscaler.Spec.DryRun || e.holding == nil || e.paused || e.target.replicas == 0
}

// mayWrite says that writing is allowed, or that it has yet to prove to last.
func (e *evaluation) mayWrite() {
	if e.contended() {
		e.holdContended()
		return
	}
	e.ableToScale()
}

// writesHeld sets the conditions where nothing may be written, and says so.
func (e *evaluation) writesHeld() bool {
	switch {
	case e.autoscaler.Spec.DryRun:
		e.hold(v1alpha1.ReasonDryRun, v1alpha1.ReasonDryRun,
			"spec.dryRun is set: nothing is written; status.shadow has the count that would be, and how far the real one is from it")
	case e.paused:
		// Before the claim: a pause must not be hidden by an HPA, which Bound tells of.
		e.hold(v1alpha1.ReasonPaused, v1alpha1.ReasonPaused, e.pausedMessage())
	case e.holding == nil:
		bound := e.condition(v1alpha1.ConditionBound)
		e.hold(v1alpha1.ReasonNotBound, bound.Reason, bound.Message)
	case e.target.replicas == 0:
		e.hold(v1alpha1.ReasonTargetSuspended, v1alpha1.ReasonTargetSuspended, e.condition(v1alpha1.ConditionTargetAvailable).Message)
	case e.backsOff():
		e.holdContended()
	default:
		return false
	}
	return true
}

// hold says why nothing is written.
func (e *evaluation) hold(ableReason, readyReason, message string) {
	e.setFalse(v1alpha1.ConditionAbleToScale, ableReason, message)
	e.setFalse(v1alpha1.ConditionReady, readyReason, message)
}

// write is the guarded write. Right before it the spec must still be the one
// decided on, the Deployment the same with the count that the decision saw (live),
// and the binding still held (live); the API server checks UID and resourceVersion
// once more. Whatever differs drops the decision: it is never
// applied to facts it was not made from. It gives the Deployment's version after it.
func (r *Reconciler) write(ctx context.Context, e *evaluation, replicas int32) (version string, err error) {
	defer r.turns.take(e.target.key)()
	ctx, cancel := context.WithTimeout(ctx, writeDeadline)
	defer cancel()
	var latest v1alpha1.AutoScaler
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(e.autoscaler), &latest); err != nil {
		return "", err
	}
	if latest.UID != e.autoscaler.UID || latest.Generation != e.autoscaler.Generation {
		return "", staleError("the AutoScaler's spec changed")
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.target.key.Namespace, Name: e.target.key.Name}}
	var scale autoscalingv1.Scale
	if err := r.Client.SubResource("scale").Get(ctx, deployment, &scale); err != nil {
		return "", err
	}
	switch {
	case scale.UID != e.target.uid:
		return "", staleError("the Deployment was replaced")
	case scale.Spec.Replicas != e.target.replicas:
		return "", staleError("the replica count was changed")
	}
	// Last, so that a count which a next owner has written since is not taken for
	// the one that was decided on.
	if err := r.Arbiter.Verify(ctx, *e.holding); err != nil {
		return "", err
	}
	scale.Spec.Replicas = replicas
	// Whatever the answer says, or if there is none: the write may have happened, and
	// the Deployment will tell. A client that tries again gets a conflict for its own.
	e.record.seen = &count{target: e.target.uid, replicas: e.target.replicas}
	err = r.Client.SubResource("scale").Update(ctx, deployment, client.WithSubResourceBody(&scale), client.FieldOwner(FieldManager))
	return scale.ResourceVersion, err
}

// staleError is a decision that came too late.
type staleError string

func (e staleError) Error() string { return string(e) + " since the decision was made" }

// scaleFailed sorts a failed write. A lost race is made anew a moment later, a
// missing permission is looked at again at the next poll, anything else backs off.
func (r *Reconciler) scaleFailed(e *evaluation, err error) (failed error) {
	var stale staleError
	reason := v1alpha1.ReasonScaleFailed
	switch {
	case errors.As(err, &stale), errors.Is(err, binding.ErrLost), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		reason = v1alpha1.ReasonScaleConflict
		e.after = conflictDelay
	case apierrors.IsForbidden(err):
		reason = v1alpha1.ReasonForbidden
	default:
		failed = err
	}
	e.scaleFailure = true
	r.Telemetry.notWritten(reason)
	e.hold(reason, reason, fmt.Sprintf("the scale of Deployment %q was not written: %s", e.target.key.Name, tellable(err)))
	return failed
}
