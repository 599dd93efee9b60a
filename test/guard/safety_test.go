//go:build integration

package guard

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/guard/policies"
)

// requireWorks checks that everything a cluster lives by can be done in the namespace.
func (w *world) requireWorks() {
	w.Helper()
	u := w.as(deployer)
	web := w.get("web")
	count := *web.Spec.Replicas
	require.NoError(w, w.putScale(u, "web", count+1), "scale")
	require.NoError(w, w.putScale(w.as(hpaController), "web", count+2), "an HPA's scale")
	require.NoError(w, w.patch(u, "web", `{"spec":{"replicas":1}}`))
	require.EqualValues(w, 1, w.replicas("web"))
	require.NoError(w, w.patch(u, "web", `{"spec":{"paused":false}}`))
	output, err := w.kubectl("set", "image", "deployment/web", "main=example.com/web:next")
	require.NoError(w, err, output)
	output, err = w.kubectl("rollout", "restart", "deployment/web")
	require.NoError(w, err, output)
	hpa := w.hpa("web", "web")
	require.NoError(w, u.Create(w.Context(), hpa))
	require.NoError(w, u.Delete(w.Context(), hpa))
	require.NoError(w, u.Create(w.Context(), w.operatorsDeployment()))
	require.NoError(w, w.putScale(u, "autoscale-operator", 3))
	require.NoError(w, u.Delete(w.Context(), w.operatorsDeployment()))
}

// operatorsDeployment is a Deployment such as our own.
func (w *world) operatorsDeployment() *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": "autoscale-operator"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "autoscale-operator", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "example.com/manager"}}},
			},
		},
	}
}

func TestFC37_WithoutItsParameterKindTheGuardStopsNothing(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Guard: true, Controllers: true, Progress: t.Output()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	w, other, later := newWorldIn(t, cp), newWorldIn(t, cp), newWorldIn(t, cp)
	for _, each := range []*world{w, other, later} {
		each.deployment("web")
		each.hold("web=web")
	}
	require.Error(t, w.putScale(w.as(person), "web", 9))

	for _, name := range []string{"scaleguards", "scalebindings"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + ".autoscale.example.com"}}
		require.NoError(t, w.admin().Delete(t.Context(), crd))
		require.Eventually(t, func() bool {
			return apierrors.IsNotFound(w.admin().Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
		}, effective, poll)
	}
	w.awaitScaling("web", true)
	w.requireWorks()
	output, err := w.kubectl("delete", "namespace", w.namespace, "--timeout=60s")
	require.NoError(t, err, output)

	// Policies that are read anew, as by an API server that starts now, cannot know the
	// kind of their parameter.
	values, err := policies.Defaults(root)
	require.NoError(t, err)
	values.Guard.BreakGlassGroups = []string{"another"}
	rendered, err := policies.Render(root, values, policies.MutatingAdmissionPolicies)
	require.NoError(t, err)
	require.NoError(t, install.ApplyPolicies(t.Context(), cp.Config, decode(t, rendered)))
	other.requireWorks()

	// And once the kinds are back, so is the guard.
	_, err = install.Apply(t.Context(), cp.Config, install.Options{Root: root, Dir: t.TempDir(), Guard: true})
	require.NoError(t, err)
	require.NoError(t, later.operator().Create(t.Context(), later.guardOf("guard", "web=web")))
	later.awaitScaling("web", false)
}

// An expression that errs when it is evaluated, of every policy that is not about our
// own kinds, and one that is too expensive.
func TestAnExpressionThatErrsStopsNothing(t *testing.T) {
	for name, expression := range map[string]string{
		"a missing field":    `params.spec.nothing.here == 1`,
		"a wrong type":       `params.spec.held > 1`,
		"a division by zero": `1 / (params.spec.count - params.spec.count) == 1`,
		"too expensive":      `[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f < 100))))))`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deployment("web")
			w.hold("web=web")
			w.breakPolicies(expression)

			w.requireWorks()
		})
	}
}

// breakPolicies makes the conditions, or the validation, and the mutation of the
// guard's policies over objects of others err.
func (w *world) breakPolicies(expression string) {
	w.Helper()
	w.Cleanup(func() { w.replaceGuard(context.Background(), func(*policies.Values) {}) })
	values, err := policies.Defaults(root)
	require.NoError(w, err)
	rendered, err := policies.Render(root, values, policies.MutatingAdmissionPolicies)
	require.NoError(w, err)
	objects := decode(w, rendered)
	broken := 0
	for _, o := range objects {
		if _, found, _ := unstructured.NestedMap(o.Object, "spec", "paramKind"); !found {
			continue
		}
		if broken%2 == 0 {
			setIn(w, o, []any{map[string]any{"name": "broken", "expression": expression}}, "spec", "matchConditions")
		} else { // Every other one errs later.
			unstructured.RemoveNestedField(o.Object, "spec", "matchConditions")
			if o.GetKind() == "MutatingAdmissionPolicy" {
				setIn(w, o, []any{map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{
					"expression": `(` + expression + `) ? Object{} : Object{spec: Object.spec{replicas: 13}}`,
				}}}, "spec", "mutations")
			} else {
				setIn(w, o, []any{map[string]any{"expression": expression, "message": "it erred"}}, "spec", "validations")
			}
		}
		broken++
	}
	require.Greater(w, broken, 5)
	w.replacePolicies(w.Context(), objects)
}

func setIn(t require.TestingT, o *unstructured.Unstructured, value []any, path ...string) {
	require.NoError(t, unstructured.SetNestedSlice(o.Object, value, path...))
}

// The largest index that a ScaleGuard can be, searched for the longest name: within
// what the API server lets one call cost.
func TestTheLargestScaleGuardIsStillSearched(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat(strings.Repeat("w", 62)+".", 4) + "x" // 253 characters
	w.deployment(long)
	entry := v1alpha1.HeldEntry("filler-with-an-ordinary-name", "filler-with-an-ordinary-name")
	last := v1alpha1.HeldEntry(long, "web")
	g := w.guardOf("guard")
	g.Spec.Held = "/" + strings.Repeat(entry, (v1alpha1.MaxHeldBytes-len(last)-1)/len(entry)) + last
	g.Spec.Count = 1 // for people
	require.NoError(t, w.operator().Create(t.Context(), g))
	w.awaitScaling(long, false)

	err := w.putScale(w.as(person), long, 9)
	require.Error(t, err)
	requireRefused(t, w, err.Error(), "autoscale-guard-scale", long, "web")
	require.NoError(t, w.patch(w.as(person), long, `{"spec":{"replicas":9}}`, client.FieldOwner("a-script")))
	assert.EqualValues(t, 3, w.replicas(long))
	err = w.as(person).Create(t.Context(), w.hpa("web", long))
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// The API server compiles the expressions, and its controller checks them against the
// types of what they match.
func TestTheAPIServerFindsNoFaultInTheExpressions(t *testing.T) {
	w := newWorld(t)
	var list admissionv1.ValidatingAdmissionPolicyList
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if !assert.NoError(c, w.admin().List(t.Context(), &list, client.MatchingLabels{"app.kubernetes.io/component": "guard"})) {
			return
		}
		for i := range list.Items {
			assert.Equal(c, list.Items[i].Generation, list.Items[i].Status.ObservedGeneration, list.Items[i].Name)
		}
	}, effective, poll)
	require.GreaterOrEqual(t, len(list.Items), 6)
	for i := range list.Items {
		if checked := list.Items[i].Status.TypeChecking; checked != nil {
			assert.Empty(t, checked.ExpressionWarnings, list.Items[i].Name)
		}
	}
}
