//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// What the second of two installs has, and its Deployment.
const (
	secondName = secondRelease + "-autoscale-operator"
	packing    = "packing"
)

// twoInstalls has two operators on the cluster, each for a namespace of its own. Nothing of
// them is left.
func (w *world) twoInstalls() {
	w.uninstall(release, systemNamespace)
	w.opensWarehouse()
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}})
	d, p := deployment(shop, service, 2), profile("items", load)
	a := builders.MakeAutoScaler(shop, service).Target(service).Metric("items", "items", fmt.Sprint(perReplica)).
		Poll(5).Window(longWindow).Obj()
	w.Cleanup(func() {
		w.order(0)
		w.uninstall(secondRelease, second)
		w.uninstall(release, systemNamespace)
		w.removeNamespaces(second, warehouse)
		w.remove(a, d, p)
	})
	begun := time.Now()
	w.mustUpgrade(binaries.Helm4, w.chart(), release, systemNamespace, "--set=watchNamespaces={"+shop+"}")
	took := time.Since(begun)
	// Time to install the second one, and to use it.
	k := w.keepsCertificate(2*took + 25*time.Second)
	w.mustUpgrade(binaries.Helm4, w.chart(), secondRelease, second, "--set=watchNamespaces={"+warehouse+"}", "--set=crds.enabled=false",
		"--set=certificates.mode=provided", "--set=certificates.secretName="+k.secret)
	k.tells()

	require.True(w, w.do("each refuses what is wrong in its own namespace, and nowhere else", (*world).eachRefuses))
	w.create(d, p, a)
	w.stocks("150", packing)
	w.order(loadOf4)
	require.True(w, w.do("FC-36 the second one's certificate expires, and is followed by another", func(w *world) { k.expires(w) }))
	var first held
	require.True(w, w.do("each scales what is its own", func(w *world) {
		w.reaches(shop, service, 4, 2*soon)
		w.reaches(warehouse, packing, 3, 2*soon)
		first = w.settles(shop, service)
		other := w.settles(warehouse, packing)
		w.report("- two installs: one scaled %s/%s to %d, the other one %s/%s to %d", shop, service, first.replicas, warehouse, packing, other.replicas)
	}))
	w.do("each has rights in its own namespace, and nowhere else", (*world).rightsEnd)
	w.do("another install that would overlap is refused, and leaves nothing", (*world).refusesAThird)
	w.do("one goes, and its guard with it; the other one stays", func(w *world) { w.oneGoes(first) })
}

// uninstall takes a release away, if it is there.
func (w *world) uninstall(name, namespace string, flags ...string) {
	w.Helper()
	_, err := w.run(w.tools.Path(binaries.Helm4), append([]string{"uninstall", name, "--namespace=" + namespace, "--ignore-not-found", "--wait"}, flags...)...)
	assert.NoError(w, err)
}

// eachRefuses asks in the namespaces of both, and in one of nobody's.
func (w *world) eachRefuses() {
	for _, namespace := range []string{shop, warehouse} {
		w.refusesWrong(namespace)
	}
	require.NoError(w, w.client.Create(w.Context(), w.wrong(monitoring), client.DryRunAll), "nobody is asked there")
	w.report("- an AutoScaler that is wrong is refused in %s and in %s, and in %s nobody is asked", shop, warehouse, monitoring)
}

// refusesWrong waits until an operator refuses what is wrong in a namespace.
func (w *world) refusesWrong(namespace string) {
	w.Helper()
	w.until("an operator to refuse what is wrong in "+namespace, soon, func(ctx context.Context) error {
		err := w.client.Create(ctx, w.wrong(namespace), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), noSuchProfile) {
			return errors.Join(errors.New("nobody refused it"), err)
		}
		return nil
	})
}

// scalesByHand tries to change a count, as a dry run, and gives what is said.
func (w *world) scalesByHand(namespace, name string) (string, error) {
	w.Helper()
	return w.run(w.tools.Path(binaries.Kubectl), "--namespace="+namespace, "scale", "deployment", name, "--replicas=7", "--dry-run=server")
}

