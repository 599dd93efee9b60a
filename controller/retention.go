package controller

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// Retention is how long a free ScaleBinding is kept after its release where there is
// no Deployment of its name: its history answers who had what until when.
const Retention = 24 * time.Hour

// +kubebuilder:rbac:groups=autoscale.example.com,resources=scalebindings,verbs=delete

// RetentionReconciler deletes free ScaleBindings that nobody will need: those
// without a Deployment, after Retention.
type RetentionReconciler struct {
	// Client reads from the cache and writes to the API server.
	Client  client.Client
	Arbiter *binding.Arbiter
	Clock   clock.PassiveClock
}

// Reconcile deletes one binding, or comes back exactly when that is due. A binding
// that is claimed meanwhile has another version, and stays.
func (r *RetentionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b v1alpha1.ScaleBinding
	if err := r.Client.Get(ctx, req.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if b.DecodeError != "" || !b.Free() || b.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	if b.Status.Epoch != b.Spec.Epoch {
		// Released by a call that did not get to record it. The record wakes it again.
		_, err := r.Arbiter.Reap(ctx, b.Namespace, b.Name, "")
		return ctrl.Result{}, err
	}
	var d appsv1.Deployment
	if err := r.Client.Get(ctx, req.NamespacedName, &d); !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err // it exists: its deletion wakes this binding
	}
	if wait := Retention - r.Clock.Since(r.freeSince(&b)); wait > 0 {
		return ctrl.Result{RequeueAfter: min(wait, Retention)}, nil
	}
	err := r.Client.Delete(ctx, &b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion})
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	if err == nil {
		log.FromContext(ctx).Info("deleted a free ScaleBinding without a Deployment", "epoch", b.Spec.Epoch)
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// freeSince is when a free binding was released.
func (r *RetentionReconciler) freeSince(b *v1alpha1.ScaleBinding) time.Time {
	if len(b.Status.Transitions) == 0 {
		return b.CreationTimestamp.Time
	}
	return b.Status.Transitions[0].Time.Time
}

// SetupWithManager registers the reconciler and what can make a binding superfluous:
// its release, and the end of its Deployment.
func (r *RetentionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("retention").
		For(&v1alpha1.ScaleBinding{}, builder.WithPredicates(onlyFree)).
		Watches(&appsv1.Deployment{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(onlyDeleted)).
		Complete(r)
}

// onlyFree passes a binding that is, or becomes, free; its record of the release
// follows in the status.
var onlyFree = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	b, ok := obj.(*v1alpha1.ScaleBinding)
	return ok && b.Free()
})

// onlyDeleted passes the end of an object.
var onlyDeleted = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}
