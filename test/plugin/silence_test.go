//go:build integration

package plugin

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
)

// TestExplainWhereTheOperatorIsDown is what one sees of a status that an operator has left
// behind: 9 replicas, a load for 4, and nobody who goes on.
func TestExplainWhereTheOperatorIsDown(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	w := &world{T: t, controlPlane: cp, plugin: build(t)}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	w.client, err = client.New(cp.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.reader = w.user(reader, rbacv1.PolicyRule{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{"get", "list", "watch"}})
	a := builders.MakeAutoScaler(namespace, "web").Metric("total", "total", "100").Poll(15).Steps(4, 2).Window(60).Obj()
	w.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		builders.MakeMetricProfile("total").Obj(), builders.Deployment(namespace, "web", 9), a,
	)
	last := time.Now().Add(-5 * time.Minute)
	a.Status = v1alpha1.AutoScalerStatus{
		TargetUID: "d", TargetReplicas: new(int32(9)), AppliedReplicas: new(int32(9)), LastSuccessfulScaleTime: new(metav1.NewTime(last)),
		LastDecision: &v1alpha1.DecisionTrace{
			Time: metav1.NewTime(last), Current: 9, MinReplicas: 2, MaxReplicas: 20, Result: 9, Rule: "ScaleDownStabilization",
			Metrics: []v1alpha1.MetricTrace{{Name: "total", Validity: "Valid", Raw: 4, Tolerated: 4, Bounded: 4, Stabilized: 9, Limited: 9}},
		},
		Memory: &v1alpha1.DecisionMemory{TargetUID: "d", ObservedTime: metav1.NewMicroTime(last)},
	}
	require.NoError(t, w.client.Status().Update(t.Context(), a))

	said := w.types("explain", "web")

	assert.Zero(t, said.code)
	assert.Regexp(t, `^The operator has not looked for 5m\d*s?, and should each 15 s: it may be down`, said.out)
	assert.Regexp(t, `Next +down to 7 once the operator is back, which has been due for (3m\d+s|4m\d*s?), unless`, said.out)
	assert.Regexp(t, `Last write +to 9, 5m\d*s? ago`, said.out)

	t.Run("without the CRDs", func(t *testing.T) { w.at(t).looksWithoutCRDs() })
}

// looksWithoutCRDs shows what is said of a cluster that does not have the operator's kinds.
func (w *world) looksWithoutCRDs() {
	for _, resource := range []string{"autoscalers", "scalebindings"} {
		crd := &unstructured.Unstructured{}
		crd.SetName(resource + "." + v1alpha1.GroupVersion.Group)
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		require.NoError(w, w.client.Delete(w.Context(), crd))
		require.Eventually(w, func() bool {
			return apierrors.IsNotFound(w.client.Get(w.Context(), client.ObjectKeyFromObject(crd), crd))
		}, within, lookEvery)
	}
	const absent = "the cluster has no AutoScalers: the operator's CRDs are not installed there (see docs/install.md)"
	require.EventuallyWithT(w, func(t *assert.CollectT) {
		said := w.types("explain", "web")
		assert.Equal(t, 2, said.code)
		assert.Contains(t, said.complaint, "error: "+absent)
	}, within, time.Second, "the API server goes on telling of them for a moment")

	said := w.types("audit", "-n", namespace)
	assert.Zero(w, said.code)
	assert.Contains(w, said.complaint, absent)
	assert.Regexp(w, `web +9 +unowned`, said.out)
}
