package binding

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// managerTarget is the index of a kind's objects by the Deployments that they scale.
const managerTarget = "binding.managerTarget"

func indexValue(namespace, deployment string) string { return namespace + "/" + deployment }

// managerObject is all that is kept of an object of a registered kind, whose whole
// may be large.
type managerObject struct {
	metav1.ObjectMeta
	// deployments that it scales, sorted.
	deployments []string
}

// managerWatch is a running informer of a registered kind.
type managerWatch struct {
	// namespace that is watched; empty: all.
	namespace string
	informer  cache.SharedIndexInformer
	stop      context.CancelFunc
	done      chan struct{}
}

// begin starts to watch the kind in a namespace, or in all. The caller holds r.mu.
func (r *registeredKind) begin(ctx context.Context, namespace string) error {
	ctx, stop := context.WithCancel(ctx)
	w := &managerWatch{namespace: namespace, stop: stop, done: make(chan struct{})}
	w.informer = r.informer(w)
	if err := r.equip(ctx, w); err != nil {
		stop()
		return err
	}
	r.presence, r.watches[namespace] = served, w
	go func() {
		defer close(w.done)
		w.informer.RunWithContext(ctx)
	}()
	return nil
}

// informer lists and watches the kind. A watch that begins says that what failed
// before works now.
func (r *registeredKind) informer(w *managerWatch) cache.SharedIndexInformer {
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return r.objects().Namespace(w.namespace).List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			got, err := r.objects().Namespace(w.namespace).Watch(ctx, o)
			if err == nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.isCurrent(w) {
					delete(r.failures, w.namespace)
					delete(r.troubles, w.namespace)
				}
			}
			return got, err
		},
	}, r.client)
	return cache.NewSharedIndexInformerWithOptions(source, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
		ObjectDescription: r.config.resource(),
		Indexers: cache.Indexers{managerTarget: func(obj any) ([]string, error) {
			m, ok := obj.(*managerObject)
			if !ok {
				return nil, nil
			}
			var values []string
			for _, name := range m.deployments {
				values = append(values, indexValue(m.Namespace, name))
			}
			return values, nil
		}},
	})
}

func (r *registeredKind) equip(ctx context.Context, w *managerWatch) error {
	if err := w.informer.SetTransform(func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		return r.slim(ctx, u), nil
	}); err != nil {
		return err
	}
	if err := w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, reflector *cache.Reflector, err error) {
		r.failed(ctx, w, reflector, err)
	}); err != nil {
		return err
	}
	_, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.notify(nil, obj) },
		UpdateFunc: r.notify,
		DeleteFunc: func(obj any) { r.notify(obj, nil) },
	})
	return err
}

func (r *registeredKind) slim(ctx context.Context, u *unstructured.Unstructured) *managerObject {
	return &managerObject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), DeletionTimestamp: u.GetDeletionTimestamp(),
		},
		deployments: r.deployments(ctx, u),
	}
}

// notify tells of the Deployments that an object has begun or ceased to scale.
func (r *registeredKind) notify(before, after any) {
	old, now := scaledBy(before), scaledBy(after)
	var namespace string
	for _, m := range []*managerObject{old, now} {
		if m.Namespace != "" {
			namespace = m.Namespace
		}
	}
	var changed []string
	for _, name := range old.deployments {
		if !slices.Contains(now.deployments, name) {
			changed = append(changed, name)
		}
	}
	for _, name := range now.deployments {
		if !slices.Contains(old.deployments, name) {
			changed = append(changed, name)
		}
	}
	r.changed(namespace, changed)
}

// scaledBy is what the cache holds of an object, or held of one whose deletion was
// missed.
func scaledBy(obj any) *managerObject {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if m, ok := obj.(*managerObject); ok {
		return m
	}
	return &managerObject{}
}

// failed is called when the kind could not be listed or watched; the informer tries
// again.
func (r *registeredKind) failed(ctx context.Context, w *managerWatch, reflector *cache.Reflector, err error) {
	switch {
	case apierrors.IsNotFound(err): // the kind has gone
		r.leave(w, absent)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		err = fmt.Errorf("watching %s: %w", r.config.resource(), err)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.isCurrent(w) {
			r.failures[w.namespace] = err
			r.tell(ctx, w.namespace, err, "registered replica managers cannot be watched; until they can, no AutoScaler that claims a Deployment is admitted or confirmed. Grant the permission, or take the kind out of the configuration's managers")
		}
	default:
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// isCurrent: a watch that was left may still be heard of. The caller holds r.mu.
func (r *registeredKind) isCurrent(w *managerWatch) bool {
	return w != nil && r.watches[w.namespace] == w
}

// leave ends a watch if it is the current one, and tells of all that its objects
// scaled: nobody watches them any more.
func (r *registeredKind) leave(w *managerWatch, now presence) {
	r.mu.Lock()
	current := r.isCurrent(w)
	if current {
		delete(r.watches, w.namespace)
		if now == absent {
			delete(r.failures, w.namespace)
		}
		// What one namespace is told must not hide what others know.
		if now != absent || len(r.watches) == 0 {
			r.presence = now
		}
	}
	r.mu.Unlock()
	if !current {
		return
	}
	w.stop()
	for _, obj := range w.informer.GetStore().List() {
		r.notify(obj, nil)
	}
}

// tell logs the same trouble of a namespace once. The caller holds r.mu.
func (r *registeredKind) tell(ctx context.Context, namespace string, err error, message string) {
	trouble := message
	if err != nil {
		trouble += err.Error()
	}
	if r.troubles[namespace] == trouble {
		return
	}
	r.troubles[namespace] = trouble
	log.FromContext(ctx).Error(err, message, "resource", r.config.resource(), "version", r.config.Version)
}
