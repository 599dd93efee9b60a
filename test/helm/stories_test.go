//go:build integration

package helm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

func TestFC26_ARenameInOneUpgrade(t *testing.T) {
	w := newWorld(t)
	w.tell(t, "is taken over by what waits", renameWithWait)
	w.tell(t, "fails where it may not wait, and loses nothing", renameWithReject)
}

func TestFC27_OneUpgradeReplaces(t *testing.T) {
	w := newWorld(t)
	w.tell(t, "an HPA by an AutoScaler that waits", fromHPA)
	w.tell(t, "a paused AutoScaler by an HPA", toHPA)
	w.tell(t, "no AutoScaler that is not paused", toHPAUnpaused)
}

func TestFC32_AChartThatSetsReplicas(t *testing.T) {
	w := newWorld(t)
	w.tell(t, "does not move a held count", withReplicas)
}

func renameWithWait(r *release) {
	r.upgrade("autoscaler=web")
	before := r.heldBy("web", v1alpha1.GuardClosed)
	r.scaled()
	writes := r.writesOfTheCount()

	// Helm creates web-hpa before it deletes web.
	r.upgrade("autoscaler=web-hpa", "claimPolicy=Wait")

	after := r.heldBy("web-hpa", v1alpha1.GuardClosed)
	assert.Equal(r, before.UID, after.UID, "the same binding")
	assert.Equal(r, before.Spec.TargetUID, after.Spec.TargetUID)
	assert.Greater(r, after.Spec.Epoch, before.Spec.Epoch, "fenced")
	assert.False(r, r.exists(&v1alpha1.AutoScaler{}, "web"))
	r.evaluates("web-hpa")
	assert.Equal(r, int32(demanded), r.replicas())
	assert.Equal(r, writes, r.writesOfTheCount(), "the hand-over writes no count")
}

func renameWithReject(r *release) {
	r.upgrade("autoscaler=web")
	before := r.heldBy("web", v1alpha1.GuardClosed)
	r.scaled()

	said := r.refused("autoscaler=web-hpa")

	assert.Contains(r, said, `held by AutoScaler "web"`)
	assert.Contains(r, said, "delete that AutoScaler, set its dryRun, or point it at another Deployment first")
	assert.False(r, r.exists(&v1alpha1.AutoScaler{}, "web-hpa"))
	assert.True(r, r.exists(&v1alpha1.AutoScaler{}, "web"), "helm deletes nothing after an error")
	assert.Equal(r, before.Spec, r.binding().Spec)
	assert.Equal(r, int32(demanded), r.replicas())

	// And the release goes on: the same rename, waiting.
	r.upgrade("autoscaler=web-hpa", "claimPolicy=Wait")
	r.heldBy("web-hpa", v1alpha1.GuardClosed)
}

func fromHPA(r *release) {
	r.upgrade("hpa=web")
	r.scaleAsHPA(demanded)
	writes := r.writesOfTheCount()
	require.Contains(r, r.refused("hpa=web", "autoscaler=web"), `HorizontalPodAutoscaler "web" already scales Deployment "web"`)
	require.True(r, r.exists(&autoscalingv2.HorizontalPodAutoscaler{}, "web"), "the refusal took nothing away")

	r.upgrade("autoscaler=web", "claimPolicy=Wait")

	assert.False(r, r.exists(&autoscalingv2.HorizontalPodAutoscaler{}, "web"))
	r.heldBy("web", v1alpha1.GuardClosed)
	r.evaluates("web")
	assert.Equal(r, int32(demanded), r.replicas())
	assert.Equal(r, writes, r.writesOfTheCount(), "the hand-over writes no count")
}

func toHPAUnpaused(r *release) {
	r.upgrade("autoscaler=web")
	before := r.heldBy("web", v1alpha1.GuardClosed)
	r.scaled()

	said := r.refused("hpa=web")

	assert.Contains(r, said, "AutoScaler web holds the replica count of Deployment "+r.namespace+"/web")
	assert.Contains(r, said, "pause it first")
	assert.False(r, r.exists(&autoscalingv2.HorizontalPodAutoscaler{}, "web"))
	assert.Equal(r, before.Spec, r.binding().Spec)
	assert.Equal(r, int32(demanded), r.replicas())
}

func toHPA(r *release) {
	r.upgrade("autoscaler=web")
	r.heldBy("web", v1alpha1.GuardClosed)
	r.scaled()
	writes := r.writesOfTheCount()

	// The guard opens when the AutoScaler is paused; then one upgrade does the rest.
	r.upgrade("autoscaler=web", "paused=true")
	r.heldBy("web", v1alpha1.GuardOpen)
	r.upgrade("hpa=web")

	assert.True(r, r.exists(&autoscalingv2.HorizontalPodAutoscaler{}, "web"))
	require.Eventually(r, func() bool { return r.binding().Free() }, handOver, 50*time.Millisecond, "released")
	assert.Equal(r, int32(demanded), r.replicas(), "the count stays as it is")
	assert.Equal(r, writes, r.writesOfTheCount())
}

func withReplicas(r *release) {
	r.upgrade("autoscaler=web", "replicas=2")
	r.heldBy("web", v1alpha1.GuardClosed)
	r.scaled()
	writes := r.writesOfTheCount()

	next := []string{"autoscaler=web", "replicas=2", "image=example.com/web:2"}
	if r.tool == binaries.Helm4 {
		// A server-side apply meets the owner of the field, and says who that is.
		said := r.refused(next...)
		assert.Contains(r, said, "autoscale-operator")
		assert.Contains(r, said, ".spec.replicas")
		next = append(next, "--force-conflicts")
	}
	r.upgrade(next...)
	assert.Equal(r, "example.com/web:2", r.image(), "the release goes through")
	assert.Equal(r, int32(demanded), r.replicas())

	// What is to be done: the chart leaves the count out.
	r.upgrade("autoscaler=web", "image=example.com/web:3")
	assert.Equal(r, "example.com/web:3", r.image())
	assert.Equal(r, int32(demanded), r.replicas())
	r.evaluates("web")
	assert.Equal(r, writes, r.writesOfTheCount(), "there was nothing to set right")
}

func (r *release) image() string {
	r.Helper()
	return r.deployment().Spec.Template.Spec.Containers[0].Image
}

// evaluates waits until an AutoScaler has looked at its Deployment and is content.
func (r *release) evaluates(name string) {
	r.Helper()
	require.Eventually(r, func() bool {
		var a v1alpha1.AutoScaler
		require.NoError(r, r.client.Get(r.Context(), r.key(name), &a))
		return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady) &&
			a.Status.TargetReplicas != nil && *a.Status.TargetReplicas == demanded
	}, handOver, 50*time.Millisecond, "%s is ready", name)
}
