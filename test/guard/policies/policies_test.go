package policies

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
)

// ourGroup is the only group that a webhook of ours may match.
const ourGroup = "autoscale.example.com"

func checkout(t *testing.T) string {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	return root
}

func defaults(t *testing.T) *Values {
	t.Helper()
	values, err := Defaults(checkout(t))
	require.NoError(t, err)
	return values
}

func render(t *testing.T, values *Values, served ...string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := Render(checkout(t), values, served...)
	require.NoError(t, err)
	return decode(t, rendered)
}

func decode(t *testing.T, manifests []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// as converts strictly: a field that the kind does not have is an error.
func as[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	var typed T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &typed, true), o.GetName())
	return &typed
}

func namesOf(objects []*unstructured.Unstructured, kind string) []string {
	var names []string
	for _, o := range objects {
		if o.GetKind() == kind {
			names = append(names, o.GetName())
		}
	}
	return names
}

func TestTheRenderedFileIsThatOfTheDefaults(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(checkout(t), RenderedFile))
	require.NoError(t, err)

	assert.Equal(t, render(t, defaults(t), MutatingAdmissionPolicies), decode(t, file), "make generate")

	file, err = os.ReadFile(filepath.Join(checkout(t), DenyingFile))
	require.NoError(t, err)
	assert.Equal(t, render(t, defaults(t)), decode(t, file), "make generate")
}

func TestTheOperatorIsWhoeverTheInstallerMakesIt(t *testing.T) {
	rendered, err := Render(checkout(t), defaults(t))

	require.NoError(t, err)
	assert.Contains(t, string(rendered), `request.userInfo.username != "`+controlplane.OperatorUser+`"`)
	assert.Equal(t, install.ServiceAccount, defaults(t).Guard.ServiceAccount)
}

// The guard and the operator must mean the same managers.
func TestTheManagersAreTheOperatorsDefaults(t *testing.T) {
	words := func(expression string) string { return strings.Join(strings.Fields(expression), " ") }
	var want, got []binding.ManagerConfig
	for _, m := range binding.DefaultManagers() {
		m.Targets = words(m.Targets)
		want = append(want, m)
	}
	for _, m := range defaults(t).Managers {
		m.Targets = words(m.Targets)
		got = append(got, binding.ManagerConfig(m))
	}
	assert.Equal(t, want, got)
}

func TestRenderingModes(t *testing.T) {
	actions := func(t *testing.T, objects []*unstructured.Unstructured, name string) []admissionv1.ValidationAction {
		t.Helper()
		for _, o := range objects {
			if o.GetKind() == "ValidatingAdmissionPolicyBinding" && o.GetName() == name {
				return as[admissionv1.ValidatingAdmissionPolicyBinding](t, o).Spec.ValidationActions
			}
		}
		t.Fatal(name, "is not bound")
		return nil
	}
	t.Run("Preserve puts counts back and warns", func(t *testing.T) {
		objects := render(t, defaults(t), MutatingAdmissionPolicies)
		assert.Equal(t, []string{"autoscale-guard-preserve"}, namesOf(objects, "MutatingAdmissionPolicy"))
		assert.Equal(t, []admissionv1.ValidationAction{admissionv1.Warn, admissionv1.Audit}, actions(t, objects, "autoscale-guard-deployments"))
	})
	t.Run("Preserve denies where no MutatingAdmissionPolicy is served", func(t *testing.T) {
		objects := render(t, defaults(t))
		assert.Empty(t, namesOf(objects, "MutatingAdmissionPolicy"))
		assert.Equal(t, []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit}, actions(t, objects, "autoscale-guard-deployments"))
	})
	t.Run("Off leaves the rule out, and who writes bindings is no mode", func(t *testing.T) {
		values := defaults(t)
		values.Guard.Modes = Modes{Off, Off, Off, Off}
		objects := render(t, values, MutatingAdmissionPolicies)
		assert.Len(t, objects, 2)
		assert.Equal(t, []string{"autoscale-guard-bindings"}, namesOf(objects, "ValidatingAdmissionPolicy"))
	})
	t.Run("an unknown mode is told, with those that there are", func(t *testing.T) {
		for _, set := range []func(*Modes){
			func(m *Modes) { m.Scale = "deny" },
			func(m *Modes) { m.Scale = Preserve },
			func(m *Modes) { m.Deployments = "Keep" },
			func(m *Modes) { m.HorizontalPodAutoscalers = Preserve },
			func(m *Modes) { m.Managers = "" },
		} {
			values := defaults(t)
			set(&values.Guard.Modes)
			_, err := Render(checkout(t), values, MutatingAdmissionPolicies)
			assert.ErrorContains(t, err, "is none of Off, Audit, Warn and Deny")
		}
	})
	t.Run("without break-glass groups nobody but the operator passes", func(t *testing.T) {
		values := defaults(t)
		values.Guard.BreakGlassGroups = nil
		rendered, err := Render(checkout(t), values, MutatingAdmissionPolicies)
		require.NoError(t, err)
		assert.NotContains(t, string(rendered), "groups")
		decode(t, rendered)
	})
}

