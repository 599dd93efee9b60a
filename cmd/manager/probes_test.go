package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
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
	return &appsv1.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, s.list
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
