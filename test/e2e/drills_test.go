//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// The poll interval and the scale-down window of most drills, in seconds. What has not
// happened within two polls of the window does not happen by itself.
const (
	drillPoll   = 5
	drillWindow = 15
	aWindow     = (drillWindow + 2*drillPoll) * time.Second
)

// sumOfLoad is the query for the load as a person asks it.
const sumOfLoad = `sum(rate(order_items_total{namespace="` + shop + `", deployment="` + service + `"}[15s]))`

// drills breaks one thing after the other around a service under load, and sees whether
// each layer mends what is its own.
func (w *world) drills() {
	d, p := deployment(shop, service, 2), profile("items", load)
	a := builders.MakeAutoScaler(shop, service).Target(service).Metric("items", "items", fmt.Sprint(perReplica)).
		Bounds(2, 20).Poll(drillPoll).Window(drillWindow).Obj()
	w.create(d, p, a)
	w.Cleanup(func() { w.remove(a, d, p) })
	w.says(shop, service, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)

	w.do("beside each other", func(w *world) {
		w.beside("FC-36 certificates", (*world).renewals)
		w.beside("FC-32 another writer applies the Deployment with a count of its own", (*world).anotherWriter)
		w.beside("FC-47 long and dotted names", (*world).longNames)
		w.beside("what is around the operator", func(w *world) {
			w.do("a pod of the service is deleted", (*world).losesAPod)
			w.do("no node takes a pod", (*world).cordoned)
			w.do("Prometheus is stopped", (*world).losesPrometheus)
		})
	})
	w.do("the leader's pod is deleted while a scale-down is pending", func(w *world) {
		w.losesLeader(10, drillPoll, 20)
	})
	w.do("the leader's pod is killed while a scale-down is pending", func(w *world) {
		// A restart remembers a window that was not seen for three polls at most.
		w.losesLeader(8, 3*drillPoll, 40, "--grace-period=0", "--force")
	})
	w.do("the leader is cut off", (*world).cutsOffLeader)
	w.do("all of the operator is cut off", (*world).cutsOffAll)
	w.do("FC-37 the operator is down", (*world).withoutOperator)
	w.do("FC-38 the operator is rolled", (*world).rollsOperator)
	w.do("the API server restarts", (*world).restartsAPIServer)
	w.order(0)
}

// beside runs a part of a story beside others.
func (w *world) beside(name string, tell func(*world)) {
	w.Helper()
	w.do(name, func(w *world) {
		w.Parallel()
		tell(w)
	})
}

// carries brings the service to a count by the load that asks for it, and a little less
// so that the noise of a real measurement asks for no more.
func (w *world) carries(count int32) {
	w.Helper()
	w.asks(count)
	w.reaches(shop, service, count, 2*soon)
}

// asks sets the load that a count of replicas carries.
func (w *world) asks(count int32) {
	w.Helper()
	w.order(int(count)*perReplica - perReplica/2)
}

// behaves sets poll interval and scale-down window of the service's AutoScaler, in seconds.
func (w *world) behaves(poll, window int32) {
	w.Helper()
	w.change(builders.MakeAutoScaler(shop, service).Obj(), func(a *v1alpha1.AutoScaler) {
		a.Spec.PollIntervalSeconds, a.Spec.Behavior.ScaleDownStabilizationSeconds = poll, &window
	})
}

// settled waits until the operator is whole and has a leader.
func (w *world) settled() {
	w.Helper()
	w.rolledOut(systemNamespace, release)
	w.until("a pod to lead", soon, func(ctx context.Context) error {
		leader, err := w.leader(ctx)
		if err == nil {
			err = w.client.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: podOf(leader)}, &corev1.Pod{})
		}
		return err
	})
}

// leader is who holds the operator's lease.
func (w *world) leader(ctx context.Context) (string, error) {
	lease, err := w.clientset.CoordinationV1().Leases(systemNamespace).Get(ctx, controller.FieldManager, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		return *holder, nil
	}
	return "", errors.New("nobody leads")
}

