package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// bindingOwner is the index of bindings by the AutoScaler that answers for them. There
// is an index for every look-up that is not by name; the others are binding's.
const bindingOwner = "binding.owner"

// AddIndexes registers the indexes that the reconciler and the webhooks look up.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		obj     client.Object
		name    string
		extract client.IndexerFunc
	}{
		{&v1alpha1.AutoScaler{}, binding.AutoScalerTarget, binding.IndexAutoScaler},
		{&v1alpha1.AutoScaler{}, binding.AutoScalerProfile, binding.IndexProfiles},
		{&v1alpha1.ScaleBinding{}, bindingOwner, ownerOf},
		{&autoscalingv2.HorizontalPodAutoscaler{}, binding.HPATarget, binding.IndexHPA},
	} {
		if err := indexer.IndexField(ctx, index.obj, index.name, index.extract); err != nil {
			return err
		}
	}
	return nil
}

// ownerOf names the AutoScaler that answers for a binding. One that was freed by
// a call that did not get to record it still belongs to the last owner recorded.
func ownerOf(obj client.Object) []string {
	b := obj.(*v1alpha1.ScaleBinding)
	switch {
	case b.Spec.OwnerRef != nil:
		return []string{b.Spec.OwnerRef.Name}
	case b.Status.Epoch != b.Spec.Epoch && len(b.Status.Transitions) > 0:
		return []string{b.Status.Transitions[0].Owner}
	}
	return nil
}

// SetupWithManager registers the reconciler and what wakes an AutoScaler: each answer
// to its metrics, its spec, its Deployment's count, HPAs and bindings of that
// Deployment, and the profiles it uses.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("autoscaler").
		For(&v1alpha1.AutoScaler{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.AutoScaler{}, handler.EnqueueRequestsFromMapFunc(r.byRival), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&appsv1.Deployment{}, r.wake(binding.AutoScalerTarget), builder.WithPredicates(countChanged)).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, handler.EnqueueRequestsFromMapFunc(r.byHPA), builder.WithPredicates(retargeted)).
		Watches(&v1alpha1.ScaleBinding{}, handler.EnqueueRequestsFromMapFunc(r.byBinding), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(r.wakeByManagers)).
		WatchesRawSource(source.Func(r.wakeByArrivals)).
		Watches(&v1alpha1.MetricProfile{}, r.wake(binding.AutoScalerProfile), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// countChanged passes what bears on a decision: a Deployment that appears, goes,
// or changes its replica count. Its pods becoming ready is read at the next poll.
var countChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*appsv1.Deployment)
		after, ok2 := e.ObjectNew.(*appsv1.Deployment)
		if !ok1 || !ok2 {
			return false
		}
		return before.UID != after.UID || replicas(before) != replicas(after) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	},
}

// retargeted passes an HPA that appears, goes, or turns to another target; its
// status changes all the time.
var retargeted = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(binding.IndexHPA(e.ObjectOld), binding.IndexHPA(e.ObjectNew))
	},
}

// wake maps an object to the AutoScalers that an index finds by its name.
func (r *Reconciler) wake(index string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.lookUp(ctx, obj.GetNamespace(), index, obj.GetName())
	})
}

func (r *Reconciler) byHPA(ctx context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, target := range binding.IndexHPA(obj) {
		requests = append(requests, r.lookUp(ctx, obj.GetNamespace(), binding.AutoScalerTarget, target)...)
	}
	return requests
}

// wakeByManagers wakes the AutoScalers of a Deployment that a registered manager
// begins or ceases to target.
func (r *Reconciler) wakeByManagers(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Managers.OnChange(func(namespace, target string) {
		for _, request := range r.lookUp(ctx, namespace, binding.AutoScalerTarget, target) {
			queue.Add(request)
		}
	})
	return nil
}

// byRival wakes the other AutoScalers of the same Deployment: who stood before them
// in the line may have left it.
func (r *Reconciler) byRival(ctx context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, target := range binding.IndexAutoScaler(obj) {
		for _, other := range r.lookUp(ctx, obj.GetNamespace(), binding.AutoScalerTarget, target) {
			if other.Name != obj.GetName() {
				requests = append(requests, other)
			}
		}
	}
	return requests
}

// byBinding wakes who owns the binding, or did, and who else asks for its target.
func (r *Reconciler) byBinding(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.lookUp(ctx, obj.GetNamespace(), binding.AutoScalerTarget, obj.GetName())
	for _, owner := range ownerOf(obj) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner}})
	}
	return requests
}

// lookUp finds AutoScalers by index. A failure is logged; the periodic evaluation
// covers what it missed.
func (r *Reconciler) lookUp(ctx context.Context, namespace, index, value string) []reconcile.Request {
	var list v1alpha1.AutoScalerList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index: value}); err != nil {
		log.FromContext(ctx).Error(err, "finding the AutoScalers of an object failed; they are evaluated at their next poll", "index", index, "value", value)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: nameOf(&list.Items[i])})
	}
	return requests
}
