//go:build integration

package guard

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/cluster/install"
)

// requireKept checks that the count was kept, the image taken, and the user told.
func requireKept(t *testing.T, w *world, told, image string) {
	t.Helper()
	d := w.get("web")
	require.EqualValues(t, 3, *d.Spec.Replicas)
	require.Equal(t, image, d.Spec.Template.Spec.Containers[0].Image)
	requireRefused(t, w, told, "autoscale-guard-deployments", "web", "web-scaler")
	require.Contains(t, told, "it stays at 3, and the rest was taken")
}

// The ways in which a manifest is applied that says another count than the holder.
func TestFC33_AnApplyKeepsTheCountAndTakesTheRest(t *testing.T) {
	for name, how := range map[string][]string{
		"kubectl apply": nil,
		"kubectl apply --server-side --force-conflicts": {"--server-side", "--force-conflicts"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			apply := func(manifest string) string {
				t.Helper()
				output, err := w.kubectl(append([]string{"apply", "--filename=" + manifest}, how...)...)
				require.NoError(t, err, output)
				return output
			}
			apply(w.manifest("example.com/web:1", 3))
			w.hold("web=web-scaler")

			requireKept(t, w, apply(w.manifest("example.com/web:2", 5)), "example.com/web:2")
			requireKept(t, w, apply(w.manifest("example.com/web:3", 5)), "example.com/web:3")
			requireKept(t, w, apply(w.manifest("example.com/web:3", 5)), "example.com/web:3")

			// After a write of the operator the same manifest meets another owner of the field.
			require.NoError(t, w.putScale(w.operator(), "web", 7))
			told := apply(w.manifest("example.com/web:3", 5))
			assert.EqualValues(t, 7, w.replicas("web"))
			assert.Contains(t, told, "it stays at 7")
		})
	}
}

// A manifest that leaves out a field which it owned makes the API server fill in the
// default: 1.
func TestFC33_AnApplyWithoutTheFieldDoesNotScaleToOne(t *testing.T) {
	for name, how := range map[string][]string{
		"kubectl apply":               nil,
		"kubectl apply --server-side": {"--server-side"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			output, err := w.kubectl(append([]string{"apply", "--filename=" + w.manifest("example.com/web:1", 3)}, how...)...)
			require.NoError(t, err, output)
			w.hold("web=web-scaler")

			output, err = w.kubectl(append([]string{"apply", "--filename=" + w.manifest("example.com/web:2", -1)}, how...)...)

			require.NoError(t, err, output)
			d := w.get("web")
			assert.EqualValues(t, 3, *d.Spec.Replicas)
			assert.Equal(t, "example.com/web:2", d.Spec.Template.Spec.Containers[0].Image)
			assert.NotContains(t, output, "Warning", "such a manifest is what we ask for")
		})
	}
}

func TestAServerSideApplyWithoutForceNamesTheOwnerOfTheField(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	require.NoError(t, w.putScale(w.operator(), "web", 4, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{FieldManager: "autoscale-operator"}}))
	w.hold("web=web-scaler")

	output, err := w.kubectl("apply", "--server-side", "--filename="+w.manifest("example.com/web", 5))

	require.Error(t, err)
	assert.Contains(t, output, `conflict with "autoscale-operator" with subresource "scale"`)
}

