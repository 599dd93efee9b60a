//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestCreatingANameThatExistsEndsInAlreadyExists(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	again := func() *v1alpha1.AutoScaler {
		return builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "100").Obj()
	}
	elsewhere, bad := again(), again()
	elsewhere.Spec.TargetRef.Name = "api"
	bad.Spec.Metrics[0].MetricProfileRef = "missing"

	for name, a := range map[string]*v1alpha1.AutoScaler{"the same": again(), "another target": elsewhere, "a bad one": bad} {
		assert.True(t, apierrors.IsAlreadyExists(h.client.Create(h.ctx, a.DeepCopy())), name)
		assert.True(t, apierrors.IsAlreadyExists(h.client.Create(h.ctx, a, client.DryRunAll)), name)
	}
	require.Len(t, h.bindings(), 1, "no claim is left behind")
	assert.Equal(t, int64(1), h.binding().Spec.Epoch)
}

func TestCreatingANameThatExistsBesideALateHPAEndsInAlreadyExists(t *testing.T) {
	h := bound(t)
	h.create(builders.HPA(h.namespace, "late", "web"))
	again := builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "100").Obj()
	err := h.client.Create(h.ctx, again)
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

func TestAGeneratedNameIsClaimedUnderTheFinalName(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	a := h.autoscaler().Obj()
	a.Name, a.GenerateName = "", "web-"
	h.create(a)

	assert.Equal(t, a.Name, h.binding().Spec.OwnerRef.Name)
	assert.Equal(t, a.UID, h.binding().Spec.OwnerUID)
}

// What the operator derives bears the Deployment's own name, whole.
func TestFC47_LongAndDottedNamesAreKeptWhole(t *testing.T) {
	h := newHarness(t)
	profile := h.profile("total")
	long := func(n int) string {
		return strings.Repeat("abcdefghi.", 26)[:n-1] + "z"
	}
	dash := strings.Repeat("a", 53) + "-" + strings.Repeat("b", 9)
	for name, tc := range map[string]struct{ autoscaler, deployment string }{
		"64 characters":                       {long(64), long(64)},
		"200 characters":                      {long(200), long(200)},
		"253 characters":                      {long(253), long(253)},
		"names that differ at the 253rd only": {long(252) + "a", long(252) + "a"},
		"dots":                                {"a.b.c", "a.b.c"},
		"63 with a dash as the 54th":          {dash, dash},
		"a long one for a short Deployment":   {long(253)[:250] + "xyz", "short"},
		"a short one for a long Deployment":   {"short", long(253)[:250] + "xyz"},
	} {
		t.Run(name, func(t *testing.T) {
			d := builders.Deployment(h.namespace, "app", 2) // a label's value is shorter
			d.Name = tc.deployment
			require.NoError(t, h.client.Create(h.ctx, d))
			a := builders.MakeAutoScaler(h.namespace, tc.autoscaler).Target(tc.deployment).Metric("load", profile, "100").Obj()
			require.NoError(t, h.client.Create(h.ctx, a))
			h.metrics.Value(500)

			_, err := h.reconcile(tc.autoscaler)
			require.NoError(t, err)

			var b v1alpha1.ScaleBinding
			require.NoError(t, h.client.Get(h.ctx, h.key(tc.deployment), &b))
			assert.Equal(t, tc.autoscaler, b.Spec.OwnerRef.Name)
			assert.Equal(t, tc.deployment, b.Spec.TargetRef.Name)
			assert.Equal(t, v1alpha1.PhaseHeld, b.Status.Phase)
			require.NoError(t, h.client.Get(h.ctx, client.ObjectKeyFromObject(d), d))
			assert.Equal(t, int32(5), *d.Spec.Replicas)

			rival := builders.MakeAutoScaler(h.namespace, "rival").Target(tc.deployment).Metric("load", profile, "100").Obj()
			assert.ErrorContains(t, h.client.Create(h.ctx, rival), `held by AutoScaler "`+tc.autoscaler+`"`)
		})
	}
}

// The metric source is a black hole; admission does not notice. What admission costs
// among 10,000 others is measured in test/perf.
func TestFC39_AdmissionAsksNoMetricSource(t *testing.T) {
	h := newHarness(t)
	h.metrics.Hang()
	for i := range 20 {
		name := fmt.Sprintf("web-%d", i)
		h.create(builders.Deployment(h.namespace, name, 1))
		h.create(builders.HPA(h.namespace, "other-"+name, "other-"+name))
	}
	profile := h.profile("total")
	for i := range 20 {
		name := fmt.Sprintf("web-%d", i)
		h.create(builders.MakeAutoScaler(h.namespace, name).Target(name).Metric("load", profile, "100").Obj())
	}

	assert.Len(t, h.bindings(), 20)
	assert.Zero(t, h.metrics.RequestCount())
}
