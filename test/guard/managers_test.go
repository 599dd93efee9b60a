//go:build integration

package guard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/guard/policies"
	"example.com/platform/autoscale-operator/test/managers/crds"
)

// serve makes the API server serve a kind: by its own CRD, or as one whose objects may
// hold anything.
func (w *world) serve(m policies.Manager) {
	w.Helper()
	crd, err := anything(m), error(nil)
	switch m.Kind {
	case "ScaledObject":
		crd, err = crds.ScaledObject(w.Context())
	case "WatermarkPodAutoscaler":
		crd, err = crds.WatermarkPodAutoscaler()
	}
	require.NoError(w, err)
	require.NoError(w, client.IgnoreAlreadyExists(w.admin().Create(w.Context(), crd)))
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(m.Group + "/" + m.Version)
		list.SetKind(m.Kind + "List")
		assert.NoError(c, w.admin().List(w.Context(), list))
	}, effective, poll)
}

func anything(m policies.Manager) *apiextensionsv1.CustomResourceDefinition {
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = m.Resource + "." + m.Group
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: m.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: m.Resource, Kind: m.Kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: m.Version, Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}},
		}},
	}
	return crd
}

// manager makes an object of a kind, unstructured.
func (w *world) manager(m policies.Manager, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(m.Group + "/" + m.Version)
	o.SetKind(m.Kind)
	o.SetNamespace(w.namespace)
	o.SetName(name)
	return o
}

// target is a spec with a reference; what is empty is left out.
func target(apiVersion, kind, name string) map[string]any {
	ref := map[string]any{"name": name}
	if apiVersion != "" {
		ref["apiVersion"] = apiVersion
	}
	if kind != "" {
		ref["kind"] = kind
	}
	trigger := map[string]any{"type": "cpu", "metadata": map[string]any{"value": "60"}} // KEDA wants one
	return map[string]any{"scaleTargetRef": ref, "triggers": []any{trigger}}
}

func TestANewRegisteredManagerForAHeldDeploymentIsRefused(t *testing.T) {
	values, err := policies.Defaults(root)
	require.NoError(t, err)
	for _, m := range values.Managers {
		t.Run(m.Kind, func(t *testing.T) {
			w := newWorld(t)
			w.serve(m)
			w.deployment("web")
			w.hold("web=web-scaler")
			u := w.as(person)
			policy := "autoscale-guard-" + m.Resource + "." + m.Group

			for _, apiVersion := range []string{"apps/v1", "extensions/v1beta1", ""} {
				err := u.Create(t.Context(), w.manager(m, "web", target(apiVersion, "Deployment", "web")))
				require.True(t, apierrors.IsForbidden(err), "%v", err)
				requireRefused(t, w, err.Error(), policy, "web", "web-scaler")
				assert.ErrorContains(t, err, "which this "+m.Kind+" targets")
			}
			o := w.manager(m, "other", target("apps/v1", "Deployment", "my-web"))
			require.NoError(t, u.Create(t.Context(), o), "another Deployment")
			for _, ref := range []map[string]any{
				target("apps/v1", "StatefulSet", "web"),
				target("example.com/v1", "Deployment", "web"),
			} {
				assert.NoError(t, u.Create(t.Context(), w.manager(m, "web", ref), client.DryRunAll))
			}
			err := u.Patch(t.Context(), o, mergePatch(`{"spec":{"scaleTargetRef":{"name":"web"}}}`))
			require.True(t, apierrors.IsForbidden(err), "moved onto it: %v", err)
			requireRefused(t, w, err.Error(), policy, "web", "web-scaler")
		})
	}
	t.Run("a ScaledObject without a kind means a Deployment", func(t *testing.T) {
		w := newWorld(t)
		w.serve(values.Managers[0])
		w.hold("web=web")
		err := w.as(person).Create(t.Context(), w.manager(values.Managers[0], "web", target("", "", "web")))
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	})
	t.Run("a dry run of a WatermarkPodAutoscaler writes nothing, until it ends", func(t *testing.T) {
		w := newWorld(t)
		w.serve(values.Managers[1])
		w.hold("web=web")
		spec := target("apps/v1", "Deployment", "web")
		spec["dryRun"] = true
		o := w.manager(values.Managers[1], "web", spec)
		require.NoError(t, w.as(person).Create(t.Context(), o))
		err := w.as(person).Patch(t.Context(), o, mergePatch(`{"spec":{"dryRun":false}}`))
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	})
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

func TestARegisteredManagerThatWasThereBeforeMayBeTended(t *testing.T) {
	values, err := policies.Defaults(root)
	require.NoError(t, err)
	m := values.Managers[0]
	w := newWorld(t)
	w.serve(m)
	u := w.as(person)
	o := w.manager(m, "web", target("", "", "web"))
	o.SetFinalizers([]string{"finalizer.keda.sh"})
	require.NoError(t, u.Create(t.Context(), o))
	w.hold("web=web")

	for _, patch := range []string{
		`{"spec":{"maxReplicaCount":5}}`, `{"metadata":{"labels":{"team":"shop"}}}`, `{"spec":{"scaleTargetRef":{"kind":"Deployment"}}}`,
	} {
		require.NoError(t, u.Patch(t.Context(), o, mergePatch(patch)), patch)
	}
	require.NoError(t, u.Status().Patch(t.Context(), o, mergePatch(`{"status":{"hpaName":"keda-hpa-web"}}`)))
	require.NoError(t, u.Delete(t.Context(), o))
	require.NoError(t, u.Patch(t.Context(), o, mergePatch(`{"metadata":{"finalizers":null}}`)))
	assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), client.ObjectKeyFromObject(o), o)))
}

// A manager of somebody's own, with several targets, said by group.
func TestAManagerMayHaveSeveralTargets(t *testing.T) {
	m := policies.Manager{
		Group: "fleet.example.com", Version: "v1", Resource: "fleets", Kind: "Fleet",
		Targets: `object.spec.members.map(m, {"group": m.group, "kind": dyn("Deployment"), "name": m.name})`,
	}
	type member struct{ group, name string }
	members := func(of ...member) map[string]any {
		var list []any
		for _, m := range of {
			list = append(list, map[string]any{"group": m.group, "name": m.name})
		}
		return map[string]any{"members": list}
	}
	w := newWorld(t)
	w.serve(m)
	w.guardWith(func(v *policies.Values) { v.Managers = append(v.Managers, m) })
	w.hold("api=api-scaler", "web=web-scaler")
	u := w.as(person)

	o := w.manager(m, "all", members(member{"apps", "one"}, member{"apps", "two"}, member{"other.example.com", "web"}))
	require.NoError(t, u.Create(t.Context(), o))
	o.Object["spec"] = members(member{"apps", "one"}, member{"apps", "web"}, member{"apps", "api"})
	err := u.Update(t.Context(), o)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	requireRefused(t, w, err.Error(), "autoscale-guard-fleets.fleet.example.com", "web", "web-scaler")

	require.NoError(t, u.Create(t.Context(), w.manager(m, "empty", members())))
	// An expression that errs, here for want of the field, must not stop anybody.
	assert.NoError(t, u.Create(t.Context(), w.manager(m, "odd", map[string]any{"members": []any{map[string]any{"name": "web"}}})))
	assert.NoError(t, u.Create(t.Context(), w.manager(m, "none", map[string]any{})))
}
