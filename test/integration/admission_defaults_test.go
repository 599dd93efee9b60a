//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// apply applies an object server-side as a person's tool would: it sends what is
// set and nothing else.
func (h *harness) apply(a *v1alpha1.AutoScaler, opts ...client.ApplyOption) error {
	h.Helper()
	u := plain(h.T, a, func(map[string]any) {})
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return h.client.Apply(h.ctx, client.ApplyConfigurationFromUnstructured(u), append(opts, client.FieldOwner("me"))...)
}

// open is an AutoScaler "web" that leaves open what can be left open.
func (h *harness) open() *v1alpha1.AutoScaler {
	h.Helper()
	a := h.autoscaler().Obj()
	a.Spec.PollIntervalSeconds, a.Spec.Behavior, a.Spec.Metrics[0].MaxAgeSeconds = 0, nil, 0
	return a
}

func TestWhatAnAutoScalerLeavesOpenIsStoredWithItsDefault(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.open())

	spec := h.get("web").Spec
	assert.Equal(t, int32(15), spec.PollIntervalSeconds)
	assert.Equal(t, v1alpha1.ClaimReject, spec.ClaimPolicy)
	assert.Equal(t, int32(60), spec.Metrics[0].MaxAgeSeconds)
	assert.Equal(t, &v1alpha1.Behavior{ScaleDownStabilizationSeconds: new(int32(300))}, spec.Behavior)
}

func TestADefaultDoesNotHideWhatTheSchemaRefuses(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.open()
	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   []string
	}{
		"a poll interval of 0":        {func(s map[string]any) { s["pollIntervalSeconds"] = int64(0) }, []string{"spec.pollIntervalSeconds", "greater than or equal to 5"}},
		"an empty claim policy":       {func(s map[string]any) { s["claimPolicy"] = "" }, []string{"spec.claimPolicy", `"Reject", "Wait"`}},
		"a number that is none":       {func(s map[string]any) { s["minReplicas"] = "two" }, []string{"spec.minReplicas", "integer"}},
		"a required field is missing": {func(s map[string]any) { delete(s, "maxReplicas") }, []string{"spec.maxReplicas: Required value"}},
		"the spec is missing":         {func(s map[string]any) { clear(s) }, []string{"spec.targetRef: Required value", "spec.minReplicas: Required value"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := plain(t, a.DeepCopy(), tc.change)
			err := h.client.Create(h.ctx, u)
			for _, want := range tc.want {
				require.ErrorContains(t, err, want)
			}
			assert.Empty(t, h.bindings(), "nothing is claimed for what cannot be stored")
		})
	}
	null := plain(t, a.DeepCopy(), func(s map[string]any) { s["pollIntervalSeconds"], s["behavior"] = nil, nil })
	require.NoError(t, h.client.Create(h.ctx, null), "null is as good as not set")
	assert.Equal(t, int32(15), h.get("web").Spec.PollIntervalSeconds)
}

func TestApplyingTwiceChangesNothingAndNobodyOwnsADefault(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.open()
	require.NoError(t, h.apply(a))
	first := h.get("web")

	require.NoError(t, h.apply(a))
	require.NoError(t, h.apply(a, client.DryRunAll))

	again := h.get("web")
	assert.Equal(t, first.ResourceVersion, again.ResourceVersion, "nothing was written")
	assert.Equal(t, int32(300), *again.Spec.Behavior.ScaleDownStabilizationSeconds)

	other := a.DeepCopy()
	other.Spec.PollIntervalSeconds = 45
	other.Spec.Behavior = &v1alpha1.Behavior{ScaleDownStabilizationSeconds: new(int32(0))}
	require.NoError(t, h.apply(other), "a default is no conflict for who sets the field later")
	assert.Equal(t, int32(45), h.get("web").Spec.PollIntervalSeconds)
	assert.Equal(t, int32(0), *h.get("web").Spec.Behavior.ScaleDownStabilizationSeconds)

	require.NoError(t, h.apply(a), "and taking it out gives the default again")
	assert.Equal(t, first.Spec, h.get("web").Spec)
}

// As kubectl diff sees it: what a dry run of the apply would change.
func TestADryRunOfWhatIsStoredShowsNoDifference(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.open()
	require.NoError(t, h.apply(a))
	stored := h.get("web")

	u := plain(t, a.DeepCopy(), func(map[string]any) {})
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	require.NoError(t, h.client.Apply(h.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"), client.DryRunAll))
	spec, found, err := unstructured.NestedMap(u.Object, "spec")
	require.NoError(t, err)
	require.True(t, found)
	want := plain(t, stored, func(map[string]any) {}).Object["spec"]
	assert.Equal(t, want, spec)
}

func TestAMetadataOnlyUpdateIsNotDefaulted(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.create(h.open())
	h.enableWebhooks()

	h.edit(func(a *v1alpha1.AutoScaler) { a.Labels = map[string]string{"team": "a"} })
	assert.Zero(t, h.get("web").Spec.PollIntervalSeconds)

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 21 })
	assert.Equal(t, int32(15), h.get("web").Spec.PollIntervalSeconds)
}

func TestServerSideApplyClaimsAndIsRefusedLikeACreate(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	require.NoError(t, h.apply(a))
	require.Equal(t, h.get("web").UID, h.binding().Spec.OwnerUID)
	require.NoError(t, h.apply(a))
	a.Spec.MaxReplicas = 30
	require.NoError(t, h.apply(a))
	assert.Equal(t, int64(1), h.binding().Spec.Epoch)

	a.Name = "second"
	assert.ErrorContains(t, h.apply(a), `held by AutoScaler "web"`)
}
