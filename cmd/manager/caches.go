package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// caches tell which kinds are not there yet, and why. An informer that may list and
// not watch has synced and then stands still, so each one is asked whether it watches.
//
// An operator of some namespaces does not stand still in all of them because of one: it
// may be deleted, and the rights in it with it.
type caches struct {
	// namespaces that are watched; none stands for all.
	namespaces []string
	// gone says that a namespace does not exist.
	gone func(ctx context.Context, namespace string) bool

	mu  sync.Mutex
	all []*cached
}

// cached is one informer: a kind, in one namespace or in all.
type cached struct {
	kind     string
	informer interface{ HasSynced() bool }
	// watching: a watch was opened, and none was forbidden since.
	watching bool
	// failure of the last list or watch.
	failure error
	// aside: it was taken for empty, and that was logged.
	aside bool
}

// open begins to fill the caches of all kinds that the operator reads, on every
// replica: the webhooks read most of them, and whoever becomes the leader has the
// others.
func (c *caches) open(ctx context.Context, from cache.Cache) error {
	for _, obj := range []client.Object{
		&v1alpha1.AutoScaler{}, &v1alpha1.MetricProfile{}, &v1alpha1.ScaleBinding{}, &v1alpha1.ScaleGuard{},
		&appsv1.Deployment{}, &autoscalingv2.HorizontalPodAutoscaler{},
	} {
		if _, err := from.GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	return nil
}

// newInformer is for the manager's cache.
func (c *caches) newInformer(from toolscache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	goType := fmt.Sprintf("%T", obj)
	entry := &cached{kind: goType[strings.LastIndexByte(goType, '.')+1:]}
	source := toolscache.ToListerWatcherWithContext(from)
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, o)
			if err == nil {
				return list, nil
			}
			c.failed(entry, err)
			if c.setAside(ctx, entry, err) {
				return &metav1.List{}, nil
			}
			return nil, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			opened, err := source.WatchWithContext(ctx, o)
			if err != nil {
				c.failed(entry, err)
			} else {
				c.watches(entry)
			}
			return opened, err
		},
	}, obj, resync, indexers)
	c.mu.Lock()
	defer c.mu.Unlock()
	entry.informer = informer
	c.all = append(c.all, entry)
	return informer
}

// failed: what is forbidden ends what was there before; of other failures the API
// server recovers, and the informer after it.
func (c *caches) failed(entry *cached, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry.failure = err
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		entry.watching = false
	}
}

func (c *caches) watches(entry *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry.watching, entry.failure, entry.aside = true, nil, false
}

// refusedIn is the watched namespace that a list or watch is forbidden in, by what the API
// server's authorization says; empty for anything else.
func (c *caches) refusedIn(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	for _, name := range c.namespaces {
		if strings.Contains(err.Error(), fmt.Sprintf("in the namespace %q", name)) {
			return name
		}
	}
	return ""
}

// setAside says whether a kind is taken for empty in a namespace where it may not be
// listed: at the start, so that the others are managed, and later if the namespace has
// gone. What was listed before otherwise stays as it was: rights that are lost for a
// moment are no deletion.
func (c *caches) setAside(ctx context.Context, entry *cached, err error) bool {
	namespace := c.refusedIn(err)
	if namespace == "" || entry.informer.HasSynced() && !c.gone(ctx, namespace) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !entry.aside {
		entry.aside = true
		ctrl.Log.WithName("caches").Error(err, "nothing is managed in this namespace; create it and its roles again, or take it out of watchNamespaces",
			"namespace", namespace, "kind", entry.kind)
	}
	return true
}

// check is a readiness check: it names the kinds that are not up to date. One that is
// refused in a namespace is no matter while it is up to date in another one.
func (c *caches) check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := map[string]bool{}
	for _, entry := range c.all {
		current[entry.kind] = current[entry.kind] || entry.watching && entry.informer.HasSynced()
	}
	var missing []string
	for _, entry := range c.all {
		synced := entry.informer.HasSynced()
		if synced && (entry.watching || current[entry.kind] && c.refusedIn(entry.failure) != "") {
			continue
		}
		why := "being listed"
		if entry.failure != nil {
			why = entry.failure.Error()
		}
		missing = append(missing, entry.kind+" ("+why+")")
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("not synced: %s", strings.Join(slices.Compact(missing), ", "))
}
