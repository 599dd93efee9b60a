//go:build integration

package integration

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	operatortest "example.com/platform/autoscale-operator/test/operator"
)

func TestANewAutoScalerSaysThatItsSamplesAreAwaited(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	h.unanswered = true

	result, err := h.reconcile("web")

	require.NoError(t, err)
	assert.Equal(t, 17*time.Second, result.RequeueAfter, "an answer wakes it; a poll and a timeout later it looks by itself")
	a := h.get("web")
	for _, c := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionAbleToScale, v1alpha1.ConditionScalingLimited} {
		h.requireCondition(a, c, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingSamples)
	}
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	assert.Empty(t, h.events.take())

	h.unanswered = false
	h.requireCondition(h.poll(), v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
	assert.Equal(t, int32(9), h.replicas())
}

func TestAfterARestartAStatusStandsUntilTheFirstSamplesAreThere(t *testing.T) {
	h := bound(t)
	before := h.get("web")
	h.restart()
	h.unanswered = true
	h.advance(15 * time.Second)

	assert.Equal(t, before, h.poll(), "not written at all")
}

func TestWhoIsNotEvaluatedAsksNothing(t *testing.T) {
	for name, change := range map[string]func(h *harness){
		"deleted":         func(h *harness) { require.NoError(h, h.client.Delete(h.ctx, h.get("web"))) },
		"an invalid spec": func(h *harness) { h.limit(5) },
		"without a Deployment": func(h *harness) {
			require.NoError(h, h.client.Delete(h.ctx, builders.Deployment(h.namespace, "web", 2)))
		},
		"without a profile": func(h *harness) { h.deleteProfile("total") },
	} {
		t.Run(name, func(t *testing.T) {
			h := bound(t)
			require.Len(t, h.sampler.measures, 1)
			change(h)
			h.advance(15 * time.Second)
			_, err := h.reconcile("web")
			require.NoError(t, err)
			assert.Empty(t, h.sampler.measures)
		})
	}
}

func TestADryRunAndAPausedAutoScalerGoOnAsking(t *testing.T) {
	h := bound(t)
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
	h.poll()
	assert.Len(t, h.sampler.measures, 1)
}

// fleet is the real program over two endpoints, with AutoScalers that are polled every
// 5 s: some on the one, many on the other.
type fleet struct {
	*testing.T
	client       client.Client
	fast, hanged *fixture.MetricServer
}

func startFleet(t *testing.T, some, many int) *fleet {
	t.Helper()
	f := &fleet{T: t, fast: fixture.NewMetricServer(t), hanged: fixture.NewMetricServer(t)}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	f.client, err = client.New(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	operatortest.Start(t, cp, operatortest.Options{Config: fmt.Sprintf(
		"endpoints:\n- {name: main, url: '%s'}\n- {name: other, url: '%s'}\n", f.fast.URL(), f.hanged.URL())})
	require.NoError(t, f.client.Create(t.Context(), namespace("production")))
	require.NoError(t, f.client.Create(t.Context(), builders.MakeMetricProfile("fast").Obj()))
	require.NoError(t, f.client.Create(t.Context(), builders.MakeMetricProfile("hanged").Endpoint("other").Obj()))
	f.fast.Value(200)
	f.hanged.Hang()
	for i := range many {
		f.add(fmt.Sprintf("hanged-%d", i), "hanged")
	}
	for i := range some {
		f.add(fmt.Sprintf("fast-%d", i), "fast")
	}
	return f
}

func (f *fleet) add(name, profile string) {
	f.Helper()
	require.NoError(f, f.client.Create(f.Context(), builders.Deployment("production", name, 2)))
	require.NoError(f, f.client.Create(f.Context(),
		builders.MakeAutoScaler("production", name).Target(name).Poll(5).Metric("load", profile, "100").Obj()))
}

// replicas counts the Deployments that have so many.
func (f *fleet) replicas(count int32) int {
	f.Helper()
	var list v1alpha1.AutoScalerList
	require.NoError(f, f.client.List(f.Context(), &list))
	n := 0
	for i := range list.Items {
		if s := list.Items[i].Status.AppliedReplicas; s != nil && *s == count {
			n++
		}
	}
	return n
}

func TestAnEndpointThatHangsDelaysNobodyElse(t *testing.T) {
	// Were a worker to wait for an answer, the 60 would have the 16 workers wait for
	// 60 x 2 s / 16 in every 5 s.
	const some, many = 5, 60
	f := startFleet(t, some, many)
	require.Eventually(t, func() bool { return f.saying(v1alpha1.ConditionReady, v1alpha1.ReasonManaging) == some },
		30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return f.saying(v1alpha1.ConditionMetricsAvailable, "Timeout") == many },
		60*time.Second, 50*time.Millisecond)

	f.fast.Value(700)
	began := time.Now()
	require.Eventually(t, func() bool { return f.replicas(7) == some }, 20*time.Second, 20*time.Millisecond)

	assert.Less(t, time.Since(began), 7*time.Second, "the answer of the poll of 5 s wakes them, wherever in it the load rose")
	assert.Equal(t, some, f.saying(v1alpha1.ConditionReady, v1alpha1.ReasonManaging))
}

// saying counts the AutoScalers whose condition has a reason.
func (f *fleet) saying(condition, reason string) int {
	f.Helper()
	var list v1alpha1.AutoScalerList
	require.NoError(f, f.client.List(f.Context(), &list))
	n := 0
	for i := range list.Items {
		if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, condition); c != nil && c.Reason == reason {
			n++
		}
	}
	return n
}
