package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestReadinessSaysWhyNotAndLogsEachChangeOnce(t *testing.T) {
	var logged []string
	var failure error
	p := &probes{
		log:    funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}),
		checks: []probe{{"caches", func() error { return nil }}, {"certificate", func() error { return failure }}},
	}
	ask := func() (int, string) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return w.Code, w.Body.String()
	}
	failure = errors.New("not there\nyet")
	for range 2 {
		code, text := ask()
		assert.Equal(t, http.StatusServiceUnavailable, code)
		assert.Equal(t, "[+]caches ok\n[-]certificate: not there; yet\n", text)
	}
	failure = nil
	for range 2 {
		code, text := ask()
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "[+]caches ok\n[+]certificate ok\n", text)
	}
	require.Len(t, logged, 2)
	assert.Contains(t, logged[0], "[-]certificate: not there; yet")
	assert.Contains(t, logged[1], `"ready"`)

	p.leave()
	code, text := ask()
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "[-]process: this replica is ending\n")
}

// stored is what an API server has of Deployments, and whether it may be asked.
type stored struct {
	mu          sync.Mutex
	list, watch error
	opened      []*watch.FakeWatcher
}

func (s *stored) allow(toList, toWatch error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.watch = toList, toWatch
	for _, w := range s.opened {
		w.Stop()
	}
	s.opened = nil
}

func (s *stored) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &appsv1.DeploymentList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}},
	}, s.list
}

func (s *stored) Watch(o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.watch != nil:
		return nil, s.watch
	case o.SendInitialEvents != nil: // as of an API server that does not know it
		return nil, apierrors.NewBadRequest("sendInitialEvents is unknown")
	}
	w := watch.NewFake()
	s.opened = append(s.opened, w)
	return w, nil
}

func TestFC38AKindThatCannotBeWatchedIsNamedWithThePermissionThatIsMissing(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cannot := func(verb string) error { return apierrors.NewForbidden(deployments, "", errors.New("cannot "+verb)) }
	for name, tc := range map[string]struct {
		list, watch error
		want        string
	}{
		"may not list":  {cannot("list"), nil, "not synced: Deployment (deployments.apps is forbidden: cannot list)"},
		"may not watch": {nil, cannot("watch"), "not synced: Deployment (deployments.apps is forbidden: cannot watch)"},
	} {
		t.Run(name, func(t *testing.T) {
			c, server := &caches{}, &stored{list: tc.list, watch: tc.watch}
			informer := c.newInformer(server, &appsv1.Deployment{}, 0, toolscache.Indexers{})
			require.EqualError(t, c.check(), "not synced: Deployment (being listed)")
			go informer.RunWithContext(t.Context())
			says := func(want string) func() bool {
				return func() bool {
					err := c.check()
					return want == "" && err == nil || err != nil && err.Error() == want
				}
			}
			require.Eventually(t, says(tc.want), 20*time.Second, time.Millisecond)
			server.allow(nil, nil)
			require.Eventually(t, says(""), 20*time.Second, time.Millisecond, "the grant is enough")

			server.allow(nil, errors.New("connection refused"))
			require.Never(t, func() bool { return c.check() != nil }, 100*time.Millisecond, 5*time.Millisecond, "an API server that restarts")
			server.allow(nil, cannot("watch"))
			require.Eventually(t, says("not synced: Deployment (deployments.apps is forbidden: cannot watch)"), 20*time.Second, time.Millisecond, "taken away later")
		})
	}
}

// An operator of two namespaces may no longer look into one of them: it has been deleted,
// or only its role has.
func TestANamespaceThatIsRefusedStopsNoOther(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "",
		errors.New(`User "operator" cannot list resource "deployments" in API group "apps" in the namespace "staging"`))
	var deleted atomic.Bool
	begin := func(t *testing.T, production, staging error) (*caches, *stored, toolscache.SharedIndexInformer) {
		t.Helper()
		c := &caches{namespaces: []string{"production", "staging"}, gone: func(context.Context, string) bool { return deleted.Load() }}
		server := &stored{list: staging, watch: staging}
		for _, from := range []*stored{{list: production, watch: production}, server} {
			informer := c.newInformer(from, &appsv1.Deployment{}, 0, toolscache.Indexers{})
			go informer.RunWithContext(t.Context())
			if from == server {
				return c, server, informer
			}
		}
		panic("there are two")
	}
	ready := func(c *caches) func() bool { return func() bool { return c.check() == nil } }

	t.Run("at the start", func(t *testing.T) {
		c, server, informer := begin(t, nil, refused)
		require.Eventually(t, ready(c), 20*time.Second, time.Millisecond)
		server.allow(nil, nil)
		require.Eventually(t, func() bool { return len(informer.GetStore().List()) == 1 }, 40*time.Second, time.Millisecond, "when it may be seen again, it is")
	})
	t.Run("later, when its role has gone: what is known stays", func(t *testing.T) {
		c, server, informer := begin(t, nil, nil)
		require.Eventually(t, ready(c), 20*time.Second, time.Millisecond)
		server.allow(refused, refused)
		require.Never(t, func() bool { return c.check() != nil || len(informer.GetStore().List()) != 1 }, 2*time.Second, 10*time.Millisecond)
		deleted.Store(true)
		require.Eventually(t, func() bool { return len(informer.GetStore().List()) == 0 }, 40*time.Second, time.Millisecond, "and goes with the namespace")
		require.NoError(t, c.check())
	})
	t.Run("in all of them", func(t *testing.T) {
		other := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", errors.New(`cannot list in the namespace "production"`))
		c, _, informer := begin(t, other, refused)
		require.Eventually(t, informer.HasSynced, 20*time.Second, time.Millisecond)
		require.ErrorContains(t, c.check(), `in the namespace "staging"`)
	})
	t.Run("for another reason", func(t *testing.T) {
		c, _, informer := begin(t, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("at the cluster scope")))
		require.Never(t, func() bool { return informer.HasSynced() || c.check() == nil }, time.Second, 10*time.Millisecond)
	})
}

func TestAProcessThatIsToEndServesAWhileAndIsNotReadyMeanwhile(t *testing.T) {
	for name, delay := range map[string]time.Duration{"after a while": 5 * time.Second, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Now())
			stopping, stop := context.WithCancel(t.Context())
			left := make(chan struct{})
			ctx := outlive(stopping, clk, delay, func() { close(left) })
			require.NoError(t, ctx.Err())
			stop()
			<-left
			if delay > 0 {
				require.Eventually(t, clk.HasWaiters, 10*time.Second, time.Millisecond)
				clk.Step(delay - time.Millisecond)
				require.NoError(t, ctx.Err(), "it goes on serving")
				clk.Step(time.Millisecond)
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				assert.Fail(t, "it does not end")
			}
		})
	}
}
