//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
)

// index evaluates the namespace's ScaleGuards and gives the wait.
func (h *harness) index(r *controller.GuardReconciler) time.Duration {
	h.Helper()
	result, err := r.Reconcile(h.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: h.namespace}})
	require.NoError(h, err)
	return result.RequeueAfter
}

// indexed looks again a second later, and gives what is held, by ScaleGuard.
func (h *harness) indexed(r *controller.GuardReconciler) map[string]string {
	h.Helper()
	h.advance(time.Second)
	require.Zero(h, h.index(r), "nothing is left to do")
	return held(h.T, h.client, h.namespace)
}

func held(t *testing.T, c client.Client, namespace string) map[string]string {
	t.Helper()
	var guards v1alpha1.ScaleGuardList
	require.NoError(t, c.List(t.Context(), &guards, client.InNamespace(namespace)))
	byName := map[string]string{}
	for _, g := range guards.Items {
		byName[g.Name] = g.Spec.Held
	}
	return byName
}

// closedBinding is a ScaleBinding that an AutoScaler is about to write under.
func closedBinding(namespace, deployment, owner string) *v1alpha1.ScaleBinding {
	return &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment},
		Spec: v1alpha1.ScaleBindingSpec{
			TargetRef: v1alpha1.TargetReference{Name: deployment}, Epoch: 1, Guard: v1alpha1.GuardClosed,
			OwnerRef: &v1alpha1.OwnerReference{Name: owner}, OwnerUID: types.UID(owner),
		},
	}
}

func (h *harness) guards() *controller.GuardReconciler {
	return &controller.GuardReconciler{Client: h.client, Clock: h.clock}
}

func TestTheGuardIsClosedExactlyWhileTheAutoScalerWouldWrite(t *testing.T) {
	h := newHarness(t)
	r := h.guards()
	closed := map[string]string{"guard": "/web=/"}
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	assert.Empty(t, h.indexed(r), "claimed at admission, and not confirmed yet")
	h.poll()
	assert.Equal(t, closed, h.indexed(r))

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
	h.poll()
	assert.Empty(t, h.indexed(r), "paused: a person may scale")
	h.scaleByHand(5)
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = false })
	h.poll()
	assert.Equal(t, closed, h.indexed(r))

	h.scaleByHand(0) // as break-glass, or where no policy is installed
	h.poll()
	assert.Empty(t, h.indexed(r), "FC-22: at 0 a person decides when it starts again")
	h.scaleByHand(2)
	h.poll()
	assert.Equal(t, closed, h.indexed(r))

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
	h.poll()
	assert.Empty(t, h.indexed(r), "a dry run holds nothing")
}

func TestWhatSomebodyChangedInTheIndexIsCorrected(t *testing.T) {
	h := newHarness(t)
	r := h.guards()
	want := map[string]string{"guard": "/web=/worker=queue/"}
	h.create(closedBinding(h.namespace, "worker", "queue"))
	h.create(closedBinding(h.namespace, "web", "web"))
	require.Equal(t, want, h.indexed(r))
	guard := func(name, held string) *v1alpha1.ScaleGuard {
		return &v1alpha1.ScaleGuard{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}, Spec: v1alpha1.ScaleGuardSpec{Count: 1, Held: held},
		}
	}
	for name, edit := range map[string]func(g *v1alpha1.ScaleGuard){
		"an entry of somebody's own": func(g *v1alpha1.ScaleGuard) { g.Spec.Held = "/web=/worker=queue/api=me/" },
		"an entry taken out":         func(g *v1alpha1.ScaleGuard) { g.Spec.Held = "/worker=queue/" },
		"nonsense":                   func(g *v1alpha1.ScaleGuard) { g.Spec.Held = "x" },
		"the count alone":            func(g *v1alpha1.ScaleGuard) { g.Spec.Count = 7 },
	} {
		t.Run(name, func(t *testing.T) {
			var g v1alpha1.ScaleGuard
			require.NoError(t, h.client.Get(h.ctx, h.key("guard"), &g))
			edit(&g)
			require.NoError(t, h.client.Update(h.ctx, &g))
			assert.Equal(t, want, h.indexed(r))
			require.NoError(t, h.client.Get(h.ctx, h.key("guard"), &g))
			assert.Equal(t, int32(2), g.Spec.Count)
		})
	}
	t.Run("deleted, and one of somebody's own", func(t *testing.T) {
		require.NoError(t, h.client.Delete(h.ctx, guard("guard", "")))
		h.create(guard("mine", "/api=me/"))
		h.create(guard("guard-1", "/api=me/"))
		assert.Equal(t, want, h.indexed(r))
	})
}

func TestANamespaceIsIndexedAtMostOnceASecond(t *testing.T) {
	h := newHarness(t)
	r := h.guards()
	h.create(closedBinding(h.namespace, "web", "web"))
	require.Zero(t, h.index(r), "the first at once")
	h.create(closedBinding(h.namespace, "worker", "queue"))
	h.advance(300 * time.Millisecond)

	wait := h.index(r)

	assert.Equal(t, 700*time.Millisecond, wait)
	assert.Equal(t, map[string]string{"guard": "/web=/"}, held(t, h.client, h.namespace))
	h.advance(wait)
	assert.Zero(t, h.index(r))
	assert.Equal(t, map[string]string{"guard": "/web=/worker=queue/"}, held(t, h.client, h.namespace))
}

