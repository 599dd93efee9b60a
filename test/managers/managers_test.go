//go:build integration

package managers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestFC38OptionalKindsComeAndGo(t *testing.T) {
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{scaledObject, wpa} {
		kind := crd.Spec.Names.Kind
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, plane.Config)
			w.finds("web", "") // absent, and nothing started yet
			w.start()
			w.finds("web", "")

			w.install(crd)
			w.finds("web", "")
			w.create(w.manager(crd, "a", "web"))
			w.finds("web", kind+" a")
			w.finds("my-web", "")
			w.told("web")

			moved := w.manager(crd, "a", "")
			w.update(moved, func() {
				require.NoError(t, unstructured.SetNestedField(moved.Object, "worker", "spec", "scaleTargetRef", "name"))
			})
			w.finds("worker", kind+" a")
			w.finds("web", "")
			w.told("web", "worker")

			w.remove(crd)
			w.finds("worker", "")
			w.told("worker")

			w.install(crd)
			w.create(w.manager(crd, "b", "worker"))
			w.finds("worker", kind+" b")
			w.told("worker")
		})
	}
}

func TestFC27AManagerThatIsBeingDeletedIsNoConflict(t *testing.T) {
	w := newWorld(t, plane.Config)
	w.install(scaledObject)
	w.start()
	for kind, obj := range map[string]client.Object{
		"HorizontalPodAutoscaler": w.hpa("going", "apps/v1", "of-HorizontalPodAutoscaler"),
		"ScaledObject":            w.manager(scaledObject, "going", "of-ScaledObject"),
	} {
		target := "of-" + kind
		obj.SetFinalizers([]string{"example.com/hold"})
		w.create(obj)
		w.finds(target, kind+" going")
		require.NoError(t, admin.Delete(t.Context(), obj))
		w.finds(target, "")
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj), "still there")
		w.update(obj, func() { obj.SetFinalizers(nil) })
		w.finds(target, "")
	}
}

func TestOldGroupsOfADeploymentAreTheSameDeployment(t *testing.T) {
	w := newWorld(t, plane.Config)
	w.install(scaledObject)
	w.start()
	for i, apiVersion := range []string{"apps/v1", "apps/v1beta1", "extensions/v1beta1", "v1", ""} {
		if target := fmt.Sprintf("of-hpa-%d", i); strings.Contains(apiVersion, "/") { // of an HPA the API server wants a group
			w.create(w.hpa(target, apiVersion, target))
			w.finds(target, "HorizontalPodAutoscaler "+target)
		}
		target := fmt.Sprintf("of-keda-%d", i)
		obj := w.manager(scaledObject, target, target)
		require.NoError(t, unstructured.SetNestedField(obj.Object, apiVersion, "spec", "scaleTargetRef", "apiVersion"))
		w.create(obj)
		w.finds(target, "ScaledObject "+target)
	}
	w.create(w.hpa("other-group", "example.com/v1", "other-group"))
	w.finds("other-group", "")
}

func TestALiveLookGoesThroughAllPages(t *testing.T) {
	w := newWorld(t, plane.Config)
	w.install(scaledObject)
	w.create(w.manager(scaledObject, "zz", "web"))
	w.create(w.hpa("zz", "apps/v1", "worker"))
	var creates errgroup.Group
	creates.SetLimit(8)
	for i := range 501 { // a page is of 500
		for _, obj := range []client.Object{w.manager(scaledObject, fmt.Sprintf("so-%03d", i), "other"), w.hpa(fmt.Sprintf("hpa-%03d", i), "apps/v1", "other")} {
			creates.Go(func() error { return admin.Create(t.Context(), obj) })
		}
	}
	require.NoError(t, creates.Wait())
	says(t, w.FindLive(t.Context(), w.namespace, "web"), "ScaledObject zz")
	says(t, w.FindLive(t.Context(), w.namespace, "worker"), "HorizontalPodAutoscaler zz")
	says(t, w.FindLive(t.Context(), w.namespace, "other"), "ScaledObject so-000")
	says(t, w.FindLive(t.Context(), w.namespace, "none"), "")
}

func TestAPresentKindIsLookedUpLiveBeforeItsCacheIsFilled(t *testing.T) {
	w := newWorld(t, plane.Config)
	w.install(scaledObject)
	w.create(w.manager(scaledObject, "a", "web"))
	says(t, w.Find(t.Context(), w.namespace, "web"), "ScaledObject a")
	says(t, w.Find(t.Context(), w.namespace, "worker"), "")
}

// grant gives a user verbs on the replica managers, in place of those from before.
func (w *world) grant(user string, verbs ...string) {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list"}}}
	if len(verbs) > 0 {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"keda.sh", "datadoghq.com"}, Resources: []string{"scaledobjects", "watermarkpodautoscalers"}, Verbs: verbs,
		})
	}
	bound := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := admin.Create(w.Context(), role); apierrors.IsAlreadyExists(err) {
		require.NoError(w, admin.Update(w.Context(), role))
	} else {
		require.NoError(w, err)
		require.NoError(w, admin.Create(w.Context(), bound))
	}
}

func TestFC38AMissingPermissionIsToldWithinSeconds(t *testing.T) {
	const all = `User "%s" cannot %s resource "scaledobjects" in API group "keda.sh" at the cluster scope`
	for name, tc := range map[string]struct {
		verbs   []string
		refused string
	}{
		"no permission at all":      {nil, "list"},
		"the permission to list":    {[]string{"get", "list"}, "watch"},
		"the permission to get one": {[]string{"get"}, "list"},
	} {
		t.Run(name, func(t *testing.T) {
			user := fmt.Sprintf("reader-%d", len(tc.verbs))
			w := newWorld(t, plane.UserConfig(user, "system:authenticated"))
			w.grant(user, tc.verbs...)
			w.install(scaledObject)
			w.create(w.manager(scaledObject, "a", "web"))
			w.start()
			want := fmt.Sprintf(all, user, tc.refused)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				err := w.Find(t.Context(), w.namespace, "worker")
				require.ErrorContains(c, err, want)
				assert.True(c, apierrors.IsForbidden(err))
			}, effective, poll)
			if tc.refused == "list" {
				assert.ErrorContains(t, w.FindLive(t.Context(), w.namespace, "worker"), `cannot list resource "scaledobjects"`)
			}

			w.grant(user, "get", "list", "watch")
			w.finds("worker", "")
			w.finds("web", "ScaledObject a")
		})
	}
}

func TestAKindThatIsAbsentNeedsNoPermission(t *testing.T) {
	w := newWorld(t, plane.UserConfig("nobody-special", "system:authenticated"))
	w.grant("nobody-special", "get", "list", "watch")
	w.start()
	w.finds("web", "")
}