// FC-37, for what would stop a cluster: a rule about others' objects that fails closed.
func TestFC37_RulesAboutObjectsOfOthersFailOpen(t *testing.T) {
	values := defaults(t)
	values.Guard.ExemptNamespaces = []string{"kube-system"}
	requireOpen := func(t *testing.T, policy *admissionv1.FailurePolicyType, param *admissionv1.ParamKind, match *admissionv1.MatchResources) (ours bool) {
		t.Helper()
		require.Nil(t, match.ObjectSelector, "an object's labels are for whoever writes it")
		for _, rule := range match.ResourceRules {
			require.NotContains(t, rule.Operations, admissionv1.Delete)
			require.NotContains(t, rule.Operations, admissionv1.OperationAll)
			for _, group := range rule.APIGroups {
				require.NotContains(t, []string{"", "*"}, group)
				ours = ours || group == ourGroup
			}
		}
		if ours {
			require.Len(t, match.ResourceRules, 1)
			require.Equal(t, []string{ourGroup}, match.ResourceRules[0].APIGroups)
			return true
		}
		require.Equal(t, admissionv1.Ignore, *policy)
		require.Equal(t, "ScaleGuard", param.Kind)
		require.Equal(t, []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"},
		}}, match.NamespaceSelector.MatchExpressions)
		return false
	}
	requireAllow := func(t *testing.T, ref *admissionv1.ParamRef, match *admissionv1.MatchResources) {
		t.Helper()
		require.Equal(t, &metav1.LabelSelector{}, ref.Selector)
		require.Empty(t, ref.Namespace, "the request's")
		require.Equal(t, admissionv1.AllowAction, *ref.ParameterNotFoundAction)
		require.Nil(t, match)
	}
	for _, o := range render(t, values, MutatingAdmissionPolicies) {
		t.Run(o.GetKind()+" "+o.GetName(), func(t *testing.T) {
			switch o.GetKind() {
			case "ValidatingAdmissionPolicy":
				p := as[admissionv1.ValidatingAdmissionPolicy](t, o)
				ours := requireOpen(t, p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConstraints)
				assert.Equal(t, p.Name == "autoscale-guard-bindings", ours)
				assert.Len(t, p.Spec.MatchConditions, 1, "all would be evaluated")
			case "MutatingAdmissionPolicy":
				p := as[admissionv1.MutatingAdmissionPolicy](t, o)
				assert.False(t, requireOpen(t, p.Spec.FailurePolicy, p.Spec.ParamKind, p.Spec.MatchConstraints))
			case "ValidatingAdmissionPolicyBinding":
				if b := as[admissionv1.ValidatingAdmissionPolicyBinding](t, o); b.Name != "autoscale-guard-bindings" {
					requireAllow(t, b.Spec.ParamRef, b.Spec.MatchResources)
				}
			case "MutatingAdmissionPolicyBinding":
				b := as[admissionv1.MutatingAdmissionPolicyBinding](t, o)
				requireAllow(t, b.Spec.ParamRef, b.Spec.MatchResources)
			default:
				t.Fatalf("a %s", o.GetKind())
			}
		})
	}
}

// FC-37: no webhook of ours matches anybody else's kind, so that none can stop a
// cluster's recovery, or our own.
func TestFC37_WebhooksMatchOurOwnKindsAlone(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(checkout(t), "config", "webhook", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	checked := 0
	check := func(name string, rules []admissionv1.RuleWithOperations) {
		require.NotEmpty(t, rules, name)
		for _, rule := range rules {
			assert.Equal(t, []string{ourGroup}, rule.APIGroups, name)
			assert.NotContains(t, rule.Operations, admissionv1.Delete, name)
			assert.NotContains(t, rule.Operations, admissionv1.OperationAll, name)
		}
		checked++
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, o := range decode(t, data) {
			switch o.GetKind() {
			case "ValidatingWebhookConfiguration":
				for _, webhook := range as[admissionv1.ValidatingWebhookConfiguration](t, o).Webhooks {
					check(webhook.Name, webhook.Rules)
				}
			case "MutatingWebhookConfiguration":
				for _, webhook := range as[admissionv1.MutatingWebhookConfiguration](t, o).Webhooks {
					check(webhook.Name, webhook.Rules)
				}
			default:
				t.Errorf("%s holds a %s", path, o.GetKind())
			}
		}
	}
	assert.GreaterOrEqual(t, checked, 2)
}