// rightsEnd looks at the rights of both accounts in both namespaces.
func (w *world) rightsEnd() {
	first, other := account(systemNamespace, release), account(second, secondName)
	w.asWritten("two-first-own", first, shop)
	w.asWritten("two-first-other", first, warehouse)
	w.asWritten("two-second-own", other, warehouse)
	w.asWritten("two-second-other", other, shop)
	in := func(namespace string) []request {
		return []request{
			{"get list watch", "deployments.apps", namespace},
			{"get update", "deployments.apps/scale", namespace},
			{"get list watch", "autoscalers.autoscale.example.com", namespace},
			{"create get update delete", "scalebindings.autoscale.example.com", namespace},
			{"get list watch", "horizontalpodautoscalers.autoscaling", namespace},
		}
	}
	w.mayAll(true, first, in(shop))
	w.mayAll(true, other, in(warehouse))
	n := w.mayAll(false, first, append(in(warehouse), in(monitoring)...)) + w.mayAll(false, other, append(in(shop), in(monitoring)...)) +
		w.mayAll(false, first, in("")) + w.mayAll(false, other, in("")) +
		w.mayAll(false, first, never) + w.mayAll(false, other, []request{{"create get update", "leases.coordination.k8s.io", systemNamespace}})
	w.report("- rights end at `watchNamespaces`: %d SubjectAccessReviews about other namespaces denied", n)
}

// refusesAThird tries installs for which there is no room.
func (w *world) refusesAThird() {
	one := fmt.Sprintf(`release %q in namespace %q (ValidatingWebhookConfiguration %s)`, release, systemNamespace, release)
	other := fmt.Sprintf(`release %q in namespace %q (ValidatingWebhookConfiguration %s)`, secondRelease, second, secondName)
	for _, tc := range []struct {
		flags []string
		want  []string
	}{
		{nil, []string{"watches the namespaces", "and this one would watch all"}},
		{[]string{"--set=watchNamespaces={" + shop + "}"}, []string{one + " watches the namespace " + shop, "Each namespace has one operator"}},
		{[]string{"--set=watchNamespaces={" + monitoring + "," + warehouse + "}"}, []string{other + " watches the namespace " + warehouse, "Each namespace has one operator"}},
	} {
		said, err := w.upgrade(binaries.Helm4, w.chart(), thirdRelease, third, append(tc.flags, "--set=crds.enabled=false")...)
		if !assert.Error(w, err, tc.flags) {
			w.uninstall(thirdRelease, third)
		}
		for _, want := range tc.want {
			assert.Contains(w, said, want)
		}
		w.missing(&admissionv1.ValidatingWebhookConfiguration{}, thirdRelease+"-autoscale-operator")
		w.missing(&corev1.Namespace{}, third)
	}
	w.report("- a third install is refused by name of the one that is there: for all namespaces, for the first one's, and for one of the second one's; nothing of it is left")
}

func (w *world) missing(o client.Object, name string) {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKey{Name: name}, o)
	assert.True(w, apierrors.IsNotFound(err), "%T %s: %v", o, name, err)
}

// oneGoes shows whose guard is whose.
func (w *world) oneGoes(first held) {
	for namespace, name := range map[string]string{shop: service, warehouse: packing} {
		said, err := w.scalesByHand(namespace, name)
		require.Error(w, err)
		assert.Contains(w, said, "holds the replica count of Deployment "+namespace+"/"+name)
	}
	w.kubectl("--namespace="+monitoring, "scale", "deployment", "prometheus", "--replicas=1", "--dry-run=server")

	w.uninstall(secondRelease, second)
	w.until("the second one's guard to be gone", soon, func(context.Context) error {
		_, err := w.scalesByHand(warehouse, packing)
		return err
	})
	require.NoError(w, w.client.Create(w.Context(), w.wrong(warehouse), client.DryRunAll))
	said, err := w.scalesByHand(shop, service)
	require.Error(w, err)
	assert.Contains(w, said, "holds the replica count")
	w.refusesWrong(shop)
	w.unchanged(first)
	b, err := w.binding(w.Context(), warehouse, packing)
	require.NoError(w, err)
	assert.Equal(w, v1alpha1.PhaseHeld, b.Status.Phase, "what is stored stays")
	w.report("- with the second one uninstalled, the warehouse's count is anybody's, and the shop's is still guarded")
}
