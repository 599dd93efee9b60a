//go:build integration

package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server knows better than any copy of its schemas: each object is applied as a
// dry run, in which a field that it does not know is an error.
func TestTheAPIServerTakesEveryObject(t *testing.T) {
	h := newHelm(t, both[0])
	w := newWorld(t, h)
	for _, namespace := range []string{releaseNamespace, "shop", "production", "monitoring"} {
		w.namespace(namespace)
	}
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	require.NoError(t, w.client.Create(t.Context(), restricted))
	for _, namespace := range []string{releaseNamespace, restricted.Name} {
		require.NoError(t, w.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: chartName + "-test"}}))
	}
	for set, path := range valueSets(t) {
		t.Run(set, func(t *testing.T) {
			for _, o := range decode(t, h.template(t, "--values="+path)) {
				if o.GetKind() == "Pod" && set == "full" {
					continue // Its account is not there.
				}
				err := w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
				assert.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
				if o.GetKind() != "Deployment" || set == "full" { // full is on the node's network
					continue
				}
				var d appsv1.Deployment
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d))
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: restricted.Name, Name: "manager"}, Spec: d.Spec.Template.Spec}
				pod.Spec.ServiceAccountName = chartName + "-test"
				assert.NoError(t, w.client.Create(t.Context(), pod, client.DryRunAll), "a pod in a restricted namespace")
			}
		})
	}
	assert.Empty(t, w.warnings.all())
}
