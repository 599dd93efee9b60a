package binding

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgotesting "k8s.io/client-go/testing"
)

// watchOnly makes the managers watch these namespaces and no others.
func (w *watched) watchOnly(namespaces ...string) {
	for i, r := range w.registered {
		w.registered[i].namespaces = newRegisteredKind(r.config, r.targets, r.client, namespaces, r.changed).namespaces
	}
}

// listedIn are the namespaces in which ScaledObjects were listed or watched.
func (w *watched) listedIn() []string {
	var all []string
	for _, a := range w.dynamic.Actions() {
		if a.GetResource().Resource == "scaledobjects" {
			all = append(all, a.GetNamespace())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w *watched) allSynced(namespaces ...string) func() bool {
	return func() bool {
		for _, namespace := range namespaces {
			if watch := w.registered[0].watchOf(namespace); watch == nil || !watch.informer.HasSynced() {
				return false
			}
		}
		return true
	}
}

func TestOnlyTheNamespacesThatAreWatchedAreListed(t *testing.T) {
	elsewhere := manager("ScaledObject", "b", "web")
	elsewhere.SetNamespace("elsewhere")
	bank := manager("ScaledObject", "c", "ledger")
	bank.SetNamespace("bank")
	w := newWatched(t, manager("ScaledObject", "a", "web"), elsewhere, bank)
	w.watchOnly("bank", "shop")
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	stop := w.start()
	w.eventually("both caches are filled", w.allSynced("bank", "shop"))
	before := w.lists()
	assert.ErrorContains(t, w.Find(t.Context(), "shop", "web"), `ScaledObject "a"`)
	assert.ErrorContains(t, w.Find(t.Context(), "bank", "ledger"), `ScaledObject "c"`)
	assert.NoError(t, w.Find(t.Context(), "bank", "web"))
	assert.Equal(t, before, w.lists(), "no request")
	assert.Equal(t, []string{"bank", "shop"}, w.listedIn(), "and none of the whole cluster")
	w.eventually("the first fill is told", func() bool { return len(w.seen(&w.changes)) == 2 })
	assert.ElementsMatch(t, []string{"shop/web", "bank/ledger"}, w.seen(&w.changes))

	require.NoError(t, w.dynamic.Resource(gvrs["ScaledObject"]).Namespace("bank").Delete(t.Context(), "c", metav1.DeleteOptions{}))
	w.eventually("a change in one namespace is seen", func() bool { return w.Find(t.Context(), "bank", "ledger") == nil })

	informers := []interface{ IsStopped() bool }{w.registered[0].watchOf("bank").informer, w.registered[0].watchOf("shop").informer}
	stop()
	for _, informer := range informers {
		assert.True(t, informer.IsStopped())
	}
}

func TestWhatOneNamespaceIsToldHidesNothingInAnother(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.watchOnly("bank", "shop")
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("both caches are filled", w.allSynced("bank", "shop"))
	kind := w.registered[0]
	kind.leave(kind.watchOf("bank"), absent) // its API server was behind
	assert.ErrorContains(t, w.Find(t.Context(), "shop", "web"), `ScaledObject "a"`)
	assert.NoError(t, w.Find(t.Context(), "bank", "web"), "looked up live")
	kind.leave(kind.watchOf("shop"), absent)
	assert.NoError(t, w.Find(t.Context(), "shop", "web"), "the kind is not there")
}

func TestFC38APermissionThatIsMissingInOneNamespaceConcernsThatOneAlone(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.watchOnly("bank", "shop", "art")
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	var mu sync.Mutex
	refusing := true
	w.dynamic.PrependReactor("list", "scaledobjects", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if refusing && a.GetNamespace() != "shop" {
			return true, nil, apierrors.NewForbidden(gvrs["ScaledObject"].GroupResource(), "", errors.New("not in "+a.GetNamespace()))
		}
		return false, nil, nil
	})
	w.start()
	for _, namespace := range []string{"bank", "art"} {
		w.eventually("told where it is missing", func() bool {
			err := w.Find(t.Context(), namespace, "web")
			return err != nil && strings.Contains(err.Error(), "watching scaledobjects.keda.sh: failed to list scaledobjects.keda.sh: scaledobjects.keda.sh is forbidden: not in "+namespace)
		})
	}
	w.eventually("and not where it is there", w.finds("web", `ScaledObject "a"`))
	w.eventually("that one is watched", w.allSynced("shop"))
	for range 3 {
		w.tick()
	}
	w.eventually("logged once for each namespace", func() bool { return len(w.seen(&w.logged)) == 2 })

	mu.Lock()
	refusing = false
	mu.Unlock()
	w.tick()
	w.eventually("works at the next look", w.allSynced("art", "bank", "shop"))
	assert.NoError(t, w.Find(t.Context(), "bank", "web"))
	assert.Len(t, w.seen(&w.logged), 2)
}

func TestFC38AKindThatGoesIsForgottenInEachNamespace(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.watchOnly("bank", "shop")
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("both caches are filled", w.allSynced("bank", "shop"))
	w.server.change(func() { delete(w.server.resources, "keda.sh/v1alpha1") })
	w.tick()
	w.eventually("gone", w.finds("web", ""))
	assert.Nil(t, w.registered[0].watchOf("bank"))
	assert.Nil(t, w.registered[0].watchOf("shop"))
	w.server.change(func() { w.server.resources["keda.sh/v1alpha1"] = scaledObjects })
	w.tick()
	w.eventually("found again", w.finds("web", `ScaledObject "a"`))
	w.eventually("by both watches", w.allSynced("bank", "shop"))
}
