//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

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
	key, nobody := client.ObjectKey{Name: "autoscale-operator"}, "https://127.0.0.1:1/"
	var validating admissionv1.ValidatingWebhookConfiguration
	var mutating admissionv1.MutatingWebhookConfiguration
	require.NoError(h, h.client.Get(h.ctx, key, &validating))
	require.NoError(h, h.client.Get(h.ctx, key, &mutating))
	servedV, servedM := validating.DeepCopy(), mutating.DeepCopy()
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.URL = &nobody
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.URL = &nobody
	}
	require.NoError(h, h.client.Update(h.ctx, &validating))
	require.NoError(h, h.client.Update(h.ctx, &mutating))
	// Each of the two refuses by itself what it is asked about.
	complete := builders.MakeAutoScaler(h.namespace, "probe").Metric("load", h.namespace+"-total", "1").Obj()
	down := func() bool {
		err := h.client.Create(h.ctx, complete.DeepCopy(), client.DryRunAll)
		return apierrors.IsInternalError(err)
	}
	require.Eventually(h, down, 20*time.Second, 50*time.Millisecond)
	h.Cleanup(func() {
		ctx := context.Background()
		require.NoError(h, h.client.Get(ctx, key, &validating))
		require.NoError(h, h.client.Get(ctx, key, &mutating))
		validating.Webhooks, mutating.Webhooks = servedV.Webhooks, servedM.Webhooks
		require.NoError(h, h.client.Update(ctx, &validating))
		require.NoError(h, h.client.Update(ctx, &mutating))
		require.Eventually(h, func() bool { return apierrors.IsInvalid(tryUnknownProfile(ctx, h.namespace)) }, 20*time.Second, 50*time.Millisecond)
	})
}

// The labels are those that other operators' charts exempt by.
func TestFC42_ALabelExemptsNobody(t *testing.T) {
	h := newHarness(t)
	labels := map[string]string{
		"control-plane": "autoscale-operator", "autoscale.example.com/ignore": "true", "admission.gatekeeper.sh/ignore": "true",
		"app.kubernetes.io/name": "autoscale-operator", "app.kubernetes.io/managed-by": "Helm",
	}
	ns := namespace(h.namespace)
	require.NoError(t, h.client.Get(h.ctx, client.ObjectKeyFromObject(ns), ns))
	for k, v := range labels {
		ns.Labels[k] = v
	}
	require.NoError(t, h.client.Update(h.ctx, ns))
	d, hpa := builders.Deployment(h.namespace, "web", 2), builders.HPA(h.namespace, "old", "web")
	a := h.autoscaler().Obj()
	for _, obj := range []client.Object{d, hpa, a} {
		obj.SetLabels(labels)
	}
	h.create(d)
	h.create(hpa)

	assert.ErrorContains(t, h.client.Create(h.ctx, a.DeepCopy()), `HorizontalPodAutoscaler "old"`)

	require.NoError(t, h.client.Delete(h.ctx, hpa))
	h.create(a)
	rival := builders.MakeAutoScaler(h.namespace, "rival").Metric("load", h.namespace+"-total", "100").Obj()
	rival.Labels = labels
	assert.ErrorContains(t, h.client.Create(h.ctx, rival), `held by AutoScaler "web"`)

	h.metrics.Value(400)
	hpa = builders.HPA(h.namespace, "late", "web")
	hpa.Labels = labels
	h.create(hpa)
	h.requireCondition(h.poll(), v1alpha1.ConditionBound, "False", v1alpha1.ReasonConflictingHPA)
	assert.Zero(t, h.scaleWrites.Load())
}
