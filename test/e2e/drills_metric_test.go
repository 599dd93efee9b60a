//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/node"
)

// losesAPod shows that a pod is the ReplicaSet's business.
func (w *world) losesAPod() {
	w.carries(4)
	pods := w.servants()
	require.Len(w, pods, 4)
	since := time.Now()
	require.NoError(w, w.client.Delete(w.Context(), &pods[0]))

	took := w.until("another pod to be Ready", soon, func(context.Context) error {
		for _, p := range w.record.podsSince(since) {
			if !p.ready.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("there are %+v", w.record.podsSince(since))
	})
	w.throughout("the load is the same", 2*drillPoll*time.Second, w.keeps(service, 4))
	w.reaches(shop, service, 4, soon)
	assert.Len(w, w.record.podsSince(since), 1)
	w.untouched(shop, service, since)
	w.report("- A pod of the service is deleted: another one is Ready after %.1f s; the operator wrote nothing.", took.Seconds())
}

// servants are the pods of the service that are not about to end.
func (w *world) servants() []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	require.NoError(w, w.client.List(w.Context(), &list, client.InNamespace(shop), client.MatchingLabels{"app": service}))
	var alive []corev1.Pod
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			alive = append(alive, list.Items[i])
		}
	}
	return alive
}

// losesPrometheus changes the load while nobody measures it. The Prometheus that comes
// back has an empty store.
func (w *world) losesPrometheus() {
	w.carries(8)
	scale := func(replicas string) {
		w.kubectl("--namespace="+monitoring, "scale", "deployment/prometheus", "--replicas="+replicas)
	}
	since := time.Now()
	scale("0")
	w.Cleanup(func() { scale("1"); w.rolledOut(monitoring, "prometheus") })
	message := w.says(shop, service, v1alpha1.ConditionMetricsAvailable, prometheus.ReasonUnreachable)
	w.says(shop, service, v1alpha1.ConditionScalingLimited, v1alpha1.ReasonAllMetricsInvalid)
	w.asks(3)
	w.throughout("what is not seen is no reason to go", aWindow, w.keeps(service, 8))
	w.asks(14)
	w.throughout("nor to come", 2*drillPoll*time.Second, w.keeps(service, 8))
	w.asks(8)
	away := time.Since(since)

	scale("1")
	w.rolledOut(monitoring, "prometheus")
	back := time.Now()
	// What has failed is asked again after a while, when all of the load may be known. Another
	// query is asked at once.
	w.kubectl("patch", "metricprofile", "items", "--type=merge", "--patch="+fmt.Sprintf(`{"spec":{"query":%q}}`, "1 * "+load))
	w.says(shop, service, v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonSamplesValid)
	took := time.Since(back)
	lowest := int32(8)
	w.throughout("its first answers know of a part of the load only", aWindow, func(ctx context.Context) error {
		a, err := w.autoscaler(ctx, shop, service)
		if err != nil {
			return err
		}
		lowest = min(lowest, *a.Status.RecommendedReplicas)
		return w.keeps(service, 8)(ctx)
	})
	assert.Less(w, lowest, int32(8), "there were such answers")
	w.untouched(shop, service, since)
	w.carries(10)
	w.report("- Prometheus is stopped for %.0f s while the load falls and rises: 8 replicas throughout, `Unreachable: %s`. "+
		"Started with an empty store, it has a valid sample after %.1f s, and its first answers ask for %d replicas; nothing is removed, then 8 → 10 with the load.",
		away.Seconds(), message, took.Seconds(), lowest)
}

// cordoned shows that pods which find no node make nobody ask for more of them.
func (w *world) cordoned() {
	w.ours("all nodes are cordoned")
	w.carries(4)
	since := time.Now()
	w.kubectl("cordon", node.Name)
	w.Cleanup(func() { w.kubectl("uncordon", node.Name) })
	w.asks(8)
	w.until("8 to be wanted", soon, w.keeps(service, 8))
	const while = 3 * drillPoll
	w.throughout("the load asks for no more", while*time.Second, w.keeps(service, 8))
	_, ready, err := w.counts(w.Context(), shop, service)
	require.NoError(w, err)
	assert.EqualValues(w, 4, ready)
	a, err := w.autoscaler(w.Context(), shop, service)
	require.NoError(w, err)
	assert.Equal(w, new(int32(8)), a.Status.AppliedReplicas)
	assert.Equal(w, new(int32(4)), a.Status.ReadyReplicas, "the status tells that they are not there")
	pending := 0
	for _, pod := range w.servants() {
		if pod.Status.Phase == corev1.PodPending {
			pending++
		}
	}
	assert.Equal(w, 4, pending)

	begun := time.Now()
	w.kubectl("uncordon", node.Name)
	w.reaches(shop, service, 8, soon)
	changes := w.record.since(shop, service, since)
	w.report("- The node is cordoned: 4 → 8 replicas in %d writes, 4 of them Pending, and no further for %d s; uncordoned, all are Ready after %.1f s.",
		len(changes), while, time.Since(begun).Seconds())
}
