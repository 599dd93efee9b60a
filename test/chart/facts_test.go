//go:build integration

package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// renderSets renders each set of values for the newest version of Kubernetes.
func renderSets(t *testing.T, test func(t *testing.T, set string, objects []*unstructured.Unstructured)) {
	t.Helper()
	h := newHelm(t, both[0])
	for set, path := range valueSets(t) {
		t.Run(set, func(t *testing.T) { test(t, set, decode(t, h.template(t, "--values="+path))) })
	}
}

// The seed of the permissions: no wildcard, no Secrets but the one that a self-managed
// operator keeps, no update of a Deployment, leases in its own namespace alone.
func TestTheOperatorMayDoLittle(t *testing.T) {
	renderSets(t, func(t *testing.T, set string, objects []*unstructured.Unstructured) {
		t.Helper()
		for _, o := range objects {
			if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" || o.GetLabels()["rbac.authorization.k8s.io/aggregate-to-edit"] != "" {
				continue
			}
			for _, right := range granted(t, o) {
				verb, resource, _ := strings.Cut(right, " ")
				assert.NotContains(t, right, "*", o.GetName())
				if strings.HasPrefix(resource, "deployments.") {
					assert.Contains(t, []string{"get", "list", "watch"}, verb, right)
				}
				if strings.HasPrefix(resource, "secrets.") {
					assert.Equal(t, "self-managed", set, right)
					assert.Equal(t, "Role", o.GetKind(), right)
					assert.NotEqual(t, "list", verb, right)
					if verb != "create" { // which no name can bound
						assert.Contains(t, resource, "/autoscale-operator-self-managed-cert", right)
					}
				}
				if strings.HasPrefix(resource, "leases.") {
					assert.Equal(t, "Role", o.GetKind(), right)
					assert.Equal(t, releaseNamespace, o.GetNamespace())
				}
			}
		}
	})
}

func TestAnOperatorOfSomeNamespacesHasNoRightsInOthers(t *testing.T) {
	objects := decode(t, newHelm(t, both[0]).template(t, "--values="+valueSets(t)["namespaced"]))

	for _, right := range granted(t, find(t, objects, "ClusterRole", chartName)) {
		_, resource, _ := strings.Cut(right, " ")
		resource, _, _ = strings.Cut(resource, "/")
		assert.Contains(t, []string{
			"namespaces.", "metricprofiles.autoscale.example.com", "customresourcedefinitions.apiextensions.k8s.io",
			"validatingwebhookconfigurations.admissionregistration.k8s.io",
			"tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
		}, resource, right)
	}
	var namespaces []string
	assert.Contains(t, granted(t, find(t, objects, "ClusterRole", chartName+"-namespaced")), "update deployments/scale.apps")
	for _, o := range ofKind(objects, "RoleBinding") {
		if o.GetName() == chartName+"-namespaced" {
			namespaces = append(namespaces, o.GetNamespace())
		}
	}
	for _, o := range ofKind(objects, "ClusterRoleBinding") {
		assert.NotContains(t, fmt.Sprint(o.Object["roleRef"]), "-namespaced")
	}
	assert.Equal(t, []string{"production", "shop"}, namespaces)
}

// Replica managers that are not configured are nobody's business.
func TestRightsToWatchReplicaManagersFollowTheConfiguration(t *testing.T) {
	h := newHelm(t, both[0])
	rights := func(args ...string) string {
		return strings.Join(granted(t, find(t, decode(t, h.template(t, args...)), "ClusterRole", chartName)), "\n")
	}
	assert.Contains(t, rights(), "watch scaledobjects.keda.sh")
	assert.NotContains(t, rights("--set=config.managers=null", "--set-json=config.managers=[]"), "keda.sh")
	own := rights("--set-json=config.managers=[{\"group\":\"example.com\",\"version\":\"v1\",\"resource\":\"scalers\",\"kind\":\"Scaler\",\"targets\":\"[object.spec.target]\"}]")
	assert.Contains(t, own, "watch scalers.example.com")
	assert.NotContains(t, own, "keda.sh")
	assert.NotContains(t, own, "datadoghq.com")
}

// FC-47: names of objects are never just cut.
func TestFC47_NamesOfLongReleasesAreLabelsAndTellReleasesApart(t *testing.T) {
	h := newHelm(t, both[0])
	const long = "a-release-of-the-longest-name-that-helm-allows-at-all" // 53
	names := map[string]string{}
	for _, release := range []string{long, long[:52] + "x", "autoscale-operator", "short", "with.dots", "1st"} {
		for _, o := range decode(t, h.template(t, release, "--values="+valueSets(t)["full"], "--set=nameOverride=")) {
			switch o.GetKind() {
			case "CustomResourceDefinition", "Role", "RoleBinding", "ServiceAccount":
				continue // by other names, or the same in several namespaces
			case "Service":
				assert.Empty(t, validation.IsDNS1035Label(o.GetName()), o.GetName())
			case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding":
				assert.Empty(t, validation.IsDNS1123Subdomain(o.GetName()), o.GetName())
			default:
				assert.Empty(t, validation.IsDNS1123Label(o.GetName()), "%s %s", o.GetKind(), o.GetName())
			}
			for key, value := range o.GetLabels() {
				assert.Empty(t, validation.IsValidLabelValue(value), key)
			}
			id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			assert.Contains(t, []string{"", release}, names[id], id)
			names[id] = release
		}
	}
}

