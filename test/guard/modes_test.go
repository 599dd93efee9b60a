//go:build integration

package guard

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/guard/policies"
)

// allRules sets one mode for all rules.
func allRules(mode policies.Mode) func(*policies.Values) {
	return func(v *policies.Values) {
		v.Guard.Modes = policies.Modes{Scale: mode, Deployments: mode, HorizontalPodAutoscalers: mode, Managers: mode}
	}
}

// audited gives what the audit log says that policies objected to in the namespace.
func (w *world) audited(user string) []string {
	w.Helper()
	requests, err := w.cp.Requests(w.Context(), user)
	require.NoError(w, err)
	var texts []string
	for _, r := range requests {
		if r.Namespace == w.namespace && !r.DryRun {
			texts = append(texts, r.PolicyFailures...)
		}
	}
	return texts
}

func TestRefusalsAndKeptCountsAreInTheAuditLog(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")
	u := w.as("eve-" + w.namespace)

	require.Error(t, w.putScale(u, "web", 9))
	require.NoError(t, w.patch(u, "web", `{"spec":{"replicas":9}}`, client.FieldOwner("a-script")))

	audited := w.audited("eve-" + w.namespace)
	require.Len(t, audited, 2)
	assert.Contains(t, audited[0], "autoscale-guard-scale: AutoScaler web holds")
	assert.Contains(t, audited[1], "autoscale-guard-deployments: AutoScaler web holds")
}

func TestModesOfTheRules(t *testing.T) {
	held := newWorld(t)
	held.deployment("web")
	held.hold("web=web")
	rules := []string{"autoscale-guard-scale", "autoscale-guard-deployments", hpaPolicy}
	// attempts gives the error of one attempt per rule, all by one user.
	attempts := func(t *testing.T, w *world, u *user) []error {
		t.Helper()
		defer func() { _ = w.admin().Delete(t.Context(), w.hpa("web", "web")) }()
		return []error{
			w.putScale(u, "web", 9),
			w.patch(u, "web", `{"spec":{"replicas":10}}`),
			u.Create(t.Context(), w.hpa("web", "web")),
		}
	}
	for _, mode := range []policies.Mode{policies.Deny, policies.Warn, policies.Audit, policies.Off} {
		t.Run(string(mode), func(t *testing.T) {
			w := &world{T: t, cp: held.cp, namespace: held.namespace}
			w.guardWith(allRules(mode))
			name := "eve-" + strings.ToLower(string(mode))
			u := w.as(name)

			errs := attempts(t, w, u)

			warnings, audited := u.warned(), w.audited(name)
			for i, rule := range rules {
				if mode == policies.Deny {
					require.True(t, apierrors.IsForbidden(errs[i]), "%v", errs[i])
					assert.ErrorContains(t, errs[i], rule)
				} else {
					assert.NoError(t, errs[i])
				}
				if mode == policies.Off {
					continue
				}
				require.Len(t, audited, len(rules))
				assert.Contains(t, audited[i], rule+": ")
				if mode == policies.Warn {
					requireRefused(t, w, warnings, rule, "web", "web")
				}
			}
			if mode == policies.Off {
				assert.Empty(t, audited)
			}
			if mode != policies.Warn {
				assert.Empty(t, warnings)
			}
			want := int32(10)
			if mode == policies.Deny {
				want = 3
			}
			assert.Equal(t, want, w.replicas("web"))
			require.NoError(t, w.putScale(w.operator(), "web", 3))
		})
	}
}

// Where no MutatingAdmissionPolicy is served, Preserve denies.
func TestPreserveWithoutMutatingPoliciesDenies(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web-scaler")
	values, err := policies.Defaults(root)
	require.NoError(t, err)
	rendered, err := policies.Render(root, values)
	require.NoError(t, err)
	require.NotContains(t, string(rendered), "MutatingAdmissionPolicy\n")
	w.Cleanup(func() { w.replaceGuard(context.Background(), func(*policies.Values) {}) })
	w.replacePolicies(t.Context(), decode(t, rendered))

	output, err := w.kubectl("apply", "--filename="+w.manifest("example.com/web:2", 5))

	require.Error(t, err, output)
	requireRefused(t, w, output, "autoscale-guard-deployments", "web", "web-scaler")
	assert.Contains(t, output, "which is 3 and would become 5")
	assert.EqualValues(t, 3, w.replicas("web"))
}

func TestExemptNamespacesAreLeftAloneByName(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	for _, each := range []*world{w, other} {
		each.deployment("web")
		each.hold("web=web")
	}
	w.guardWith(func(v *policies.Values) { v.Guard.ExemptNamespaces = []string{w.namespace} })
	u := w.as(person)

	assert.NoError(t, w.putScale(u, "web", 9))
	assert.NoError(t, w.patch(u, "web", `{"spec":{"replicas":10}}`))
	assert.EqualValues(t, 10, w.replicas("web"))
	assert.NoError(t, u.Create(t.Context(), w.hpa("web", "web")))
	assert.True(t, apierrors.IsForbidden(other.putScale(u, "web", 9)))
	assert.True(t, apierrors.IsForbidden(u.Create(t.Context(), w.guardOf("by-hand", "x=y"))), "the index stays the operator's")
}
