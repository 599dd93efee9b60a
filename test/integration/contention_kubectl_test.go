//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
)

// manifestHarness is a harness on a control plane that the real kubectl can reach.
type manifestHarness struct {
	*harness
	kubectl string
	env     []string
}

// apply applies a manifest of the Deployment "web"; negative replicas: without.
func (h *manifestHarness) apply(replicas int32, flags ...string) (string, error) {
	h.Helper()
	d := builders.Deployment(h.namespace, "web", replicas)
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	manifest, err := yaml.Marshal(d)
	require.NoError(h, err)
	cmd := exec.CommandContext(h.ctx, h.kubectl, append([]string{"apply", "-f", "-"}, flags...)...)
	cmd.Stdin = bytes.NewReader(manifest)
	cmd.Env = h.env
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func (h *manifestHarness) mustApply(replicas int32, flags ...string) {
	h.Helper()
	output, err := h.apply(replicas, flags...)
	require.NoError(h, err, output)
}

// reapply polls every 15 s for a time, and applies the manifest once a minute.
func (h *manifestHarness) reapply(d time.Duration, apply func()) *v1alpha1.AutoScaler {
	h.Helper()
	var a *v1alpha1.AutoScaler
	for i := 1; time.Duration(i)*15*time.Second <= d; i++ {
		h.advance(15 * time.Second)
		if i%4 == 0 {
			apply()
		}
		a = h.poll()
	}
	return a
}

// recovers checks that the AutoScaler goes on by itself where nobody disturbs it.
func (h *manifestHarness) recovers() {
	h.Helper()
	h.pollFor(15 * time.Minute)
	assert.Equal(h, int32(8), h.replicas(), "at the latest after the longest back-off")
	writes := h.scaleWrites.Load()
	a := h.pollFor(16 * time.Minute)
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionTrue, v1alpha1.ReasonScaleReady)
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
	assert.Nil(h, a.Status.Contention)
	assert.Equal(h, v1alpha1.PhaseHeld, h.binding().Status.Phase)
	assert.Equal(h, writes, h.scaleWrites.Load())
}

// TestFC32 applies a manifest with replicas: 1 every minute, with the real kubectl,
// while the AutoScaler wants 8.
func TestFC32(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	tools, err := binaries.Build(t.Context(), os.Stderr, binaries.Kubectl)
	require.NoError(t, err)
	c, err := client.NewWithWatch(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	cache := t.TempDir()

	// begins gives a Deployment that was applied with a count, and that its
	// AutoScaler has scaled to 8, if it was another.
	begins := func(t *testing.T, replicas int32, flags ...string) *manifestHarness {
		t.Helper()
		h := &manifestHarness{
			harness: &harness{
				T: t, ctx: t.Context(), client: c, events: &recordedEvents{},
				namespace: fmt.Sprintf("test-%d", testNumber.Add(1)),
				clock:     clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second).Add(123456789)),
			},
			kubectl: tools.Path(binaries.Kubectl),
			env:     append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "KUBECACHEDIR="+cache, "KUBERC=off"),
		}
		h.metrics = fixture.NewMetricServer(t, fixture.WithClock(h.clock.Now))
		h.create(namespace(h.namespace))
		h.restart()
		h.mustApply(replicas, flags...)
		h.create(h.autoscaler().Obj())
		h.metrics.Value(800)
		h.poll()
		require.Equal(t, int32(8), h.replicas())
		h.events.take()
		return h
	}

	for name, tc := range map[string]struct {
		flags   []string
		manager string
	}{
		"client-side apply":                        {nil, "kubectl-client-side-apply"},
		"server-side apply that forces its fields": {[]string{"--server-side", "--force-conflicts"}, "kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			h := begins(t, 1, tc.flags...)

			h.reapply(30*time.Minute, func() { h.mustApply(1, tc.flags...) })

			writes, statuses := h.scaleWrites.Load(), h.statusWrites.Load()
			t.Logf("%d scale writes and %d status writes in half an hour", writes, statuses)
			assert.LessOrEqual(t, writes, int32(7), "no fight: one write a minute would be 30")
			assert.GreaterOrEqual(t, writes, int32(4), "and it does not give up")
			assert.LessOrEqual(t, statuses, 3*writes+4)
			a := h.get("web")
			c := h.contended(a, writes)
			assert.Equal(t, tc.manager, c.Manager)
			message := h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonContended)
			assert.Contains(t, message, fmt.Sprintf("%q", tc.manager))
			assert.Contains(t, message, "spec.paused")
			assert.Len(t, only(h.events.take(), v1alpha1.ReasonContended), 1, "told once")
			h.recovers()
		})
	}

	t.Run("server-side apply that forces nothing is refused by the API server", func(t *testing.T) {
		h := begins(t, 1, "--server-side")

		a := h.reapply(5*time.Minute, func() {
			output, err := h.apply(1, "--server-side")
			require.Error(t, err)
			require.Contains(t, output, ".spec.replicas")
			require.Contains(t, output, `"autoscale-operator"`)
		})

		assert.Equal(t, int32(8), h.replicas())
		assert.Equal(t, int32(1), h.scaleWrites.Load())
		assert.Nil(t, a.Status.Contention)
	})

	t.Run("the field removed from a client-side manifest resets the count once", func(t *testing.T) {
		h := begins(t, 1)

		a := h.reapply(5*time.Minute, func() { h.mustApply(-1) })

		assert.Equal(t, int32(8), h.replicas())
		assert.Equal(t, int32(2), h.scaleWrites.Load())
		require.NotNil(t, a.Status.Contention)
		assert.Equal(t, [2]int32{8, 1}, [2]int32{a.Status.Contention.From, a.Status.Contention.To})
		assert.Equal(t, int32(1), a.Status.Contention.Changes)
		h.recovers()
	})

	t.Run("the field removed from a server-side manifest changes nothing", func(t *testing.T) {
		h := begins(t, 1, "--server-side")

		a := h.reapply(5*time.Minute, func() { h.mustApply(-1, "--server-side") })

		assert.Equal(t, int32(8), h.replicas())
		assert.Equal(t, int32(1), h.scaleWrites.Load())
		assert.Nil(t, a.Status.Contention)
	})

	t.Run("the only owner of the field gives it up, and nobody can be named", func(t *testing.T) {
		h := begins(t, 8, "--server-side")
		require.Zero(t, h.scaleWrites.Load())
		h.mustApply(-1, "--server-side")
		require.Equal(t, int32(1), h.replicas(), "the API server's default")

		a := h.poll()

		assert.Empty(t, h.contended(a, 1).Manager)
		message := h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonContended)
		assert.Contains(t, message, "a writer that managedFields do not name")
		h.recovers()
	})
}