// Two installs share a cluster: nothing of one has the name of the other's, and each
// looks at its own namespaces.
func TestTwoInstallsDoNotMeet(t *testing.T) {
	h := newHelm(t, both[0])
	selectors := func(objects []*unstructured.Unstructured) map[string][]string {
		found := map[string][]string{}
		add := func(name string, selected map[string]any) {
			values, _, err := unstructured.NestedSlice(selected, "namespaceSelector", "matchExpressions")
			require.NoError(t, err, name)
			require.NotEmpty(t, values, name)
			expression := values[0].(map[string]any)
			assert.Equal(t, "kubernetes.io/metadata.name", expression["key"], name)
			assert.Equal(t, "In", expression["operator"], name)
			for _, v := range expression["values"].([]any) {
				found[name] = append(found[name], v.(string))
			}
		}
		for _, o := range objects {
			switch o.GetKind() {
			case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
				constraints, _, _ := unstructured.NestedMap(o.Object, "spec", "matchConstraints")
				add(o.GetName(), constraints)
			case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
				webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
				for _, each := range webhooks {
					webhook := each.(map[string]any)
					if name := webhook["name"].(string); !strings.HasPrefix(name, "metricprofiles.") {
						add(o.GetKind()+" "+name, webhook)
					}
				}
			}
		}
		return found
	}
	one := decode(t, h.template(t, "one", "--set=watchNamespaces={shop},crds.enabled=false,guard.exemptNamespaces={kube-system}"))
	two := decode(t, h.template(t, "two", "--namespace=elsewhere", "--set=watchNamespaces={bank},crds.enabled=false"))
	for name, namespaces := range selectors(one) {
		assert.Equal(t, []string{"shop"}, namespaces, name)
	}
	for name, namespaces := range selectors(two) {
		assert.Equal(t, []string{"bank"}, namespaces, name)
	}
	names := map[string]bool{}
	for _, o := range one {
		names[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
	}
	for _, o := range two {
		assert.False(t, names[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()], "%s %s", o.GetKind(), o.GetName())
	}
}

// The guard lets the operator through by the name of the account that its pods have.
func TestTheGuardKnowsTheAccountOfThePods(t *testing.T) {
	renderSets(t, func(t *testing.T, _ string, objects []*unstructured.Unstructured) {
		t.Helper()
		account, _, _ := unstructured.NestedString(ofKind(objects, "Deployment")[0].Object, "spec", "template", "spec", "serviceAccountName")
		for _, kind := range []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"} {
			for _, policy := range ofKind(objects, kind) {
				conditions, _, _ := unstructured.NestedSlice(policy.Object, "spec", "matchConditions")
				expression := conditions[0].(map[string]any)["expression"].(string)
				assert.Contains(t, expression, `request.userInfo.username != "system:serviceaccount:`+releaseNamespace+":"+account+`"`, policy.GetName())
			}
		}
	})
}

func TestAlertsAndDashboardAreTheFiles(t *testing.T) {
	objects := decode(t, newHelm(t, both[0]).template(t, "--values="+valueSets(t)["full"]))

	rule := find(t, objects, "PrometheusRule", "autoscale-operator-scaler")
	var alerts map[string]any
	text := strings.ReplaceAll(read(t, chartDir, "files", "alerts.yaml"), "RUNBOOK_URL", "https://runbooks.example.com")
	require.NoError(t, yaml.Unmarshal([]byte(text), &alerts))
	assert.Equal(t, alerts, rule.Object["spec"])
	assert.Contains(t, text, "https://runbooks.example.com/AutoscaleOperatorDown.md")

	dashboard := find(t, objects, "ConfigMap", "autoscale-operator-scaler-dashboard")
	data, _, _ := unstructured.NestedStringMap(dashboard.Object, "data")
	assert.JSONEq(t, read(t, chartDir, "files", "dashboard.json"), data["autoscale-operator-scaler.json"])
}

// A certificate that is renewed less than a fortnight before its end is not late by then.
func TestACertificateIsLateByWhenItShouldBeRenewed(t *testing.T) {
	h := newHelm(t, both[0])
	for flag, want := range map[string]string{
		"certificates.renewBefore=336h":    "7 * 86400",
		"certificates.renewBefore=10h1m2s": "18031",
		"certificates.mode=self-managed":   "7 * 86400",
	} {
		rendered := h.template(t, "--set=metrics.prometheusRule.enabled=true,"+flag)
		assert.Contains(t, rendered, "- time() < "+want+"\n", flag)
	}
}

func TestPodsAreRestricted(t *testing.T) {
	renderSets(t, func(t *testing.T, _ string, objects []*unstructured.Unstructured) {
		t.Helper()
		var d appsv1.Deployment
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(ofKind(objects, "Deployment")[0].Object, &d, true))
		pod := d.Spec.Template.Spec
		assert.True(t, *pod.SecurityContext.RunAsNonRoot)
		assert.EqualValues(t, "RuntimeDefault", pod.SecurityContext.SeccompProfile.Type)
		require.Len(t, pod.Containers, 1)
		c := pod.Containers[0]
		assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
		assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
		assert.Equal(t, []string{"ALL"}, toStrings(c.SecurityContext.Capabilities.Drop))
		assert.Empty(t, c.SecurityContext.Capabilities.Add)
		for _, probe := range []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path} {
			assert.Equal(t, "/healthz", probe)
		}
		assert.Equal(t, "/readyz", c.ReadinessProbe.HTTPGet.Path)
		assert.EqualValues(t, "FallbackToLogsOnError", c.TerminationMessagePolicy)
		assert.NotEmpty(t, c.Resources.Requests.Memory())
		assert.NotEmpty(t, c.Resources.Limits.Memory())
	})
}

func toStrings[T ~string](list []T) []string {
	var out []string
	for _, each := range list {
		out = append(out, string(each))
	}
	return out
}
