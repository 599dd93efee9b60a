//go:build integration

package plugin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
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
	t.Run("audit without the ScaleBindings", func(t *testing.T) { w.at(t).auditsWithoutBindings() })
	t.Run("explain", func(t *testing.T) { w.at(t).explains() })
	t.Run("explain with few rights", func(t *testing.T) { w.at(t).explainsWithFewRights() })
	t.Run("a claim that waits", func(t *testing.T) { w.at(t).waits() })
	t.Run("a write through the scale subresource has no time", func(t *testing.T) { w.at(t).scales() })
	t.Run("completion", func(t *testing.T) { w.at(t).completes() })
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
	said = w.types("audit", "-n", "nothere", "--fail-on", "contested")
	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.complaint, "error: there is no namespace nothere")
	assert.NotContains(w, w.types("audit", "-n", namespace, "--no-headers").out, "NAMESPACE")
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

// auditsWithoutBindings shows that nothing is said of who holds what by somebody who may
// not read it.
func (w *world) auditsWithoutBindings() {
	path := w.user("blind",
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"autoscalers"}, Verbs: []string{"list"}},
	)

	said := w.typesWith(path, "audit")

	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.out, "whether AutoScaler held holds it cannot be read")
	assert.NotContains(w, said.out, "does not hold it")
	said = w.typesWith(path, "audit", "-n", "nothere")
	assert.NotContains(w, said.complaint, "namespaces", "who may not read namespaces is not told of it")
}

// explainsWithFewRights shows that what may not be read is left out.
func (w *world) explainsWithFewRights() {
	path := w.user("narrow", rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"autoscalers"}, Verbs: []string{"get"}})

	said := w.typesWith(path, "explain", "held")

	assert.Zero(w, said.code)
	assert.Regexp(w, `Count +cannot be read: deployments\.apps "held" is forbidden`, said.out)
	assert.Regexp(w, `Owner +cannot be read: scalebindings\..* is forbidden`, said.out)
	assert.Regexp(w, `Next +cannot be told: you may not read MetricProfile total`, said.out)
	assert.Contains(w, said.out, "The last decision")
}

// waits shows an AutoScaler that is to take over from an HPA: a planned hand-over is no
// fight.
func (w *world) waits() {
	w.create(
		builders.Deployment(namespace, "pay", 2), builders.HPA(namespace, "pay", "pay"),
		builders.MakeAutoScaler(namespace, "waiter").Target("pay").ClaimPolicy(v1alpha1.ClaimWait).Metric("total", "total", "100").Poll(5).Obj(),
	)
	require.Eventually(w, func() bool {
		return strings.Contains(w.types("explain", "waiter", "-n", namespace).out, "WaitingForRelease")
	}, within, lookEvery)

	said := w.types("explain", "asc/waiter", "-n", namespace)
	assert.Regexp(w, `Owner +claimed by this AutoScaler, which waits for HorizontalPodAutoscaler/pay to go \(epoch 1\)`, said.out)
	said = w.types("audit", "-n", namespace, "--no-headers")
	assert.Regexp(w, `pay +2 +managed +HorizontalPodAutoscaler/pay +1 +Open .* AutoScaler waiter stands by`, said.out)
}

// scales shows what managedFields say of a write through the scale subresource.
func (w *world) scales() {
	d := builders.Deployment(namespace, "by-hand", 2)
	w.create(d)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	require.NoError(w, w.client.SubResource("scale").Update(w.Context(), d, client.WithSubResourceBody(scale), client.FieldOwner("by-hand")))
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(d), d))
	owners := 0
	for i := range d.ManagedFields {
		if m := &d.ManagedFields[i]; binding.OwnsReplicas(m) {
			owners++
			assert.Equal(w, "by-hand", m.Manager)
			assert.Equal(w, "scale", m.Subresource)
			assert.Nil(w, m.Time, "docs/kubectl-autoscaler/audit.md says so")
		}
	}
	assert.Equal(w, 1, owners)

	said := w.types("audit", "-n", namespace, "-o", "json")
	assert.NotContains(w, said.out, "0001-01-01")
	assert.Regexp(w, `by-hand +3 +unowned +- +- +- +by-hand +-`, w.types("audit", "-n", namespace).out)
}

func (w *world) completes() {
	assert.Contains(w, w.types("__complete", "audit", "--fail-on", "contested,").out, "contested,unowned\n")
	assert.Contains(w, w.types("__complete", "handover", "-n", namespace, "").out, "hpa/\nscaledobject/\n")
	assert.Contains(w, w.types("__complete", "handover", "-n", namespace, "hpa/").out, "hpa/scaled\n")
	assert.Equal(w, ":4\n", w.types("__complete", "handover", "-n", namespace, "scaledobject/").out, "KEDA is not installed")
	said := w.types("__complete", "explain", "--server=https://127.0.0.1:1", "")
	assert.Equal(w, ":4\n", said.out, "a cluster that is away is no reason to disturb")
	assert.NotContains(w, said.complaint, "rror")
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
	said = w.types("explain", "-n", namespace)
	assert.Equal(w, 2, said.code)
	assert.Contains(w, said.complaint, "NAME is missing: say which AutoScaler, as in kubectl autoscaler explain web; in namespace production there is held")
	said = w.types("__complete", "explain", "-n", namespace, "")
	assert.Contains(w, said.out, "held\n")
	var d appsv1.Deployment
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "held"}, &d))
	assert.EqualValues(w, 9, *d.Spec.Replicas)
}