// podOf is the name of the pod that a leader is in.
func podOf(leader string) string {
	pod, _, _ := strings.Cut(leader, "_")
	return pod
}

// follows waits until somebody else than before leads.
func (w *world) follows(before string) time.Duration {
	w.Helper()
	return w.until("another one to lead than "+before, soon, func(ctx context.Context) error {
		now, err := w.leader(ctx)
		if err == nil && now == before {
			err = errors.New("it is the same")
		}
		return err
	})
}

// refusesScale checks that the guard keeps a person from scaling a Deployment to 1, and
// tells them who holds it.
func (w *world) refusesScale(name, holder string) {
	w.Helper()
	_, err := w.run(w.tools.Path(binaries.Kubectl), "--namespace="+shop, "scale", "deployment", name, "--replicas=1")
	require.ErrorContains(w, err, "AutoScaler "+holder+" holds the replica count of Deployment "+shop+"/"+name)
	assert.ErrorContains(w, err, "pause it first")
}

// measuresAtMost and measuresMore wait until Prometheus has seen the load change.
func (w *world) measuresAtMost(items float64) {
	w.Helper()
	w.sees(func(now float64) bool { return now <= items })
}

func (w *world) measuresMore(items float64) {
	w.Helper()
	w.sees(func(now float64) bool { return now > items })
}

func (w *world) sees(enough func(items float64) bool) {
	w.Helper()
	w.until("the measured load to change", soon, func(ctx context.Context) error {
		items, err := w.measured(ctx, sumOfLoad)
		if err == nil && !enough(items) {
			err = fmt.Errorf("it is %v", items)
		}
		return err
	})
}

// bystander is a Deployment that nobody scales.
func (w *world) bystander() string {
	w.Helper()
	d := deployment(shop, "bystander-"+shortHash(w.Name()), 1)
	w.create(d)
	w.Cleanup(func() { w.remove(d) })
	w.rolledOut(shop, d.Name)
	return d.Name
}

// rolls restarts all pods of a Deployment of the shop.
func (w *world) rolls(name string) {
	w.Helper()
	w.kubectl("--namespace="+shop, "rollout", "restart", "deployment/"+name)
	w.rolledOut(shop, name)
}

// untouched checks that nobody changed a Deployment's count since a time.
func (w *world) untouched(namespace, name string, since time.Time) {
	w.Helper()
	assert.NotEmpty(w, w.record.since(namespace, name, time.Time{}), "its counts are recorded")
	assert.Empty(w, w.record.since(namespace, name, since), "nobody wrote a count")
}

// tries is what became of something that was done again and again.
type tries struct {
	done     int
	failures []string
	// last is when the last failure was seen.
	last time.Time
}

// lastAfter is how long after a time the last failure was; 0 if there was none.
func (t tries) lastAfter(begun time.Time) time.Duration {
	if t.last.IsZero() {
		return 0
	}
	return t.last.Sub(begun)
}

// again does something at an interval until it is told to stop.
func (w *world) again(every time.Duration, do func(context.Context) error) (stop func() tries) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	found := make(chan tries, 1)
	go func() {
		var t tries
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			err := do(ctx)
			if ctx.Err() != nil {
				found <- t
				return
			}
			t.done++
			if err != nil {
				t.last = time.Now()
				t.failures = append(t.failures, t.last.Format(time.TimeOnly)+" "+err.Error())
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	}()
	return func() tries {
		cancel()
		return <-found
	}
}

// admits creates an AutoScaler as a dry run: both webhooks are asked about it.
func (w *world) admits(ctx context.Context) error {
	a := builders.MakeAutoScaler(shop, "admitted").Target("nobody").Metric("items", "items", fmt.Sprint(perReplica)).Obj()
	return w.client.Create(ctx, a, client.DryRunAll)
}
