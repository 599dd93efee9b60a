//go:build integration

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The chart brings what config/ has: nothing else is tested without it.

func readConfig(t *testing.T, pattern string) []*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "config", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		objects = append(objects, decode(t, string(data))...)
	}
	return objects
}

func TestTheCRDsAreThoseOfConfigAndStay(t *testing.T) {
	h := newHelm(t, both[0])
	rendered := decode(t, h.template(t))
	gone := decode(t, h.template(t, "--set=crds.keep=false"))

	crds := readConfig(t, "crd/*.yaml")
	for _, want := range crds {
		got := find(t, rendered, want.GetKind(), want.GetName())
		assert.Equal(t, want.Object["spec"], got.Object["spec"], want.GetName())
		assert.Equal(t, "keep", got.GetAnnotations()["helm.sh/resource-policy"])
		assert.Equal(t, want.GetAnnotations(), find(t, gone, want.GetKind(), want.GetName()).GetAnnotations())
	}
	assert.Len(t, ofKind(rendered, "CustomResourceDefinition"), len(crds))
	assert.Empty(t, ofKind(decode(t, h.template(t, "--set=crds.enabled=false")), "CustomResourceDefinition"))
}

func TestTheWebhooksAreThoseOfConfig(t *testing.T) {
	rendered := decode(t, newHelm(t, both[0]).template(t))
	for _, want := range readConfig(t, "webhook/*.yaml") {
		got := find(t, rendered, want.GetKind(), want.GetName())
		webhooks, _, err := unstructured.NestedSlice(got.Object, "webhooks")
		require.NoError(t, err)
		for _, webhook := range webhooks {
			unstructured.RemoveNestedField(webhook.(map[string]any), "clientConfig", "service", "port")
		}
		assert.Equal(t, want.Object["webhooks"], webhooks, want.GetKind())
	}
}

func TestTheGuardIsThatOfConfig(t *testing.T) {
	h := newHelm(t, both[0])
	for version, file := range map[string]string{"1.30": "guard/policies-denying.yaml", "1.37": "guard/policies.yaml"} {
		rendered := decode(t, h.templateOn(t, version))
		wanted := readConfig(t, file)
		for _, want := range wanted {
			// Names and labels are the release's.
			name := strings.Replace(want.GetName(), "autoscale-guard", "autoscale-operator-guard", 1)
			got := find(t, rendered, want.GetKind(), name)
			if policy, ok, _ := unstructured.NestedString(want.Object, "spec", "policyName"); ok {
				renamed := strings.Replace(policy, "autoscale-guard", "autoscale-operator-guard", 1)
				require.NoError(t, unstructured.SetNestedField(want.Object, renamed, "spec", "policyName"))
			}
			assert.Equal(t, spaceless(want.Object["spec"]), spaceless(got.Object["spec"]), name)
			assert.Equal(t, "guard", got.GetLabels()["app.kubernetes.io/component"])
			assert.Equal(t, chartName, got.GetLabels()["app.kubernetes.io/instance"])
		}
		guards := 0
		for _, o := range rendered {
			if o.GetLabels()["app.kubernetes.io/component"] == "guard" {
				guards++
			}
		}
		assert.Equal(t, len(wanted), guards, version)
	}
}

// spaceless makes expressions that differ in spaces alone equal.
func spaceless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, nested := range v {
			out[key] = spaceless(nested)
		}
		return out
	case []any:
		var out []any
		for _, nested := range v {
			out = append(out, spaceless(nested))
		}
		return out
	case string:
		return strings.Join(strings.Fields(v), " ")
	}
	return value
}

// granted are the rights of a role, one by one, as verb resource.group/name.
func granted(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var role rbacv1.ClusterRole // A Role has the same rules.
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
	var all []string
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all = append(all, strings.TrimSuffix(verb+" "+resource+"."+group+"/"+name, "/"))
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// With everything turned on that needs a right, the chart grants what the markers in the
// code ask for.
func TestTheRightsAreThoseOfTheMarkers(t *testing.T) {
	h := newHelm(t, both[0])
	const all = "--set=config.claims.require_permission=true"
	var want, own []string
	for _, o := range readConfig(t, "rbac/role.yaml") {
		for _, right := range granted(t, o) {
			switch {
			case strings.Contains(right, " secrets.") || strings.Contains(right, "webhookconfigurations.") && !strings.HasPrefix(right, "list "):
				// For self-managed certificates; see the next test.
			case o.GetKind() == "Role":
				own = append(own, right)
			default:
				want = append(want, right)
			}
		}
	}

	rendered := decode(t, h.template(t, all))
	assert.Equal(t, want, granted(t, find(t, rendered, "ClusterRole", chartName)))
	assert.Subset(t, granted(t, find(t, rendered, "Role", chartName)), own)

	rendered = decode(t, h.template(t, all, "--set=watchNamespaces={shop}"))
	cluster, namespaced := granted(t, find(t, rendered, "ClusterRole", chartName)), granted(t, find(t, rendered, "ClusterRole", chartName+"-namespaced"))
	assert.ElementsMatch(t, want, append(slices.Clone(cluster), namespaced...), "each once")
}

func TestTheRightsOfSelfManagedCertificatesAreOnNamesAlone(t *testing.T) {
	h := newHelm(t, both[0])
	rights := func(flags ...string) (all []string) {
		objects := decode(t, h.template(t, flags...))
		return append(granted(t, find(t, objects, "ClusterRole", chartName)), granted(t, find(t, objects, "Role", chartName))...)
	}
	before, after := rights(), rights("--set=certificates.mode=self-managed")

	assert.Subset(t, after, before)
	more := slices.DeleteFunc(after, func(right string) bool { return slices.Contains(before, right) })
	assert.ElementsMatch(t, []string{
		"get validatingwebhookconfigurations.admissionregistration.k8s.io/autoscale-operator",
		"update validatingwebhookconfigurations.admissionregistration.k8s.io/autoscale-operator",
		"get mutatingwebhookconfigurations.admissionregistration.k8s.io/autoscale-operator",
		"update mutatingwebhookconfigurations.admissionregistration.k8s.io/autoscale-operator",
		"get secrets./autoscale-operator-self-managed-cert", "update secrets./autoscale-operator-self-managed-cert", "create secrets.",
	}, more)
}
