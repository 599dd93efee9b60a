package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// change is one value of a Deployment's spec.replicas.
type change struct {
	seen     time.Time
	replicas int32
	// manager is the field manager that owns spec.replicas, with the subresource
	// it wrote through, as "autoscale-operator/scale".
	manager string
}

// recorder keeps all that the API server tells of one Deployment's replica count
// and of its AutoScaler's status: a watch misses no version, as polling would.
type recorder struct {
	namespace, name string

	mu       sync.Mutex
	changes  []change
	statuses []v1alpha1.AutoScalerStatus
	err      error
}

// mark is a place in the record.
type mark struct{ changes, statuses int }

// initial is the place after the count that the Deployment was created with.
var initial = mark{changes: 1}

// record follows the Deployment and the AutoScaler of one name from now on, until
// ctx ends.
func record(ctx context.Context, c client.WithWatch, namespace, name string) (*recorder, error) {
	r := &recorder{namespace: namespace, name: name}
	for _, followed := range []struct {
		list client.ObjectList
		note func(runtime.Object) error
	}{
		{&appsv1.DeploymentList{}, r.noteDeployment},
		{&v1alpha1.AutoScalerList{}, r.noteAutoScaler},
	} {
		if err := r.follow(ctx, c, followed.list, followed.note); err != nil {
			return nil, fmt.Errorf("watching %s/%s: %w", namespace, name, err)
		}
	}
	return r, nil
}

func (r *recorder) follow(ctx context.Context, c client.WithWatch, list client.ObjectList, note func(runtime.Object) error) error {
	byName := fields.OneTermEqualSelector("metadata.name", r.name)
	if err := c.List(ctx, list, client.InNamespace(r.namespace), client.MatchingFieldsSelector{Selector: byName}); err != nil {
		return err
	}
	if err := eachItem(list, note); err != nil {
		return err
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, list, &client.ListOptions{Namespace: r.namespace, FieldSelector: byName, Raw: &options})
	}}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watcher)
	if err != nil {
		return err
	}
	go r.take(ctx, events, note)
	return nil
}

func eachItem(list client.ObjectList, note func(runtime.Object) error) error {
	switch l := list.(type) {
	case *appsv1.DeploymentList:
		for i := range l.Items {
			if err := note(&l.Items[i]); err != nil {
				return err
			}
		}
	case *v1alpha1.AutoScalerList:
		for i := range l.Items {
			if err := note(&l.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recorder) take(ctx context.Context, events watch.Interface, note func(runtime.Object) error) {
	defer events.Stop()
	for event := range events.ResultChan() {
		var err error
		switch event.Type {
		case watch.Added, watch.Modified:
			err = note(event.Object)
		case watch.Deleted:
			err = fmt.Errorf("%T %s/%s was deleted", event.Object, r.namespace, r.name)
		case watch.Error:
			err = fmt.Errorf("the watch failed, so the record has a gap: %v", event.Object)
		case watch.Bookmark:
		}
		if err != nil {
			r.fail(err)
		}
	}
	if ctx.Err() == nil {
		r.fail(errors.New("the watch ended, so the record has a gap"))
	}
}

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *recorder) noteDeployment(obj runtime.Object) error {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return fmt.Errorf("the watch of Deployments gave %T", obj)
	}
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	manager, err := replicasManager(d.ManagedFields)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The field may change hands without a change: who names a count that is kept owns it.
	if n := len(r.changes); n == 0 || r.changes[n-1].replicas != replicas {
		r.changes = append(r.changes, change{seen: time.Now(), replicas: replicas, manager: manager})
	}
	return nil
}

var replicasPath = fieldpath.MakePathOrDie("spec", "replicas")

// replicasManager is who owns spec.replicas, from an object's managedFields: the
// last one who changed it.
func replicasManager(entries []metav1.ManagedFieldsEntry) (string, error) {
	var owners []string
	for i := range entries {
		e := &entries[i]
		if e.FieldsV1 == nil {
			continue
		}
		var owned fieldpath.Set
		if err := owned.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			return "", fmt.Errorf("managedFields of %s: %w", e.Manager, err)
		}
		if !owned.Has(replicasPath) {
			continue
		}
		owner := e.Manager
		if e.Subresource != "" {
			owner += "/" + e.Subresource
		}
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	return strings.Join(owners, "+"), nil
}

func (r *recorder) noteAutoScaler(obj runtime.Object) error {
	a, ok := obj.(*v1alpha1.AutoScaler)
	if !ok {
		return fmt.Errorf("the watch of AutoScalers gave %T", obj)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = append(r.statuses, *a.Status.DeepCopy())
	return nil
}

// mark is the end of the record so far.
func (r *recorder) mark() mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	return mark{len(r.changes), len(r.statuses)}
}

// changesSince are the changes of the replica count after a mark.
func (r *recorder) changesSince(m mark) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes[m.changes:])
}

// statusesSince are the AutoScaler's statuses after a mark, each as it was stored.
func (r *recorder) statusesSince(m mark) []v1alpha1.AutoScalerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.statuses[m.statuses:])
}

// problem says that the record cannot be relied upon; before there is one it is nil.
func (r *recorder) problem() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// arrows writes counts as "2 → 6 → 9".
func arrows(counts []int32) string {
	if len(counts) == 0 {
		return "no change"
	}
	texts := make([]string, 0, len(counts))
	for _, n := range counts {
		texts = append(texts, strconv.Itoa(int(n)))
	}
	return strings.Join(texts, " → ")
}

func counts(changes []change) []int32 {
	var list []int32
	for _, c := range changes {
		list = append(list, c.replicas)
	}
	return list
}
