package binding

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/expr"
)

// maxTold bounds the objects that are remembered as told of in the log.
const maxTold = 1000

// registeredKind is a registered kind of replica managers.
type registeredKind struct {
	config  ManagerConfig
	targets *expr.Program
	client  dynamic.Interface
	changed func(namespace string, targets []string)
	// told are the objects, by UID and generation, whose targets could not be told
	// and were logged.
	told *lru.Cache

	// namespaces that are watched: the empty one alone, or single ones.
	namespaces []string

	mu       sync.Mutex
	presence presence
	// watches by namespace; none unless the kind is served.
	watches map[string]*managerWatch
	// failures are why the kind cannot be watched in a namespace, until it can.
	failures map[string]error
	// troubles are what was logged last, of the kind (under the empty name) and of a
	// namespace; once is enough.
	troubles map[string]string
}

type presence int

const (
	presenceUnknown presence = iota
	absent
	served
)

func newRegisteredKind(config ManagerConfig, targets *expr.Program, client dynamic.Interface, namespaces []string, changed func(string, []string)) *registeredKind {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	return &registeredKind{
		config: config, targets: targets, client: client, changed: changed, told: lru.New(maxTold), namespaces: namespaces,
		watches: map[string]*managerWatch{}, failures: map[string]error{}, troubles: map[string]string{},
	}
}

// watchedAs is the namespace under which a namespace is watched.
func (r *registeredKind) watchedAs(namespace string) string {
	if r.namespaces[0] == metav1.NamespaceAll {
		return metav1.NamespaceAll
	}
	return namespace
}

func (r *registeredKind) objects() dynamic.NamespaceableResourceInterface {
	return r.client.Resource(schema.GroupVersionResource{Group: r.config.Group, Version: r.config.Version, Resource: r.config.Resource})
}

func (r *registeredKind) find(ctx context.Context, namespace, target string) (*ManagerError, error) {
	as := r.watchedAs(namespace)
	r.mu.Lock()
	presence, watch, failure := r.presence, r.watches[as], r.failures[as]
	r.mu.Unlock()
	switch {
	case failure != nil:
		return nil, failure
	case presence == absent:
		return nil, nil
	case watch == nil || !watch.informer.HasSynced():
		return findLive(ctx, r, namespace, target)
	}
	found, err := watch.informer.GetIndexer().ByIndex(managerTarget, indexValue(namespace, target))
	if err != nil {
		return nil, lookFailure(r, namespace, target, err)
	}
	var least *managerObject
	for _, obj := range found {
		if m, ok := obj.(*managerObject); ok && (least == nil || m.Name < least.Name) {
			least = m
		}
	}
	if least == nil {
		return nil, nil
	}
	return r.conflict(namespace, target, least.Name), nil
}

func (r *registeredKind) eachLive(ctx context.Context, namespace string, found func(*ManagerError) bool) error {
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.objects().Namespace(namespace).List(ctx, o)
	}
	ended := false
	err := eachItem(ctx, page, func(obj runtime.Object) bool {
		u, ok := obj.(*unstructured.Unstructured)
		ended = ok && slices.ContainsFunc(r.deployments(ctx, u), func(target string) bool {
			return found(r.conflict(u.GetNamespace(), target, u.GetName()))
		})
		return ended
	})
	switch {
	case apierrors.IsNotFound(err): // the kind is not served
		return nil
	case err == nil && !ended: // some expressions may have been cut short
		return ctx.Err()
	}
	return err
}

func (r *registeredKind) resource() string { return r.config.resource() }

func (r *registeredKind) conflict(namespace, target, name string) *ManagerError {
	return &ManagerError{Namespace: namespace, Target: target, Kind: r.config.Kind, Resource: r.config.resource(), Name: name}
}

// deployments gives the Deployments that an object scales. What cannot be told is no
// conflict, lest a broken object stop others; it is logged once for each generation.
func (r *registeredKind) deployments(ctx context.Context, obj *unstructured.Unstructured) []string {
	names, err := deploymentsOf(ctx, r.targets, obj)
	if err == nil || ctx.Err() != nil {
		return names
	}
	key := fmt.Sprintf("%s/%d", obj.GetUID(), obj.GetGeneration())
	if _, known := r.told.Get(key); !known {
		r.told.Add(key, nil)
		log.FromContext(ctx).Error(err, "what a registered replica manager scales cannot be told; it counts as no conflict",
			"resource", r.config.resource(), "namespace", obj.GetNamespace(), "name", obj.GetName(), "found", len(names))
	}
	return names
}
