//go:build integration

package integration

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
	program "example.com/platform/autoscale-operator/test/operator"
)

// documentedRules is the section that docs/platform-rules.md prints, all examples
// together.
func documentedRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/platform-rules.md")
	require.NoError(t, err)
	section := "rules:\n"
	for _, block := range regexp.MustCompile("(?s)```yaml\nrules:\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		section += block[1]
	}
	require.Equal(t, 3, strings.Count(section, "- name:"))
	return section
}

// warned collects what the API server warns of.
type warned struct{ texts []string }

func (w *warned) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// The examples of the manual, in the program's own configuration, hold at the API
// server.
func TestTheDocumentedPlatformRulesHoldAtTheAPIServer(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	program.Start(t, cp, program.Options{Config: "endpoints: [{name: main, url: 'http://127.0.0.1:9'}]\n" + documentedRules(t)})

	warnings := &warned{}
	config := rest.CopyConfig(unlimited(cp.Config))
	config.WarningHandler = warnings
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	shop, free := namespace("shop"), namespace("free")
	shop.Annotations = map[string]string{"example.com/replica-budget": "100"}
	for _, obj := range []client.Object{shop, free, builders.MakeMetricProfile("total").Obj()} {
		require.NoError(t, c.Create(t.Context(), obj))
	}
	protected := func(ns, name string, most int32) *builders.AutoScaler {
		return builders.MakeAutoScaler(ns, name).Target(name).Bounds(1, most).Steps(5, 2).Window(300)
	}

	t.Run("a budget counts the other AutoScalers of the namespace", func(t *testing.T) {
		require.NoError(t, c.Create(t.Context(), protected("shop", "api", 60).Obj()))
		var refused error
		require.Eventually(t, func() bool {
			refused = c.Create(t.Context(), protected("shop", "web", 41).Obj(), client.DryRunAll)
			return refused != nil
		}, 20*time.Second, 50*time.Millisecond, "the operator's cache has not seen the first one")
		require.True(t, apierrors.IsInvalid(refused), "%v", refused)
		assert.ErrorContains(t, refused, `spec.maxReplicas: Forbidden: platform rule "replica-budget": maxReplicas 41 and the 60 of the namespace's other AutoScalers exceed its budget of 100 replicas`)
		assert.NoError(t, c.Create(t.Context(), protected("shop", "web", 40).Obj()))
		assert.NoError(t, c.Create(t.Context(), protected("free", "web", 41).Obj()), "another namespace has no budget")
	})

	t.Run("all denials are told at once, in the order of the configuration", func(t *testing.T) {
		err := c.Create(t.Context(), builders.MakeAutoScaler("shop", "large").Target("large").Bounds(1, 200).Obj())
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		var status *apierrors.StatusError
		require.ErrorAs(t, err, &status)
		var fields []string
		for _, cause := range status.ErrStatus.Details.Causes {
			rule := regexp.MustCompile(`platform rule "([^"]*)"`).FindStringSubmatch(cause.Message)
			require.NotNil(t, rule, cause.Message)
			fields = append(fields, cause.Field+" "+rule[1])
		}
		assert.Equal(t, []string{"spec.maxReplicas replica-budget", "spec.maxReplicas large-needs-approval", "spec.behavior scale-down-protection"}, fields)
	})

	t.Run("one that violates a rule can be paused, but not enlarged", func(t *testing.T) {
		large := protected("free", "large", 150).Obj()
		large.Annotations = map[string]string{"example.com/approved-max-replicas": "150"}
		require.NoError(t, c.Create(t.Context(), large))
		edit := func(change func(*v1alpha1.AutoScaler)) error {
			var err error
			require.Eventually(t, func() bool { // the operator writes the status meanwhile
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(large), large))
				change(large)
				err = c.Update(t.Context(), large)
				return !apierrors.IsConflict(err)
			}, 20*time.Second, 50*time.Millisecond)
			return err
		}
		require.NoError(t, edit(func(a *v1alpha1.AutoScaler) { a.Annotations = nil }), "metadata alone is never held up")
		warnings.texts = nil
		require.NoError(t, edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }))
		assert.Contains(t, fmt.Sprint(warnings.texts), `spec.maxReplicas: platform rule "large-needs-approval": more than 100 replicas need an approval`)
		err := edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 151 })
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		assert.ErrorContains(t, err, "large-needs-approval")
		assert.NoError(t, edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 100 }))
	})
}
