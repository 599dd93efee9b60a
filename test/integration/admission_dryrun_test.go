//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestFC41_ADryRunWritesNothingAndStillTellsTheConflict(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	first := h.autoscaler()

	require.NoError(t, h.client.Create(h.ctx, first.Obj(), client.DryRunAll))
	require.NoError(t, h.apply(first.Obj(), client.DryRunAll))
	assert.Empty(t, h.bindings())

	h.create(first.Obj())
	before := h.binding()
	second := builders.MakeAutoScaler(h.namespace, "second").Metric("load", h.namespace+"-total", "100").Obj()
	assert.ErrorContains(t, h.client.Create(h.ctx, second, client.DryRunAll), `held by AutoScaler "web"`)

	moved := h.get("web")
	moved.Spec.TargetRef.Name = "api"
	require.NoError(t, h.client.Update(h.ctx, moved, client.DryRunAll))
	assert.Equal(t, before, h.binding())
	assert.Len(t, h.bindings(), 1)
}

func TestFC41_AClaimWhoseObjectIsRefusedLaterIsReapedAfterTheGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		refuse func(h *harness)
		is     func(error) bool
	}{
		"by another webhook": {(*harness).anotherWebhookRefuses, apierrors.IsInternalError},
		"by a quota":         {(*harness).quotaIsUsedUp, apierrors.IsForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.deployment(2)
			a := h.autoscaler().Obj()
			tc.refuse(h)
			// A refusal may come into force a moment after it was set up.
			require.Eventually(t, func() bool { return tc.is(h.client.Create(h.ctx, a.DeepCopy(), client.DryRunAll)) },
				20*time.Second, 50*time.Millisecond)

			err := h.client.Create(h.ctx, a)

			require.True(t, tc.is(err), "%v", err)
			require.True(t, apierrors.IsNotFound(h.client.Get(h.ctx, h.key("web"), a)))
			require.False(t, h.binding().Free(), "the claim was made before")

			result, err := h.reconcile("web")
			require.NoError(t, err)
			require.Positive(t, result.RequeueAfter, "within the grace its owner may still be on its way")
			require.False(t, h.binding().Free())

			h.clock.SetTime(time.Now().Add(binding.DefaultGrace + time.Second))
			_, err = h.reconcile("web")
			require.NoError(t, err)
			assert.True(t, h.binding().Free())
		})
	}
}

// anotherWebhookRefuses registers one that nobody serves.
func (h *harness) anotherWebhookRefuses() {
	h.Helper()
	nobody, fail, none := "https://127.0.0.1:1/", admissionv1.Fail, admissionv1.SideEffectClassNone
	config := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "another-of-" + h.namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:         "another.example.com",
			ClientConfig: admissionv1.WebhookClientConfig{URL: &nobody},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{"autoscale.example.com"}, APIVersions: []string{"*"}, Resources: []string{"autoscalers"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: h.namespace}},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	h.create(config)
	h.Cleanup(func() { _ = h.client.Delete(context.Background(), config) })
}

// quotaIsUsedUp allows no AutoScalers. Without its controller the status is the
// test's to write.
func (h *harness) quotaIsUsedUp() {
	h.Helper()
	none := corev1.ResourceList{"count/autoscalers.autoscale.example.com": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	}
	h.create(quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	require.NoError(h, h.client.Status().Update(h.ctx, quota))
}
