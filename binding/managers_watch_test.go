package binding

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clientgotesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// apiServer answers discovery.
type apiServer struct {
	mu sync.Mutex
	// resources by "group/version"; a group exists when a version of it does.
	resources map[string][]metav1.APIResource
	down      bool
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: path}
	for gv := range s.resources {
		if name, version, _ := strings.Cut(gv, "/"); name == path {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	resources, found := s.resources[path]
	switch {
	case s.down:
		http.Error(w, "{}", http.StatusServiceUnavailable)
	case found:
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: path, APIResources: resources})
	case len(group.Versions) > 0:
		_ = json.NewEncoder(w).Encode(group)
	default:
		http.Error(w, "{}", http.StatusNotFound)
	}
}

func (s *apiServer) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// watched is a stage whose managers are started.
type watched struct {
	*testing.T
	*stage
	server *apiServer
	clock  *clocktesting.FakeClock

	mu      sync.Mutex
	changes []string
	logged  []string
}

var scaledObjects = []metav1.APIResource{{Name: "scaledobjects", Kind: "ScaledObject", Namespaced: true}}

func newWatched(t *testing.T, objects ...runtime.Object) *watched {
	t.Helper()
	w := &watched{T: t, server: &apiServer{resources: map[string][]metav1.APIResource{}}, clock: clocktesting.NewFakeClock(time.Now())}
	server := httptest.NewServer(w.server)
	t.Cleanup(server.Close)
	w.stage = newStage(t, discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1}), objects...)
	w.Managers.clock = w.clock
	w.OnChange(func(namespace, target string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changes = append(w.changes, namespace+"/"+target)
	})
	return w
}

// start runs the managers until the test ends, or the function it returns is called.
func (w *watched) start() (stop func()) {
	logger := funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logged = append(w.logged, args)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			assert.NoError(w, err)
		case <-time.After(20 * time.Second):
			assert.Fail(w, "the managers did not stop")
		}
	})
	w.Cleanup(stop)
	return stop
}

// tick makes the managers look again at what is served. A tick that comes before
// they wait for it is held for them.
func (w *watched) tick() {
	w.Helper()
	w.eventually("they wait for the next look", w.clock.HasWaiters)
	w.clock.Step(DefaultPresenceInterval)
}

func (w *watched) eventually(what string, condition func() bool) {
	w.Helper()
	require.Eventually(w, condition, 20*time.Second, 5*time.Millisecond, what)
}

func (w *watched) finds(target, want string) func() bool {
	return func() bool {
		err := w.Find(w.Context(), "shop", target)
		if want == "" {
			return err == nil
		}
		return err != nil && strings.Contains(err.Error(), want)
	}
}

// synced says that the cache of ScaledObjects answers, and not a live list.
func (w *watched) synced() bool {
	r := w.registered[0]
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.watches[metav1.NamespaceAll]
	return all != nil && all.informer.HasSynced()
}

func (w *watched) presence(kind int) presence {
	r := w.registered[kind]
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.presence
}

func (w *watched) seen(list *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(*list)
}

func (w *watched) takeChanges() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	changes := w.changes
	w.changes = nil
	slices.Sort(changes)
	return changes
}

// lists counts the lists of ScaledObjects that were asked for.
func (w *watched) lists() int {
	n := 0
	for _, a := range w.dynamic.Actions() {
		if a.Matches("list", "scaledobjects") {
			n++
		}
	}
	return n
}

func TestAServedKindIsLookedUpInTheCache(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("the cache is filled", func() bool { return w.synced() })
	before := w.lists()
	assert.ErrorContains(t, w.Find(t.Context(), "shop", "web"), `ScaledObject "a"`)
	assert.NoError(t, w.Find(t.Context(), "shop", "worker"))
	assert.NoError(t, w.Find(t.Context(), "elsewhere", "web"))
	assert.Equal(t, before, w.lists(), "no request")
	w.eventually("the first fill is told", func() bool { return slices.Equal(w.seen(&w.changes), []string{"shop/web"}) })
	assert.ErrorContains(t, w.FindLive(t.Context(), "shop", "web"), `ScaledObject "a"`)
	assert.Equal(t, before+1, w.lists())
}

