//go:build integration

package guard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func (w *world) binding() *v1alpha1.ScaleBinding {
	return &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec:       v1alpha1.ScaleBindingSpec{TargetRef: v1alpha1.TargetReference{Name: "web"}, Epoch: 1},
	}
}

func requireOperatorsOwn(t *testing.T, err error, kind string) {
	t.Helper()
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "only the operator writes a "+kind)
	require.ErrorContains(t, err, "pause its AutoScaler; to free the Deployment, delete the AutoScaler")
	require.ErrorContains(t, err, "delete scaleguards.autoscale.example.com --all", "the entry outlives its binding while the operator is down")
}

func TestOnlyTheOperatorWritesBindings(t *testing.T) {
	w := newWorld(t)
	operator, u := w.clientOf(w.cp.Operator), w.as(person)

	requireOperatorsOwn(t, u.Create(t.Context(), w.binding()), "ScaleBinding")
	b := w.binding()
	require.NoError(t, operator.Create(t.Context(), b), "with the rights of its role")
	requireOperatorsOwn(t, u.Patch(t.Context(), b.DeepCopy(), mergePatch(`{"spec":{"epoch":2}}`)), "ScaleBinding")
	requireOperatorsOwn(t, u.Patch(t.Context(), b.DeepCopy(), mergePatch(`{"spec":{"ownerRef":{"name":"me"},"ownerUID":"1"}}`)), "ScaleBinding")
	requireOperatorsOwn(t, u.Status().Patch(t.Context(), b.DeepCopy(), mergePatch(`{"status":{"phase":"Held","epoch":1}}`)), "ScaleBinding")
	b.Status.Phase, b.Status.Epoch = v1alpha1.PhaseFree, 1
	require.NoError(t, operator.Status().Update(t.Context(), b))
	requireOperatorsOwn(t, u.Status().Patch(t.Context(), b.DeepCopy(), mergePatch(`{"status":null}`)), "ScaleBinding")

	t.Run("an update that changes nothing, or metadata alone, passes", func(t *testing.T) {
		require.NoError(t, u.Update(t.Context(), b.DeepCopy()), "as a migration of storage does")
		require.NoError(t, u.Patch(t.Context(), b, mergePatch(`{"metadata":{"labels":{"team":"shop"}}}`)))
	})
	t.Run("deleting passes, and ends when a finalizer goes", func(t *testing.T) {
		foreground := metav1.DeletePropagationForeground
		require.NoError(t, u.Delete(t.Context(), b, &client.DeleteOptions{PropagationPolicy: &foreground}))
		require.NoError(t, u.Get(t.Context(), w.key("web"), b))
		require.Equal(t, []string{metav1.FinalizerDeleteDependents}, b.Finalizers)
		collector := w.as("system:serviceaccount:kube-system:generic-garbage-collector")
		require.NoError(t, client.IgnoreNotFound(collector.Patch(t.Context(), b.DeepCopy(), mergePatch(`{"metadata":{"finalizers":null}}`))))
		assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), w.key("web"), b)))
	})
}

func TestOnlyTheOperatorWritesScaleGuards(t *testing.T) {
	w := newWorld(t)
	u := w.as(person)

	requireOperatorsOwn(t, u.Create(t.Context(), w.guardOf("guard", "web=web")), "ScaleGuard")
	w.hold("web=web")
	g := w.guardOf("guard", "web=web")
	requireOperatorsOwn(t, u.Patch(t.Context(), g, mergePatch(`{"spec":{"held":"/x=y/"}}`)), "ScaleGuard")
	require.NoError(t, u.Delete(t.Context(), g))
}

// A namespace with all of it can be deleted, by its controller and without an operator.
func TestANamespaceWithHeldDeploymentsCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	require.NoError(t, w.operator().Create(t.Context(), w.binding()))
	w.hold("web=web")

	output, err := w.kubectl("delete", "namespace", w.namespace, "--timeout=60s")

	require.NoError(t, err, output)
	assert.Contains(t, output, "deleted")
}