func TestALargeIndexIsSpreadOverSeveralGuards(t *testing.T) {
	h := newHarness(t)
	r := h.guards()
	// Names of 253 characters, two to an entry: 689 entries fill a ScaleGuard.
	long := func(i int) string { return fmt.Sprintf("%0253d", i) }
	const n = 700
	for i := range n {
		h.create(closedBinding(h.namespace, long(i), long(i+n)))
	}
	require.Zero(t, h.index(r))

	guards := held(t, h.client, h.namespace)

	require.Len(t, guards, 2)
	assert.LessOrEqual(t, len(guards["guard"]), v1alpha1.MaxHeldBytes)
	all := 0
	for _, text := range guards {
		for i := range n {
			if _, ok := (&v1alpha1.ScaleGuard{Spec: v1alpha1.ScaleGuardSpec{Held: text}}).HolderOf(long(i)); ok {
				all++
			}
		}
	}
	assert.Equal(t, n, all, "each in one of them")
}

func TestANamespaceThatIsGoingIsLeftAlone(t *testing.T) {
	h := newHarness(t)
	r := h.guards()
	h.create(closedBinding(h.namespace, "web", "web"))
	require.NoError(t, h.client.Delete(h.ctx, namespace(h.namespace)))

	assert.Zero(t, h.index(r), "and no error that would be tried again for ever")
	assert.Empty(t, held(t, h.client, h.namespace))
}

// TestWatchesOfTheIndexAndOfRetention proves, with a real manager and caches, what
// wakes the two reconcilers, under the operator's own permissions.
func TestWatchesOfTheIndexAndOfRetention(t *testing.T) {
	const ns = "production"
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	c, err := client.New(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), namespace(ns)))
	stray := &v1alpha1.ScaleGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guard"}, Spec: v1alpha1.ScaleGuardSpec{Count: 1, Held: "/x=y/"}}
	require.NoError(t, c.Create(t.Context(), stray))
	startReconcilers(t, cp)
	is := func(namespace string, want map[string]string, why string) {
		t.Helper()
		assert.EventuallyWithT(t, func(ct *assert.CollectT) {
			assert.Equal(ct, want, held(t, c, namespace))
		}, 20*time.Second, 50*time.Millisecond, why)
	}
	is("default", map[string]string{}, "what an earlier process left is cleared")

	web := closedBinding(ns, "web", "web")
	require.NoError(t, c.Create(t.Context(), web))
	is(ns, map[string]string{"guard": "/web=/"}, "a binding that closes")
	require.NoError(t, c.Delete(t.Context(), &v1alpha1.ScaleGuard{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "guard"}}))
	is(ns, map[string]string{"guard": "/web=/"}, "a deleted ScaleGuard")
	web.Spec.OwnerRef.Name = "next"
	require.NoError(t, c.Update(t.Context(), web))
	is(ns, map[string]string{"guard": "/web=next/"}, "another holder")
	web.Spec.Guard = v1alpha1.GuardOpen
	require.NoError(t, c.Update(t.Context(), web))
	is(ns, map[string]string{}, "a binding that opens")

	// Retention: the end of the Deployment wakes a binding whose time is over.
	require.NoError(t, c.Create(t.Context(), builders.Deployment(ns, "web", 2)))
	web.Spec.OwnerRef, web.Spec.OwnerUID = nil, ""
	require.NoError(t, c.Update(t.Context(), web))
	long := metav1.NewTime(time.Now().Add(-2 * controller.Retention).Truncate(time.Second))
	web.Status = v1alpha1.ScaleBindingStatus{
		Phase: v1alpha1.PhaseFree, Epoch: 1,
		Transitions: []v1alpha1.BindingTransition{{Epoch: 1, Phase: v1alpha1.PhaseFree, Reason: "released", Time: long}},
	}
	require.NoError(t, c.Status().Update(t.Context(), web))
	require.NoError(t, c.Delete(t.Context(), builders.Deployment(ns, "web", 2)))
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		var list v1alpha1.ScaleBindingList
		require.NoError(ct, c.List(t.Context(), &list))
		assert.Empty(ct, list.Items)
	}, 20*time.Second, 50*time.Millisecond)
}

// startReconcilers runs both under the operator's account.
func startReconcilers(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	anyName := true
	mgr, err := ctrl.NewManager(unlimited(cp.Operator), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &anyName},
	})
	require.NoError(t, err)
	require.NoError(t, (&controller.GuardReconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr))
	require.NoError(t, (&controller.RetentionReconciler{Client: mgr.GetClient(), Arbiter: &binding.Arbiter{Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Clock: clock.RealClock{}}, Clock: clock.RealClock{}}).SetupWithManager(mgr))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}
