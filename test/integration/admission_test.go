//go:build integration

package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAdmissionClaimsTheBindingForTheUIDThatIsStored(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	h.create(a)

	b := h.binding()
	assert.Equal(t, a.UID, b.Spec.OwnerUID)
	assert.Equal(t, "web", b.Spec.OwnerRef.Name)
	assert.Equal(t, int64(1), b.Spec.Epoch)
	assert.Empty(t, b.Status.Phase, "a claim is one write; no phase is as good as Pending")
	assert.NotEmpty(t, b.Spec.ClaimedBy, "the user of the request")
	assert.NotEqual(t, "autoscale-operator", b.Spec.ClaimedBy)

	h.poll()
	b = h.binding()
	assert.Equal(t, v1alpha1.PhaseHeld, b.Status.Phase, "confirmed by the reconciler")
	assert.Len(t, b.Status.Transitions, 2)
}

func TestASecondAutoScalerOfADeploymentIsRefusedAndToldWhoHoldsIt(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())

	err := h.client.Create(h.ctx, builders.MakeAutoScaler(h.namespace, "second").Metric("load", h.namespace+"-total", "100").Obj())

	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.targetRef.name")
	assert.ErrorContains(t, err, `held by AutoScaler "web"`)
	assert.ErrorContains(t, err, "set its dryRun", "the way out is named")
}

func TestAnAutoScalerBesideAnHPAIsRefused(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.HPA(h.namespace, "old", "web"))

	err := h.client.Create(h.ctx, h.autoscaler().Obj())

	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, `HorizontalPodAutoscaler "old"`)
	assert.Empty(t, h.bindings(), "nothing is claimed for what is refused")
}

func TestAnHPAThatIsBeingDeletedIsNoConflict(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	hpa := builders.HPA(h.namespace, "old", "web")
	hpa.Finalizers = []string{"example.com/wait"}
	h.create(hpa)
	require.NoError(t, h.client.Delete(h.ctx, hpa))

	assert.NoError(t, h.client.Create(h.ctx, h.autoscaler().Obj()))
}

func TestAllErrorsOfAnAutoScalerComeAtOnce(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.HPA(h.namespace, "old", "web"))
	a := builders.MakeAutoScaler(h.namespace, "web").Bounds(2, 5000).Metric("load", "missing", "100").Obj()

	err := h.client.Create(h.ctx, a)

	for _, want := range []string{"spec.maxReplicas", "at most 1000", "spec.metrics[0].metricProfileRef", `"missing"`, `HorizontalPodAutoscaler "old"`} {
		assert.ErrorContains(t, err, want)
	}
}

func TestAProfileThatDoesNotAllowTheNamespaceIsRefused(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	p := builders.MakeMetricProfile(h.namespace + "-theirs").Allow("another-namespace").Obj()
	h.create(p)

	err := h.client.Create(h.ctx, builders.MakeAutoScaler(h.namespace, "web").Metric("load", p.Name, "100").Obj())

	assert.ErrorContains(t, err, "does not allow namespace")
}

func TestATargetThatDoesNotExistYetIsAdmittedAndWaitedFor(t *testing.T) {
	h := newHarness(t)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(900)
	a := h.poll()
	h.requireCondition(a, v1alpha1.ConditionTargetAvailable, "False", v1alpha1.ReasonTargetNotFound)

	h.deployment(2)
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, int32(9), h.replicas())
}

func TestAnUpdateMayKeepWhatIsWrongAndNotAddToIt(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.create(h.autoscaler().Bounds(2, 5000).Obj()) // above the platform's bound
	h.enableWebhooks()

	h.edit(func(a *v1alpha1.AutoScaler) { a.Labels = map[string]string{"team": "a"} })
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas = 3 })
	a := h.get("web")
	a.Spec.Metrics[0].MetricProfileRef = "missing"
	err := h.client.Update(h.ctx, a)
	assert.ErrorContains(t, err, "metricProfileRef")
	assert.NotContains(t, err.Error(), "maxReplicas")

	assert.NoError(t, h.client.Delete(h.ctx, h.get("web")), "a delete always passes")
}

func TestPointingAnAutoScalerAtAHeldDeploymentIsRefused(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.Deployment(h.namespace, "api", 2))
	h.create(h.autoscaler().Obj())
	other := builders.MakeAutoScaler(h.namespace, "api").Target("api").Metric("load", h.namespace+"-total", "100").Obj()
	h.create(other)

	other.Spec.TargetRef.Name = "web"
	assert.ErrorContains(t, h.client.Update(h.ctx, other), `held by AutoScaler "web"`)

	shadow := builders.MakeAutoScaler(h.namespace, "shadow").DryRun().Metric("load", h.namespace+"-total", "100").Obj()
	h.create(shadow)
	shadow.Spec.DryRun = false
	assert.ErrorContains(t, h.client.Update(h.ctx, shadow), `held by AutoScaler "web"`, "switching a dry run on asks for the claim")
}

func TestABadMetricProfileIsRefused(t *testing.T) {
	h := newHarness(t)
	for name, tc := range map[string]struct {
		profile *v1alpha1.MetricProfile
		want    []string
	}{
		"unknown endpoint":      {builders.MakeMetricProfile("bad").Endpoint("other").Obj(), []string{"spec.endpoint", `"main"`}},
		"unknown placeholder":   {builders.MakeMetricProfile("bad").Query("sum(up{pod=$pod})").Obj(), []string{"spec.query", "$pod", "$namespace"}},
		"quoted placeholder":    {builders.MakeMetricProfile("bad").Query(`sum(up{namespace="$namespace"})`).Obj(), []string{"spec.query", "quote"}},
		"unterminated literal":  {builders.MakeMetricProfile("bad").Query(`sum(up{a="b})`).Obj(), []string{"spec.query"}},
		"a URL for an endpoint": {builders.MakeMetricProfile("bad").Endpoint("http://10.0.0.1").Obj(), []string{"spec.endpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := h.client.Create(h.ctx, tc.profile)
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestFC30_OfTwoCreationsAtOnceExactlyOneIsAdmitted(t *testing.T) {
	const rounds = 500
	h := newHarness(t)
	profile := h.profile("total")
	for round := range rounds {
		target := fmt.Sprintf("web-%d", round)
		var admitted []string
		var mu sync.Mutex
		var both sync.WaitGroup
		start := make(chan struct{})
		for _, name := range []string{"a", "b"} {
			both.Go(func() {
				a := builders.MakeAutoScaler(h.namespace, fmt.Sprintf("%s-%d", name, round)).Target(target).Metric("load", profile, "100").Obj()
				<-start
				err := h.client.Create(h.ctx, a)
				if err == nil {
					mu.Lock()
					admitted = append(admitted, a.Name)
					mu.Unlock()
					return
				}
				assert.ErrorContains(t, err, fmt.Sprintf("Deployment %q is", target))
			})
		}
		close(start)
		both.Wait()
		require.Len(t, admitted, 1, "round %d: admitted %v", round, admitted)
		var b v1alpha1.ScaleBinding
		require.NoError(t, h.client.Get(h.ctx, h.key(target), &b))
		require.Equal(t, admitted[0], b.Spec.OwnerRef.Name)
	}
}
