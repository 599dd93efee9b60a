package controller

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// guardWorkers is how many namespaces are indexed at once.
const guardWorkers = 4

// +kubebuilder:rbac:groups=autoscale.example.com,resources=scaleguards,verbs=get;list;watch;create;update;delete

// GuardReconciler keeps the ScaleGuards of each namespace in step with its closed
// ScaleBindings; see v1alpha1.ScaleGuard. A namespace that holds nothing has none,
// for the API server then has nothing to search.
type GuardReconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	Clock  clock.PassiveClock

	mu    sync.Mutex
	paces map[string]*pace
}

// Reconcile brings one namespace's ScaleGuards in line; the request bears the
// namespace as its name. Whatever else stands there, also by hand, is corrected.
func (r *GuardReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	p := r.paceOf(req.Name)
	if wait := p.look(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	specs, stored, err := r.read(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	change := changeTo(specs, req.Name, stored)
	if change.empty() {
		if len(specs) == 0 {
			r.forget(req.Name)
		}
		return ctrl.Result{}, nil
	}
	if wait := p.write(now, change); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err = r.apply(ctx, change)
	if err != nil {
		p.failed()
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil // the cache has yet to see what is there
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

func (r *GuardReconciler) paceOf(namespace string) *pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paces == nil {
		r.paces = map[string]*pace{}
	}
	if r.paces[namespace] == nil {
		r.paces[namespace] = newPace()
	}
	return r.paces[namespace]
}

func (r *GuardReconciler) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paces, namespace)
}

// read gives what the ScaleGuards of a namespace are to hold, and what is stored.
// Neither is changed, so neither is copied from the cache.
func (r *GuardReconciler) read(ctx context.Context, namespace string) ([]v1alpha1.ScaleGuardSpec, []v1alpha1.ScaleGuard, error) {
	var bindings v1alpha1.ScaleBindingList
	var guards v1alpha1.ScaleGuardList
	for _, list := range []client.ObjectList{&bindings, &guards} {
		if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, err
		}
	}
	return indexOf(bindings.Items, v1alpha1.MaxHeldBytes), guards.Items, nil
}

// apply writes a change, each object on the version that was read, and stops at the
// first failure: what comes later may hold the last copy of an entry that moves. What
// it removes is there no more in the end, whoever removed it.
func (r *GuardReconciler) apply(ctx context.Context, c *indexChange) error {
	for i := range c.write {
		g := &c.write[i]
		if g.ResourceVersion == "" {
			if err := r.Client.Create(ctx, g, client.FieldOwner(FieldManager)); err != nil {
				return err
			}
			continue
		}
		if err := r.Client.Update(ctx, g, client.FieldOwner(FieldManager)); err != nil {
			return err
		}
	}
	for i := range c.remove {
		g := &c.remove[i]
		err := r.Client.Delete(ctx, g, client.Preconditions{UID: &g.UID, ResourceVersion: &g.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// SetupWithManager registers the reconciler and what changes an index: a binding
// that closes, opens or changes hands, and any change of a ScaleGuard.
func (r *GuardReconciler) SetupWithManager(mgr ctrl.Manager) error {
	byNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: obj.GetNamespace()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("scaleguard").
		Watches(&v1alpha1.ScaleBinding{}, byNamespace, builder.WithPredicates(entryChanged)).
		Watches(&v1alpha1.ScaleGuard{}, byNamespace, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: guardWorkers}).
		Complete(r)
}

// entryChanged passes a binding whose entry in the index appears, goes or changes.
var entryChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return indexEntry(e.Object) != "" },
	DeleteFunc: func(e event.DeleteEvent) bool { return indexEntry(e.Object) != "" },
	UpdateFunc: func(e event.UpdateEvent) bool { return indexEntry(e.ObjectOld) != indexEntry(e.ObjectNew) },
}

func indexEntry(obj client.Object) string {
	b, ok := obj.(*v1alpha1.ScaleBinding)
	if !ok {
		return ""
	}
	return entryOf(b)
}
