package controller

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// arrivalPriority lets a sample go before the list of all objects that a start begins
// with, and after what somebody has just changed: a pause, a count scaled by hand. A
// fleet's samples come all the time, and must delay neither.
//
// failurePriority lets those with an answer go before those without: an endpoint that
// begins to hang has all its AutoScalers say so at once, and each is a write.
const (
	arrivalPriority = handler.LowPriority / 2
	failurePriority = arrivalPriority - 1
)

// queue is where evaluations wait for a worker.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// arrivals leads from the sampler to the queue. The zero value is ready, and drops what
// comes before the queue: every object is evaluated at the start anyway.
type arrivals struct{ queue atomic.Pointer[queue] }

// Wake has the AutoScaler of a subscriber evaluated: the sampler calls it with each
// answer, and each failure to get one. It does not block.
func (r *Reconciler) Wake(id prometheus.Subscriber, failed bool) {
	key := nameOfSubscriber(id)
	if !failed {
		r.Telemetry.Woken(key)
	}
	to := r.arrivals.queue.Load()
	if to == nil {
		return
	}
	request := reconcile.Request{NamespacedName: key}
	if q, ok := (*to).(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		priority := arrivalPriority
		if failed {
			priority = failurePriority
		}
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return
	}
	(*to).Add(request)
}

// wakeByArrivals is the source of the sampler's calls.
func (r *Reconciler) wakeByArrivals(_ context.Context, to queue) error {
	r.arrivals.queue.Store(&to)
	return nil
}

// again has an AutoScaler evaluated after a wait, as if there were no answer: the queue
// keeps the priority of an evaluation for the next one, and what somebody has once
// changed would go before all others for ever.
func (r *Reconciler) again(after time.Duration) reconcile.Result {
	return reconcile.Result{RequeueAfter: r.Jitter(after), Priority: new(failurePriority)}
}

func subscriber(key types.NamespacedName) prometheus.Subscriber {
	return prometheus.Subscriber(key.String())
}

func nameOfSubscriber(id prometheus.Subscriber) types.NamespacedName {
	namespace, name, _ := strings.Cut(string(id), string(types.Separator))
	return types.NamespacedName{Namespace: namespace, Name: name}
}