func TestEveryChangeOfWhatIsScaledIsTold(t *testing.T) {
	w := newWatched(t)
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("the cache is filled", func() bool { return w.synced() })
	objects := w.dynamic.Resource(gvrs["ScaledObject"]).Namespace("shop")
	update := func(change func(*unstructured.Unstructured)) {
		obj, err := objects.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		change(obj)
		_, err = objects.Update(t.Context(), obj, metav1.UpdateOptions{})
		require.NoError(t, err)
	}

	_, err := objects.Create(t.Context(), manager("ScaledObject", "a", "web"), metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually("found", w.finds("web", `"a"`))
	w.eventually("told", func() bool { return slices.Equal(w.takeChanges(), []string{"shop/web"}) })

	update(func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"x": "y"}
	})
	update(func(u *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedField(u.Object, "worker", "spec", "scaleTargetRef", "name"))
	})
	w.eventually("the new one is found", w.finds("worker", `"a"`))
	assert.NoError(t, w.Find(t.Context(), "shop", "web"), "the old one is free")
	w.eventually("both are told, and nothing of the status", func() bool { return slices.Equal(w.takeChanges(), []string{"shop/web", "shop/worker"}) })

	update(func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) })
	w.eventually("one that is going is no conflict", w.finds("worker", ""))
	w.eventually("told", func() bool { return slices.Equal(w.takeChanges(), []string{"shop/worker"}) })
}

func TestFC38AKindMayComeAndGo(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.start()
	w.eventually("known to be absent", w.finds("web", ""))

	w.server.change(func() { w.server.resources["keda.sh/v1alpha1"] = scaledObjects })
	w.tick()
	w.eventually("found", w.finds("web", `ScaledObject "a"`))
	w.eventually("told", func() bool { return slices.Equal(w.takeChanges(), []string{"shop/web"}) })

	w.server.change(func() { delete(w.server.resources, "keda.sh/v1alpha1") })
	w.tick()
	w.eventually("gone", w.finds("web", ""))
	w.eventually("what it scaled is told", func() bool { return slices.Equal(w.takeChanges(), []string{"shop/web"}) })

	w.server.change(func() { w.server.resources["keda.sh/v1alpha1"] = scaledObjects })
	w.tick()
	w.eventually("found again", w.finds("web", `ScaledObject "a"`))
}

func TestDiscoveryThatFailsChangesNothing(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("the cache is filled", func() bool { return w.synced() })
	w.eventually("the other kind is absent", func() bool { return w.presence(1) == absent })
	w.server.change(func() { w.server.down = true })
	for range 3 {
		w.tick()
	}
	w.eventually("logged", func() bool { return len(w.seen(&w.logged)) >= 2 })
	assert.ErrorContains(t, w.Find(t.Context(), "shop", "web"), `ScaledObject "a"`)
	logged := w.seen(&w.logged)
	assert.Len(t, logged, 2, "once for each kind")
	assert.Contains(t, logged[0], "cannot be told")
}

func TestAVersionOrScopeThatIsNeverSeenIsLogged(t *testing.T) {
	w := newWatched(t)
	w.server.resources["keda.sh/v1"] = scaledObjects
	w.server.resources["datadoghq.com/v1alpha1"] = []metav1.APIResource{{Name: "watermarkpodautoscalers"}}
	w.start()
	w.tick()
	w.eventually("logged", func() bool { return len(w.seen(&w.logged)) == 2 })
	logged := strings.Join(w.seen(&w.logged), "\n")
	assert.Contains(t, logged, `served in other versions only (v1)`)
	assert.Contains(t, logged, `"resource"="scaledobjects.keda.sh" "version"="v1alpha1"`)
	assert.Contains(t, logged, "is not namespaced")
	assert.NoError(t, w.Find(t.Context(), "shop", "web"))
}