func TestFC33_EditsKeepTheCount(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web-scaler")
	kubectl := func(args ...string) string {
		t.Helper()
		output, err := w.kubectl(args...)
		require.NoError(t, err, output)
		return output
	}

	requireKept(t, w, kubectl("edit", "deployment/web"), "example.com/web")
	requireKept(t, w, kubectl("patch", "deployment/web", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/replicas","value":9},
		  {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/web:2"}]`), "example.com/web:2")
	requireKept(t, w, kubectl("replace", "--filename="+w.manifest("example.com/web:3", 9)), "example.com/web:3")

	t.Run("a PUT", func(t *testing.T) {
		u := w.as(deployer)
		d := w.get("web")
		*d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image = 12, "example.com/web:4"
		require.NoError(t, u.Update(t.Context(), d, client.FieldOwner("a-script")))
		requireKept(t, w, u.warned(), "example.com/web:4")
	})
}

func TestFC33_WhatDoesNotChangeTheCountIsNotLookedAt(t *testing.T) {
	w := newWorld(t)
	output, err := w.kubectl("apply", "--filename="+w.manifest("example.com/web:1", -1))
	require.NoError(t, err, output)
	require.NoError(t, w.putScale(w.operator(), "web", 3))
	w.hold("web=web-scaler")
	for _, args := range [][]string{
		{"label", "deployment/web", "team=shop"},
		{"rollout", "resume", "deployment/web"},
		{"rollout", "restart", "deployment/web"},
		{"set", "image", "deployment/web", "main=example.com/web:2"},
		{"set", "env", "deployment/web", "MODE=fast"},
		{"apply", "--filename=" + w.manifest("example.com/web:3", -1)},
	} {
		output, err := w.kubectl(args...)
		require.NoError(t, err, output)
		assert.NotContains(t, output, "Warning")
	}

	t.Run("kubectl rollout undo", func(t *testing.T) {
		require.NoError(t, w.patch(w.as(person), "web", `{"spec":{"paused":false}}`))
		w.awaitRevisions("web", 2)
		before := w.get("web").Spec.Template.Spec.Containers[0].Image

		output, err := w.kubectl("rollout", "undo", "deployment/web")

		require.NoError(t, err, output)
		d := w.get("web")
		assert.NotEqual(t, before, d.Spec.Template.Spec.Containers[0].Image)
		assert.EqualValues(t, 3, *d.Spec.Replicas)
		assert.NotContains(t, output, "autoscale-guard")
	})
	t.Run("create and delete", func(t *testing.T) {
		output, err := w.kubectl("delete", "deployment/web")
		require.NoError(t, err, output)
		output, err = w.kubectl("apply", "--filename="+w.manifest("example.com/web:1", 5))
		require.NoError(t, err, output)
		assert.EqualValues(t, 5, w.replicas("web"), "what the name was held for is gone; the new one has its own count")
	})
}

// awaitRevisions waits until a Deployment has this many ReplicaSets.
func (w *world) awaitRevisions(name string, count int) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		var list appsv1.ReplicaSetList
		if assert.NoError(c, w.admin().List(w.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": name})) {
			assert.GreaterOrEqual(c, len(list.Items), count)
		}
	}, effective, poll)
}

// What the notice cannot tell: a writer that owned the field already, by no apply, leaves
// no trace of what it asked for. The count is kept all the same.
func TestAWriterThatOwnsTheFieldIsKeptFromChangingItWithoutNotice(t *testing.T) {
	w := newWorld(t)
	u := w.as(person)
	d := w.get(w.deployment("web").Name)
	w.hold("web=web")

	require.NoError(t, w.patch(u, "web", `{"spec":{"replicas":9}}`))

	assert.Empty(t, u.warned())
	after := w.get("web")
	assert.EqualValues(t, 3, *after.Spec.Replicas)
	assert.Equal(t, d.Generation, after.Generation, "nothing is left to store")
}

// Another mutation, such as of a mutating webhook, that writes the count on the way, is
// put back when the request asked for a count as well. By itself it cannot be, since
// the API server does not try a mutation again that had nothing to do at first; it is
// warned of, and not denied, or such a webhook would stop every roll-out.
func TestAMutationThatWritesTheCountIsPutBackOrWarnedOf(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")
	name := "another-mutation-" + w.namespace
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}}},
		},
		Mutations: []admissionv1.Mutation{{
			PatchType: admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{
				Expression: `Object{spec: Object.spec{replicas: 42}, metadata: Object.metadata{labels: {"mutated": "yes"}}}`,
			},
		}},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, o := range []client.Object{policy, binding} {
		require.NoError(t, w.admin().Create(t.Context(), o))
		t.Cleanup(func() { assert.NoError(t, w.admin().Delete(context.Background(), o)) })
	}
	require.NoError(t, install.ApplyPolicies(t.Context(), w.cp.Config, nil))

	u := w.as(person)
	require.NoError(t, w.patch(u, "web", `{"spec":{"replicas":9}}`))
	d := w.get("web")
	require.Equal(t, "yes", d.Labels["mutated"])
	require.EqualValues(t, 3, *d.Spec.Replicas)
	u.warned()

	require.NoError(t, w.patch(u, "web", `{"metadata":{"labels":{"team":"shop"}}}`))
	// Which of two mutations the API server tries first is not said anywhere. Ours puts
	// the count back if it is the second.
	warned := u.warned()
	if w.replicas("web") == 3 {
		assert.Empty(t, warned)
		return
	}
	assert.EqualValues(t, 42, w.replicas("web"))
	assert.Contains(t, warned, "which is 3 and would become 42")
}

// A Deployment that is being deleted ends as its finalizers will, whatever its count.
func TestADeploymentThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	d := w.deployment("web")
	require.NoError(t, w.patch(w.admin(), "web", `{"metadata":{"finalizers":["example.com/last-rites"]}}`))
	w.hold("web=web")
	require.NoError(t, w.admin().Delete(t.Context(), d))

	require.NoError(t, w.patch(w.as(deployer), "web", `{"spec":{"replicas":1}}`))
	assert.EqualValues(t, 1, w.replicas("web"))
	require.NoError(t, w.patch(w.as(deployer), "web", `{"metadata":{"finalizers":null}}`))
	assert.Error(t, w.admin().Get(t.Context(), w.key("web"), d))
}
