//go:build integration

package guard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func TestFC33_ForeignScaleWritesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web-scaler")
	for name, write := range map[string]func() error{
		"PUT by a person":             func() error { return w.putScale(w.as(person), "web", 9) },
		"PATCH by a person":           func() error { return w.patchScale(w.as(person), "web", 9) },
		"PUT by a service account":    func() error { return w.putScale(w.as(deployer), "web", 9) },
		"PUT by the HPA controller":   func() error { return w.putScale(w.as(hpaController), "web", 9) },
		"PATCH by the HPA controller": func() error { return w.patchScale(w.as(hpaController), "web", 9) },
		"a dry run":                   func() error { return w.putScale(w.as(person), "web", 9, client.DryRunAll) },
	} {
		t.Run(name, func(t *testing.T) {
			err := write()
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			requireRefused(t, w, err.Error(), "autoscale-guard-scale", "web", "web-scaler")
			assert.EqualValues(t, 3, w.replicas("web"))
		})
	}
	t.Run("kubectl scale", func(t *testing.T) {
		output, err := w.kubectl("scale", "deployment/web", "--replicas=9")
		require.Error(t, err, output)
		requireRefused(t, w, output, "autoscale-guard-scale", "web", "web-scaler")
		assert.EqualValues(t, 3, w.replicas("web"))
	})
}

func TestAHolderOfTheDeploymentsNameMayBeLeftOut(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("api=", "web=")

	err := w.putScale(w.as(person), "web", 9)

	require.Error(t, err)
	requireRefused(t, w, err.Error(), "autoscale-guard-scale", "web", "web")
}

func TestFC33_TheOperatorsOwnWritePasses(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")

	require.NoError(t, w.putScale(w.clientOf(w.cp.Operator), "web", 7), "with the rights of its role")

	assert.EqualValues(t, 7, w.replicas("web"))
}

func TestFC33_AScaleWriteThatChangesNothingPasses(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")

	assert.NoError(t, w.putScale(w.as(hpaController), "web", 3))
	assert.NoError(t, w.patchScale(w.as(person), "web", 3))
	output, err := w.kubectl("scale", "deployment/web", "--replicas=3")
	assert.NoError(t, err, output)
}

func TestFC22_APersonMaySuspendAndResume(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")

	t.Run("no system account may suspend", func(t *testing.T) {
		for _, account := range []string{deployer, hpaController, "system:kube-controller-manager"} {
			err := w.putScale(w.as(account), "web", 0)
			require.True(t, apierrors.IsForbidden(err), "%s: %v", account, err)
		}
	})
	t.Run("a person may", func(t *testing.T) {
		output, err := w.kubectl("scale", "deployment/web", "--replicas=0")
		require.NoError(t, err, output)
		require.Zero(t, w.replicas("web"))
	})
	t.Run("from 0 anybody may resume, before the guard is open", func(t *testing.T) {
		require.NoError(t, w.putScale(w.as(deployer), "web", 2))
		require.EqualValues(t, 2, w.replicas("web"))
	})
	t.Run("then the count is held again", func(t *testing.T) {
		assert.True(t, apierrors.IsForbidden(w.putScale(w.as(person), "web", 3)))
	})
	t.Run("an update of the Deployment may do the same", func(t *testing.T) {
		require.NoError(t, w.patch(w.as(deployer), "web", `{"spec":{"replicas":0}}`))
		require.EqualValues(t, 2, w.replicas("web"), "not by a system account")
		require.NoError(t, w.patch(w.as(person), "web", `{"spec":{"replicas":0}}`))
		require.Zero(t, w.replicas("web"))
		require.NoError(t, w.patch(w.as(deployer), "web", `{"spec":{"replicas":4}}`))
		assert.EqualValues(t, 4, w.replicas("web"))
	})
}

// The seed's manual take-over: pause, scale by hand, resume. While the AutoScaler is
// paused the operator has taken its entry out of the index.
func TestAManualTakeOverWorksAsWritten(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.deployment("api")
	w.hold("api=api", "web=web")
	guard := &v1alpha1.ScaleGuard{}
	require.NoError(t, w.operator().Get(t.Context(), w.key("guard"), guard))

	guard.Spec = w.guardOf("guard", "api=api").Spec
	require.NoError(t, w.operator().Update(t.Context(), guard))
	w.awaitScaling("web", true)
	output, err := w.kubectl("scale", "deployment/web", "--replicas=9")
	require.NoError(t, err, output)
	require.EqualValues(t, 9, w.replicas("web"))
	require.Error(t, w.putScale(w.as(person), "api", 9), "the other is held all the time")

	guard.Spec = w.guardOf("guard", "api=api", "web=web").Spec
	require.NoError(t, w.operator().Update(t.Context(), guard))
	w.awaitScaling("web", false)
	assert.True(t, apierrors.IsForbidden(w.putScale(w.as(person), "web", 10)))
}

// Deleting the index is the way out without an operator.
func TestDeletingTheScaleGuardsOpensTheGuard(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")

	output, err := w.kubectl("delete", "scaleguards.autoscale.example.com", "--all")
	require.NoError(t, err, output)

	w.awaitScaling("web", true)
}

func TestBreakGlassPassesEveryRule(t *testing.T) {
	w := newWorld(t)
	w.deployment("web")
	w.hold("web=web")
	u := w.as(person, breakGlass)

	assert.NoError(t, w.putScale(u, "web", 8))
	assert.EqualValues(t, 8, w.replicas("web"))
	assert.NoError(t, w.patch(u, "web", `{"spec":{"replicas":9}}`))
	assert.EqualValues(t, 9, w.replicas("web"))
	assert.NoError(t, u.Create(t.Context(), w.hpa("web", "web")))
	assert.NoError(t, u.Create(t.Context(), w.guardOf("by-hand", "x=y")))
	assert.Empty(t, u.warned())

	output, err := w.kubectl("--as-group="+breakGlass, "scale", "deployment/web", "--replicas=5")
	require.NoError(t, err, output)
	assert.EqualValues(t, 5, w.replicas("web"))
}

func TestNamesThatContainOneAnotherAreNotConfused(t *testing.T) {
	names := []string{"web", "my-web", "web-a", "a.web", "web.a", "we", "eb", "a"}
	w := newWorld(t)
	for _, name := range names {
		w.deployment(name)
	}
	for _, held := range names {
		t.Run(held, func(t *testing.T) {
			w.T = t
			// Holders bear the other Deployments' names.
			w.hold(held+"=web.a", "zz=a")
			for _, name := range names {
				err := w.putScale(w.as(person), name, 9, client.DryRunAll)
				if name == held {
					require.Error(t, err)
					requireRefused(t, w, err.Error(), "autoscale-guard-scale", held, "web.a")
				} else {
					require.NoError(t, err, "%s is not held", name)
				}
			}
			require.NoError(t, w.operator().Delete(t.Context(), w.guardOf("guard", "x=y")))
			w.awaitScaling(held, true)
		})
	}
}

func TestEveryScaleGuardOfTheNamespaceCounts(t *testing.T) {
	w := newWorld(t)
	other := newWorld(t)
	w.deployment("web")
	other.deployment("web")
	w.hold("api=api")
	w.holdIn("guard-1", "web=web")

	err := w.putScale(w.as(person), "web", 9)
	require.Error(t, err)
	requireRefused(t, w, err.Error(), "autoscale-guard-scale", "web", "web")
	assert.NoError(t, other.putScale(w.as(person), "web", 9), "another namespace's are none of its business")
}
