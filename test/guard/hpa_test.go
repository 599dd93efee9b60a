//go:build integration

package guard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/builders"
)

const hpaPolicy = "autoscale-guard-horizontalpodautoscalers"

func (w *world) hpa(name, deployment string) *autoscalingv2.HorizontalPodAutoscaler {
	return builders.HPA(w.namespace, name, deployment)
}

func TestANewHPAForAHeldDeploymentIsRefused(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web-scaler")
	u := w.as(person)

	for _, apiVersion := range []string{"apps/v1", "apps/v1beta1", "extensions/v1beta1"} {
		t.Run("apiVersion "+apiVersion, func(t *testing.T) {
			hpa := w.hpa("web", "web")
			hpa.Spec.ScaleTargetRef.APIVersion = apiVersion
			err := u.Create(t.Context(), hpa)
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			requireRefused(t, w, err.Error(), hpaPolicy, "web", "web-scaler")
		})
	}
	t.Run("by autoscaling/v1", func(t *testing.T) {
		err := u.Create(t.Context(), &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 3,
			},
		})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		requireRefused(t, w, err.Error(), hpaPolicy, "web", "web-scaler")
	})
	t.Run("by kubectl autoscale", func(t *testing.T) {
		output, err := w.kubectl("autoscale", "deployment/web", "--max=5")
		require.Error(t, err, "it tries autoscaling/v1 too, and prints what it thinks of that: %s", output)
		assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), w.key("web"), w.hpa("web", "web"))))
	})
	t.Run("not of another kind or group", func(t *testing.T) {
		for apiVersion, kind := range map[string]string{"apps/v1": "StatefulSet", "example.com/v1": "Deployment"} {
			hpa := w.hpa("web", "web")
			hpa.Spec.ScaleTargetRef.APIVersion, hpa.Spec.ScaleTargetRef.Kind = apiVersion, kind
			assert.NoError(t, u.Create(t.Context(), hpa, client.DryRunAll))
		}
	})
	t.Run("not for another Deployment", func(t *testing.T) {
		assert.NoError(t, u.Create(t.Context(), w.hpa("web", "my-web")))
	})
}

func TestAnHPAMayBeChangedAndDeletedButNotMovedOntoAHeldDeployment(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	u := w.as(person)
	old, other := w.hpa("old", "web"), w.hpa("other", "api")
	old.Finalizers = []string{"example.com/last-rites"}
	require.NoError(t, u.Create(t.Context(), old))
	require.NoError(t, u.Create(t.Context(), other))
	w.hold("web=web-scaler")

	// Patches, because the HPA controller writes their status all the time.
	patch := func(u *user, hpa *autoscalingv2.HorizontalPodAutoscaler, patch string) error {
		return u.Patch(t.Context(), hpa, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	err := patch(u, other, `{"spec":{"scaleTargetRef":{"name":"web"}}}`)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	requireRefused(t, w, err.Error(), hpaPolicy, "web", "web-scaler")

	// The one that was there before stays as it was stored, and may be tended.
	require.NoError(t, patch(u, old, `{"spec":{"maxReplicas":17}}`))
	require.NoError(t, patch(u, old, `{"spec":{"scaleTargetRef":{"apiVersion":"extensions/v1beta1"}}}`), "this still is the same Deployment")
	require.NoError(t, patch(u, old, `{"metadata":{"labels":{"team":"shop"}}}`))
	require.NoError(t, w.as(hpaController).Status().Patch(t.Context(), old, client.RawPatch(types.MergePatchType, []byte(`{"status":{"desiredReplicas":2}}`))))
	require.NoError(t, u.Delete(t.Context(), old))
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(old), old))
	require.NotNil(t, old.DeletionTimestamp)
	require.NoError(t, patch(u, old, `{"metadata":{"finalizers":null}}`))
	assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), client.ObjectKeyFromObject(old), old)))
	assert.Empty(t, u.warned())
}

// Labels are for whoever may write the object; they exempt nothing.
func TestFC42_LabelsExemptNothing(t *testing.T) {
	labels := map[string]string{
		"control-plane": "controller-manager", "autoscale.example.com/ignore": "true", "app.kubernetes.io/name": "autoscale-operator",
		"admission.autoscale.example.com/ignore": "true", "kubernetes.io/metadata.name": "kube-system",
	}
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web-scaler")
	u := w.as(person)

	output, err := w.kubectl("label", "namespace", w.namespace, "control-plane=x", "autoscale.example.com/ignore=true",
		"admission.autoscale.example.com/ignore=true")
	require.NoError(t, err, output)
	d := w.get("web")
	d.Labels = labels
	require.NoError(t, u.Update(t.Context(), d))

	assert.True(t, apierrors.IsForbidden(w.putScale(u, "web", 9)))
	hpa := w.hpa("web", "web")
	hpa.Labels = labels
	assert.True(t, apierrors.IsForbidden(u.Create(t.Context(), hpa)))
	require.NoError(t, w.patch(u, "web", `{"spec":{"replicas":9}}`))
	assert.EqualValues(t, 3, w.replicas("web"))
}
