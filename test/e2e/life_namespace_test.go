//go:build e2e

package e2e

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/test/builders"
)

// namespaceGoes deletes a namespace in which Deployments are held.
func (w *world) namespaceGoes(operators int) {
	w.Helper()
	w.opensWarehouse()
	names := []string{"picking", "packing", "shipping"}
	w.stocks("200", names...)
	for _, name := range names {
		w.reaches(warehouse, name, 2, soon)
		w.settles(warehouse, name)
	}
	if operators == 0 {
		w.kubectl("--namespace="+systemNamespace, "scale", "deployment", release, "--replicas=0")
		w.end(release, systemNamespace)
	}
	begun := time.Now()
	w.removeNamespaces(warehouse)
	took := time.Since(begun)
	if operators == 0 {
		w.kubectl("--namespace="+systemNamespace, "scale", "deployment", release, "--replicas=2")
		w.rolledOut(systemNamespace, release)
	}
	w.report("- a namespace with 3 held Deployments was gone %.0f s after its deletion, with %d replicas of the operator (Kubernetes waits for the pods first, and looks every few seconds)", took.Seconds(), operators)
}

// soldInShop is the load on the shop's service, for whoever asks.
var soldInShop = strings.ReplaceAll(load, "$namespace", `"`+shop+`"`)

// opensWarehouse makes the warehouse's namespace, and a profile for what is sold in the
// shop. Both are removed with what is in the namespace.
func (w *world) opensWarehouse() {
	w.Helper()
	p := profile("sold", soldInShop)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: warehouse}}, p)
	w.Cleanup(func() { w.remove(p); w.removeNamespaces(warehouse) })
}

// stocks makes Deployments of the warehouse of 2 replicas, each with an AutoScaler.
func (w *world) stocks(perReplica string, names ...string) {
	w.Helper()
	for _, name := range names {
		w.create(deployment(warehouse, name, 2),
			builders.MakeAutoScaler(warehouse, name).Target(name).Metric("items", "sold", perReplica).Poll(5).Window(longWindow).Obj())
	}
}
