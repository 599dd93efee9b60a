//go:build integration

package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// TestLooking is what one sees of a cluster in which one Deployment is held, one has an
// HPA, one has two, and one nobody.
func TestLooking(t *testing.T) {
	w := newWorld(t)
	w.metrics.Value(900)
	w.create(
		builders.MakeMetricProfile("total").Obj(),
		builders.Deployment(namespace, "held", 9), builders.Deployment(namespace, "scaled", 2),
		builders.Deployment(namespace, "fought-over", 2), builders.Deployment(namespace, "alone", 2),
		builders.HPA(namespace, "scaled", "scaled"),
		builders.HPA(namespace, "one", "fought-over"), builders.HPA(namespace, "two", "fought-over"),
		builders.MakeAutoScaler(namespace, "held").Target("held").Metric("total", "total", "100").Poll(5).Steps(4, 2).Window(300).DownInterval(60).Obj(),
	)
	require.Eventually(t, func() bool {
		var a v1alpha1.AutoScaler
		return w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "held"}, &a) == nil &&
			meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) && a.Status.LastDecision != nil
	}, within, lookEvery)

	t.Run("audit", func(t *testing.T) { w.at(t).audits() })
	t.Run("audit of another's", func(t *testing.T) { w.at(t).auditsAsSomebodyElse() })
	t.Run("explain", func(t *testing.T) { w.at(t).explains() })
	t.Run("nothing was written", func(t *testing.T) {
		writes, err := w.controlPlane.Writes(t.Context(), reader)
		require.NoError(t, err)
		assert.Empty(t, writes)
	})
}

func (w *world) at(t *testing.T) *world {
	t.Helper()
	other := *w
	other.T = t
	return &other
}

func (w *world) audits() {
	said := w.types("audit", "-n", namespace)
	assert.Zero(w, said.code)
	var order []string
	for line := range strings.Lines(said.out) {
		if cells := strings.Fields(line); cells[0] == namespace {
			order = append(order, cells[1]+" "+cells[3])
		}
	}
	assert.Equal(w, []string{"fought-over contested", "alone unowned", "scaled managed", "held " + "held"}, order)
	assert.Contains(w, said.out, "HorizontalPodAutoscaler/one and HorizontalPodAutoscaler/two target it")
	assert.Contains(w, said.complaint, "4 Deployments: 1 contested, 1 unowned, 1 managed, 1 held")

	assert.Equal(w, 1, w.types("audit", "-A", "--fail-on", "contested").code)
	assert.Zero(w, w.types("audit", "-A", "--fail-on", "pending").code)
	assert.Zero(w, w.types("audit", "-n", "default", "--fail-on", "contested").code)
	assert.Zero(w, w.types("audit", "-n", namespace, "-l", "no=such", "--fail-on", "contested").code)
	said = w.types("audit", "-A", "--fail-on", "everything")
	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.complaint, `error: --fail-on "everything": it must be one of contested,`)

	var found struct {
		Deployments []struct {
			Deployment string
			Binding    *struct {
				AutoScaler, Phase, Guard, ClaimedBy string
				Epoch                               int64
			}
			LastForeignWrite *struct{ Manager string }
		}
	}
	require.NoError(w, json.Unmarshal([]byte(w.types("audit", "-n", namespace, "-o", "json").out), &found))
	require.Len(w, found.Deployments, 4)
	held := found.Deployments[3]
	require.NotNil(w, held.Binding)
	assert.Equal(w, "held", held.Binding.AutoScaler)
	assert.Equal(w, "Held", held.Binding.Phase)
	assert.Equal(w, int64(1), held.Binding.Epoch)
	require.NotNil(w, held.LastForeignWrite, "who made the Deployment set its count")
}

// auditsAsSomebodyElse shows that an audit that cannot see everything says so.
func (w *world) auditsAsSomebodyElse() {
	path := w.user("lister", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}})

	said := w.typesWith(path, "audit")

	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.out, "fought-over", "what can be seen is shown")
	assert.Contains(w, said.complaint, "4 Deployments: 4 unknown")
	assert.Contains(w, said.complaint, "this is not the whole truth")
	for _, kind := range []string{"ScaleBindings", "AutoScalers", "HorizontalPodAutoscalers"} {
		assert.Contains(w, said.complaint, kind)
	}
}

func (w *world) explains() {
	said := w.types("explain", "held", "-n", namespace)
	assert.Zero(w, said.code)
	assert.Contains(w, said.out, "9 wanted")
	assert.Contains(w, said.out, "this AutoScaler, Held (epoch 1)")
	assert.Regexp(w, `total +Valid +9 +9 +9 +9 +9`, said.out)
	assert.Contains(w, said.out, "nothing, unless the load changes")

	w.metrics.Value(400)
	require.Eventually(w, func() bool {
		said = w.types("explain", "held", "-n", namespace)
		return strings.Contains(said.out, "down to 7 in")
	}, within, lookEvery, "a pending scale-down is foretold")
	assert.Regexp(w, `Next +down to 7 in (4m|5m)`, said.out)
	assert.Contains(w, said.out, "ScaleDownStabilized")

	said = w.types("explain", "nobody", "-n", namespace)
	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.complaint, "there is no AutoScaler nobody in namespace production")
	said = w.types("__complete", "explain", "-n", namespace, "")
	assert.Contains(w, said.out, "held\n")
	var d appsv1.Deployment
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "held"}, &d))
	assert.EqualValues(w, 9, *d.Spec.Replicas)
}