func TestFC38AMissingPermissionIsAnErrorUntilItIsGranted(t *testing.T) {
	for _, verbs := range [][]string{{"list", "watch"}, {"watch"}} {
		t.Run("without "+strings.Join(verbs, " and "), func(t *testing.T) {
			w := newWatched(t, manager("ScaledObject", "a", "web"))
			w.server.resources["keda.sh/v1alpha1"] = scaledObjects
			var mu sync.Mutex
			refusing := true
			refuse := func(verb string) error {
				mu.Lock()
				defer mu.Unlock()
				if refusing && slices.Contains(verbs, verb) {
					return apierrors.NewForbidden(gvrs["ScaledObject"].GroupResource(), "", errors.New("cannot "+verb))
				}
				return nil
			}
			w.dynamic.PrependReactor("list", "scaledobjects", func(clientgotesting.Action) (bool, runtime.Object, error) {
				err := refuse("list")
				return err != nil, nil, err
			})
			w.dynamic.PrependWatchReactor("scaledobjects", func(clientgotesting.Action) (bool, watch.Interface, error) {
				err := refuse("watch")
				return err != nil, nil, err
			})
			w.start()
			w.eventually("told", w.finds("worker", "scaledobjects.keda.sh is forbidden: cannot "+verbs[0]))
			w.eventually("by the watch", w.finds("worker", "watching scaledobjects.keda.sh"))
			assert.True(t, apierrors.IsForbidden(w.Find(t.Context(), "shop", "worker")))
			w.tick()
			w.tick()
			w.eventually("and goes on being told", w.finds("worker", "is forbidden"))
			assert.Len(t, w.seen(&w.logged), 1, "logged once")
			assert.Contains(t, w.seen(&w.logged)[0], "Grant the permission")

			mu.Lock()
			refusing = false
			mu.Unlock()
			w.tick()
			w.eventually("works at the next look", w.finds("worker", ""))
			w.eventually("and finds", w.finds("web", `ScaledObject "a"`))
		})
	}
}

func TestAKindThatGoesWhileItIsWatchedIsNoError(t *testing.T) {
	w := newWatched(t)
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.refuse("scaledobjects", apierrors.NewNotFound(gvrs["ScaledObject"].GroupResource(), ""))
	w.start()
	w.eventually("absent", func() bool { return w.presence(0) == absent })
	assert.NoError(t, w.Find(t.Context(), "shop", "web"))
}

func TestAnObjectThatSaysNonsenseIsLoggedOncePerGeneration(t *testing.T) {
	w := newWatched(t)
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	w.start()
	w.eventually("the cache is filled", func() bool { return w.synced() })
	objects := w.dynamic.Resource(gvrs["ScaledObject"]).Namespace("shop")
	bad := manager("ScaledObject", "bad", "web")
	bad.Object["spec"] = "none"
	_, err := objects.Create(t.Context(), bad, metav1.CreateOptions{})
	require.NoError(t, err)
	w.eventually("logged", func() bool { return len(w.seen(&w.logged)) == 1 })
	assert.Contains(t, w.seen(&w.logged)[0], `"resource"="scaledobjects.keda.sh" "namespace"="shop" "name"="bad"`)
	for _, generation := range []int64{0, 0, 2} {
		bad.SetGeneration(generation)
		bad.SetLabels(map[string]string{"at": time.Now().String()})
		_, err = objects.Update(t.Context(), bad, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	w.eventually("the new generation is logged", func() bool { return len(w.seen(&w.logged)) == 2 })
}

func TestStoppingLeavesNoWatchBehind(t *testing.T) {
	w := newWatched(t, manager("ScaledObject", "a", "web"))
	w.server.resources["keda.sh/v1alpha1"] = scaledObjects
	stop := w.start()
	w.eventually("the cache is filled", func() bool { return w.synced() })
	informer := w.registered[0].watchOf(metav1.NamespaceAll).informer
	stop()
	assert.True(t, informer.IsStopped())
	assert.ErrorContains(t, w.Find(t.Context(), "shop", "web"), `ScaledObject "a"`, "looked up live again")
}
