package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestASampleGoesBeforeTheStartAndAfterWhatSomebodyChanged(t *testing.T) {
	named := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "production", Name: name}}
	}
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	r := &Reconciler{Telemetry: NewTelemetry(nil, clocktesting.NewFakePassiveClock(noon))}
	r.Wake("production/early", false) // nobody is listening yet
	require.NoError(t, r.wakeByArrivals(t.Context(), q))

	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, named("start"), named("both"))
	r.Wake("production/failed", true)
	r.Wake("production/arrived", false)
	q.Add(named("changed"))
	r.Wake("production/both", false)
	r.Wake("production/arrived", false)

	var got []string
	for range 5 {
		request, _ := q.Get()
		got = append(got, request.Name)
		q.Done(request)
	}
	assert.Equal(t, []string{"changed", "arrived", "both", "failed", "start"}, got)
	assert.Zero(t, q.Len(), "an AutoScaler is in the queue once, however many of its answers arrive")
}

func TestWhatSomebodyChangedGoesFirstOnce(t *testing.T) {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "production", Name: "web"}}
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	r := &Reconciler{
		Telemetry: NewTelemetry(nil, clocktesting.NewFakePassiveClock(noon)),
		Jitter:    func(d time.Duration) time.Duration { return d },
	}
	require.NoError(t, r.wakeByArrivals(t.Context(), q))

	q.Add(request)
	_, first, _ := q.GetWithPriority()
	result := r.again(time.Hour)
	q.AddWithOpts(priorityqueue.AddOpts{After: result.RequeueAfter, Priority: result.Priority}, request) // as the controller does
	q.Done(request)
	r.Wake("production/web", false)
	_, second, _ := q.GetWithPriority()
	assert.Equal(t, []int{0, arrivalPriority}, []int{first, second})
}
