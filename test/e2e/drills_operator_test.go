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
)

// withoutOperator takes the operator away and goes on with the life of a cluster.
func (w *world) withoutOperator() {
	w.ours("it scales the cluster's DNS and restarts its API server")
	bystander := w.bystander()
	leaving := builders.MakeAutoScaler(shop, "leaving").Target(bystander).Metric("items", "items", fmt.Sprint(perReplica)).DryRun().Obj()
	w.create(leaving)
	w.Cleanup(func() { w.remove(leaving) })
	w.carries(10)
	w.settled()
	w.Cleanup(func() { w.operatorsAre(2) })
	w.operatorsAre(0)
	since := time.Now()

	w.do("the cluster's DNS is scaled", func(w *world) {
		for _, count := range []string{"2", "1"} {
			w.kubectl("--namespace=kube-system", "scale", "deployment/coredns", "--replicas="+count)
			w.rolledOut("kube-system", "coredns")
		}
	})
	w.do("an HPA is created, and a Node, and both go", func(w *world) {
		hpa := builders.HPA("kube-system", "drill", "coredns")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "drill"}}
		w.create(hpa, node)
		w.remove(hpa, node)
	})
	w.do("Deployments are rolled out, the held one too", func(w *world) {
		w.rolls(bystander)
		w.rolls(service)
		w.reaches(shop, service, 10, soon)
	})
	w.do("the API server restarts", func(w *world) {
		w.apiServerRestarts()
		w.rolls(bystander)
	})
	w.do("the held count is kept", func(w *world) {
		// An API server that has just started has not read the ScaleGuards yet.
		took := w.until("the guard to be back", soon, func(context.Context) error {
			if said, _ := w.scalesByHand(shop, service); !strings.Contains(said, "holds the replica count") {
				return errors.New(said)
			}
			return nil
		})
		w.refusesScale(service, service)
		w.report("- FC-37 The guard is back %.1f s after the API server, without the operator", took.Seconds())
	})
	w.do("specs of AutoScalers wait, and nothing else of them", func(w *world) { w.changesWithoutOperator(leaving) })
	w.untouched(shop, service, since)
	away := time.Since(since)

	begun := time.Now()
	w.operatorsAre(2)
	w.settled()
	back := time.Since(begun)
	w.carries(12)
	w.report("- FC-37 The operator is at 0 for %.0f s: the DNS is scaled up and down, an HPA and a Node come and go, Deployments roll out, the API server restarts; "+
		"the held count stays 10 and a person's scale is refused. At 2 again, both are Ready after %.1f s, and it scales 10 → 12 with the load.", away.Seconds(), back.Seconds())
}

// operatorsAre scales the operator, and waits until it has that many pods and no others.
func (w *world) operatorsAre(count int) {
	w.Helper()
	w.kubectl("--namespace="+systemNamespace, "scale", "deployment/"+release, fmt.Sprintf("--replicas=%d", count))
	w.rolledOut(systemNamespace, release)
	if count == 0 {
		w.kubectl("--namespace="+systemNamespace, "wait", "pods", "--selector="+podLabel+"="+release, "--for=delete", "--timeout="+soon.String())
	}
}

// changesWithoutOperator changes AutoScalers in the ways that need nobody's leave, and in
// those that do.
func (w *world) changesWithoutOperator(leaving *v1alpha1.AutoScaler) {
	w.Helper()
	a, err := w.autoscaler(w.Context(), shop, service)
	require.NoError(w, err)
	a.Spec.MaxReplicas++
	err = w.client.Update(w.Context(), a)
	require.ErrorContains(w, err, "failed calling webhook")
	require.ErrorContains(w, err, release+"-webhook."+systemNamespace+".svc", "it says who does not answer")
	w.report("- FC-37 A changed spec is refused meanwhile: `%v`", err)
	require.ErrorContains(w, w.admits(w.Context()), "failed calling webhook")

	w.kubectl("--namespace="+shop, "label", "autoscaler", service, "drill=true")
	a, err = w.autoscaler(w.Context(), shop, service)
	require.NoError(w, err)
	require.NoError(w, w.client.Status().Update(w.Context(), a))
	w.remove(leaving)
}

// apiServerRestarts stops the API server, starts it again, and gives how long it took.
func (w *world) apiServerRestarts() time.Duration {
	w.Helper()
	begun := time.Now()
	require.NoError(w, w.node.Cluster().StopAPIServer())
	require.NoError(w, w.node.Cluster().StartAPIServer(w.Context()))
	w.until("the API server to answer", soon, func(ctx context.Context) error {
		return w.client.Get(ctx, client.ObjectKey{Name: shop}, &corev1.Namespace{})
	})
	return time.Since(begun)
}

// rollsOperator restarts all replicas while AutoScalers are created all the time.
func (w *world) rollsOperator() {
	w.settled()
	before := w.operators(release, systemNamespace)
	stop := w.again(200*time.Millisecond, w.admits)
	begun := time.Now()
	w.kubectl("--namespace="+systemNamespace, "rollout", "restart", "deployment/"+release)
	w.rolledOut(systemNamespace, release)
	w.until("the pods of before to be gone", soon, func(ctx context.Context) error {
		for i := range before {
			err := w.client.Get(ctx, client.ObjectKeyFromObject(&before[i]), &corev1.Pod{})
			if client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("%s is there: %w", before[i].Name, err)
			}
		}
		return nil
	})
	took := time.Since(begun)
	admitted := stop()
	assert.Empty(w, admitted.failures)
	assert.Greater(w, admitted.done, int(took.Seconds()), "they were created all the time")
	w.settled()
	w.report("- FC-38 The operator is rolled: %.0f s, and %d AutoScalers were created meanwhile, without a failure.", took.Seconds(), admitted.done)
}

// restartsAPIServer restarts the API server under a leader that is at work.
func (w *world) restartsAPIServer() {
	w.ours("its API server is restarted")
	w.carries(12)
	w.settled()
	since := time.Now()
	away := w.apiServerRestarts()
	up := time.Now()
	w.until("the lease to be renewed", soon, func(ctx context.Context) error {
		lease, err := w.clientset.CoordinationV1().Leases(systemNamespace).Get(ctx, controller.FieldManager, metav1.GetOptions{})
		if err == nil && (lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: up})) {
			err = fmt.Errorf("it is of %v", lease.Spec.RenewTime)
		}
		return err
	})
	led := time.Since(up)
	w.settled()
	w.throughout("nothing is removed", aWindow, w.keeps(service, 12))
	w.untouched(shop, service, since)
	begun := time.Now()
	w.carries(14)
	w.report("- The API server restarts under the operator: away for %.1f s, a leader %.1f s later; nothing is removed, then 12 → 14 after %.0f s.",
		away.Seconds(), led.Seconds(), time.Since(begun).Seconds())
}
