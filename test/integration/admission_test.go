//go:build integration

package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	assert.Equal(t, v1alpha1.PhasePending, b.Status.Phase)
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

func TestFC41_ADryRunWritesNothingAndStillTellsTheConflict(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	first := h.autoscaler()

	require.NoError(t, h.client.Create(h.ctx, first.Obj(), client.DryRunAll))
	assert.Empty(t, h.bindings())

	h.create(first.Obj())
	second := builders.MakeAutoScaler(h.namespace, "second").Metric("load", h.namespace+"-total", "100").Obj()
	assert.ErrorContains(t, h.client.Create(h.ctx, second, client.DryRunAll), `held by AutoScaler "web"`)
}

func TestFC41_AClaimWhoseObjectWasRefusedLaterIsReapedAfterTheGrace(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	// A claim as a create leaves it that a later admission step refused.
	lost := h.autoscaler().UID("never-stored").Obj()
	lost.Name = "lost"
	_, err := h.reconciler.Arbiter.Claim(h.ctx, claimant(lost))
	require.NoError(t, err)

	result, err := h.reconcile("lost")
	require.NoError(t, err)
	require.Positive(t, result.RequeueAfter, "within the grace its owner may still be on its way")
	require.Equal(t, lost.UID, h.binding().Spec.OwnerUID)

	h.advance(result.RequeueAfter + time.Second)
	_, err = h.reconcile("lost")
	require.NoError(t, err)
	assert.True(t, h.binding().Free())
}

func TestCreatingANameThatExistsEndsInAlreadyExists(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())

	again := builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "100").Obj()
	assert.True(t, apierrors.IsAlreadyExists(h.client.Create(h.ctx, again)))
	assert.Equal(t, int64(1), h.binding().Spec.Epoch)
}

func TestAGeneratedNameIsClaimedUnderTheFinalName(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	a.Name, a.GenerateName = "", "web-"
	h.create(a)

	assert.Equal(t, a.Name, h.binding().Spec.OwnerRef.Name)
	assert.Equal(t, a.UID, h.binding().Spec.OwnerUID)
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

func TestCreatingANameThatExistsBesideALateHPAEndsInAlreadyExists(t *testing.T) {
	h := bound(t)
	h.create(builders.HPA(h.namespace, "late", "web"))
	again := builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "100").Obj()
	err := h.client.Create(h.ctx, again)
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

func TestServerSideApplyClaimsAndIsRefusedLikeACreate(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	apply := func(name string, highest int64) error {
		u := plain(t, a.DeepCopy(), func(spec map[string]any) { spec["maxReplicas"] = highest })
		u.SetName(name)
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		return h.client.Apply(h.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"))
	}
	require.NoError(t, apply("web", 20))
	require.Equal(t, h.get("web").UID, h.binding().Spec.OwnerUID)
	require.NoError(t, apply("web", 20))
	require.NoError(t, apply("web", 30))
	assert.ErrorContains(t, apply("second", 20), `held by AutoScaler "web"`)
}

func TestFC37_WithTheOperatorDownOnlyChangesOfASpecWait(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	a.Finalizers = []string{"example.com/wait"}
	h.create(a)
	h.takeWebhooksDown()

	h.edit(func(a *v1alpha1.AutoScaler) { a.Labels = map[string]string{"team": "a"} })
	require.NoError(t, h.client.Status().Update(h.ctx, h.get("web")))
	a = h.get("web")
	a.Spec.MaxReplicas++
	require.Error(t, h.client.Update(h.ctx, a), "a new spec must be checked")
	require.NoError(t, h.client.Delete(h.ctx, h.get("web")))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Finalizers = nil })
	assert.True(t, apierrors.IsNotFound(h.client.Get(h.ctx, h.key("web"), &v1alpha1.AutoScaler{})))
}

// takeWebhooksDown points the webhooks at a port where nobody answers, until the
// test ends.
func (h *harness) takeWebhooksDown() {
	h.Helper()
	key := client.ObjectKey{Name: "autoscale-operator"}
	var config admissionv1.ValidatingWebhookConfiguration
	require.NoError(h, h.client.Get(h.ctx, key, &config))
	serving := config.DeepCopy()
	nobody := "https://127.0.0.1:1/validate"
	for i := range config.Webhooks {
		config.Webhooks[i].ClientConfig.URL = &nobody
	}
	require.NoError(h, h.client.Update(h.ctx, &config))
	down := func() bool { return apierrors.IsInternalError(tryUnknownProfile(h.ctx, h.namespace)) }
	require.Eventually(h, down, 20*time.Second, 50*time.Millisecond)
	h.Cleanup(func() {
		ctx := context.Background()
		var config admissionv1.ValidatingWebhookConfiguration
		require.NoError(h, h.client.Get(ctx, key, &config))
		config.Webhooks = serving.Webhooks
		require.NoError(h, h.client.Update(ctx, &config))
		require.Eventually(h, func() bool { return apierrors.IsInvalid(tryUnknownProfile(ctx, h.namespace)) }, 20*time.Second, 50*time.Millisecond)
	})
}
