package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// staleWithin bounds how long an evaluation waits for the cache to see a write.
// Should the cache lag for longer, or versions have run backwards (a restored
// backup), it goes on: the guarded write looks at what is there.
const staleWithin = time.Minute

// target is the Deployment as the evaluation sees it.
type target struct {
	key             types.NamespacedName
	uid             types.UID
	replicas, ready int32
	// scaledByUs: the last change of the replica count was a /scale write of ours.
	scaledByUs bool
	// setBy names the other field managers that own the replica count.
	setBy []string
}

// findTarget reads the Deployment from the cache. A missing one is not an error
// of the operator: it is looked for at every poll, and its creation wakes the
// AutoScaler.
func (r *Reconciler) findTarget(ctx context.Context, e *evaluation) (bool, error) {
	a := e.autoscaler
	e.target.key = types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}
	var d appsv1.Deployment
	err := r.Client.Get(ctx, e.target.key, &d)
	switch {
	case apierrors.IsNotFound(err):
		return r.noTarget(e, v1alpha1.ReasonTargetNotFound, fmt.Sprintf("there is no Deployment %q in namespace %q", a.Spec.TargetRef.Name, a.Namespace)), nil
	case err != nil:
		return true, err
	case d.DeletionTimestamp != nil:
		return r.noTarget(e, v1alpha1.ReasonTargetTerminating, fmt.Sprintf("Deployment %q is being deleted", d.Name)), nil
	}
	e.target.uid = d.UID
	if e.record.outdated(&d) {
		if e.now.Sub(e.record.applied.at) < staleWithin {
			return e.lookAgain(), nil
		}
		e.record.noTarget()
	}
	e.target.ready = d.Status.ReadyReplicas
	e.target.replicas = replicas(&d)
	e.target.scaledByUs = scaledByUs(&d)
	e.target.setBy = slices.DeleteFunc(binding.ReplicaManagers(&d), func(name string) bool { return name == FieldManager })
	e.observeTarget()
	return false, nil
}

// lookAgain ends an evaluation that would be of the past, and leaves the status as
// it is: it speaks of the write that the cache has yet to see.
func (e *evaluation) lookAgain() (done bool) {
	e.autoscaler = e.before.DeepCopy()
	e.after = conflictDelay
	return true
}

// noTarget ends an evaluation that has nothing to decide on: its metrics need not be
// asked for either.
func (r *Reconciler) noTarget(e *evaluation, reason, message string) (done bool) {
	r.Sampler.Unsubscribe(subscriber(nameOf(e.autoscaler)))
	s := &e.autoscaler.Status
	s.TargetUID, s.TargetReplicas, s.ReadyReplicas = "", nil, nil
	s.AppliedReplicas, s.LastSuccessfulScaleTime, s.Contention, s.Shadow = nil, nil, nil, nil
	e.record.noTarget()
	e.setFalse(v1alpha1.ConditionTargetAvailable, reason, message)
	e.hold(reason, reason, message)
	e.notEvaluated()
	e.nothingDecided()
	return true
}

func (e *evaluation) observeTarget() {
	s := &e.autoscaler.Status
	if s.TargetUID != e.target.uid {
		// What was written to another Deployment says nothing of this one.
		s.TargetUID, s.AppliedReplicas, s.LastSuccessfulScaleTime, s.Contention = e.target.uid, nil, nil, nil
		// The cache may not show the status of an evaluation that saw this Deployment.
		if known := e.record.baseline; known == nil || known.target != e.target.uid {
			e.record.noTarget()
		}
	}
	count, ready := e.target.replicas, e.target.ready
	s.TargetReplicas, s.ReadyReplicas = &count, &ready
	if count == 0 {
		e.setFalse(v1alpha1.ConditionTargetAvailable, v1alpha1.ReasonTargetSuspended,
			"the Deployment was scaled to 0; it is left alone until it is scaled to 1 or more")
		return
	}
	e.setTrue(v1alpha1.ConditionTargetAvailable, v1alpha1.ReasonTargetFound, "the Deployment exists")
}

// scaledByUs says whether the last change of the replica count was a /scale write
// of ours. A later change by anyone else takes the field away from that entry.
func scaledByUs(d *appsv1.Deployment) bool {
	for i := range d.ManagedFields {
		if f := &d.ManagedFields[i]; f.Manager == FieldManager && f.Subresource == "scale" && binding.OwnsReplicas(f) {
			return true
		}
	}
	return false
}

// replicas is the count that a Deployment asks for; one that names none asks for 1.
func replicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
