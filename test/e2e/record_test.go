//go:build e2e

package e2e

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"example.com/platform/autoscale-operator/binding"
)

// record is what has happened to Deployments and pods, with the times at which it was
// seen here.
type record struct {
	mu       sync.Mutex
	changes  []change
	replicas map[types.UID]int32
	pods     map[types.UID]*podTimes
}

// change of a replica count; a Deployment's creation is one from 0.
type change struct {
	seen            time.Time
	namespace, name string
	from, to        int32
	// by is the field manager that spec.replicas has now.
	by string
}

// podTimes are the times of a pod of the sample service.
type podTimes struct {
	namespace, app, name string
	created, ready       time.Time
}

// startRecord watches for as long as the acceptance lasts.
func startRecord(w *world) *record {
	w.Helper()
	r := &record{replicas: map[types.UID]int32{}, pods: map[types.UID]*podTimes{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	factory := informers.NewSharedInformerFactory(w.clientset, 0)
	for informer, seen := range map[cache.SharedIndexInformer]func(any){
		factory.Apps().V1().Deployments().Informer(): r.deployment,
		factory.Core().V1().Pods().Informer():        r.pod,
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, now any) { seen(now) }})
		require.NoError(w, err)
	}
	factory.Start(ctx.Done())
	w.Cleanup(func() { cancel(); factory.Shutdown() })
	within, done := context.WithTimeout(ctx, soon)
	defer done()
	for kind, synced := range factory.WaitForCacheSync(within.Done()) {
		require.True(w, synced, kind)
	}
	return r
}

func (r *record) deployment(o any) {
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.replicas[d.UID]
	if to := *d.Spec.Replicas; to != from {
		r.replicas[d.UID] = to
		r.changes = append(r.changes, change{time.Now(), d.Namespace, d.Name, from, to, ownerOfReplicas(d)})
	}
}

// ownerOfReplicas is who owns the count, by managedFields; of several, who came last.
func ownerOfReplicas(d *appsv1.Deployment) string {
	var owner metav1.ManagedFieldsEntry
	for i := range d.ManagedFields {
		m := &d.ManagedFields[i]
		if binding.OwnsReplicas(m) && (owner.Time == nil || !m.Time.Before(owner.Time)) {
			owner = *m
		}
	}
	return owner.Manager
}

func (r *record) pod(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	times := r.pods[p.UID]
	if times == nil {
		times = &podTimes{namespace: p.Namespace, app: p.Labels["app"], name: p.Name, created: now}
		r.pods[p.UID] = times
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && times.ready.IsZero() {
			times.ready = now
		}
	}
}

// since are the changes of a Deployment's count from a time on.
func (r *record) since(namespace, name string, from time.Time) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []change
	for _, c := range r.changes {
		if c.namespace == namespace && c.name == name && !c.seen.Before(from) {
			found = append(found, c)
		}
	}
	return found
}

// podsSince are the pods of the service that were made from a time on, in their order.
func (r *record) podsSince(from time.Time) []podTimes {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []podTimes
	for _, p := range r.pods {
		if p.namespace == shop && p.app == service && !p.created.Before(from) {
			found = append(found, *p)
		}
	}
	slices.SortFunc(found, func(a, b podTimes) int { return a.created.Compare(b.created) })
	return found
}
