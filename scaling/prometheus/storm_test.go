package prometheus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/fixture"
)

// stepClock moves only when it is told to. Unlike synctest's it gets on with
// real connections.
type stepClock struct {
	mu      sync.Mutex
	now     time.Time
	waiting []wait
}

type wait struct {
	until time.Time
	fire  chan time.Time
}

func (c *stepClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	fire := make(chan time.Time, 1)
	c.waiting = append(c.waiting, wait{c.now.Add(d), fire})
	return fire
}

func (c *stepClock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	late := c.waiting[:0]
	for _, w := range c.waiting {
		if w.until.After(c.now) {
			late = append(late, w)
			continue
		}
		w.fire <- c.now
	}
	c.waiting = late
}

// settle waits until everything that is due has been asked and answered.
func settle(tb testing.TB, s *Sampler) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.opts.Clock.Now()
		for _, l := range s.lanes {
			if row, at := l.next(now); l.running > 0 || row != nil && !at.After(now) {
				l.wake()
				return false
			}
		}
		return true
	}, time.Minute, 100*time.Microsecond)
}

func TestFC54_StormOfFailuresIsBoundedInEveryRespect(t *testing.T) {
	const subscribers, concurrency = 500, 4
	cases := map[string]struct {
		set     func(*fixture.MetricServer)
		asked   int // distinct queries
		timeout time.Duration
	}{
		"of 401":      {func(s *fixture.MetricServer) { s.Status(http.StatusUnauthorized) }, subscribers, time.Minute},
		"of timeouts": {func(s *fixture.MetricServer) { s.Hang() }, 20, 10 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := fixture.NewMetricServer(t)
			c.set(server)
			clock := &stepClock{now: time.Unix(1795953600, 0)}
			client, err := NewClient([]Endpoint{{Name: "main", URL: server.URL(), MaxConcurrentQueries: concurrency}}, clock.Now)
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(5, 4))
			s := NewSampler(client, SamplerOptions{Clock: clock, Jitter: random.Float64})
			before := runtime.NumGoroutine()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			for i := range subscribers {
				q := Question{Profile: "requests", Endpoint: "main", Expr: fmt.Sprint("q", i%c.asked), Timeout: c.timeout}
				s.Subscribe(Subscriber(fmt.Sprint(i)), 15*time.Second, []Measure{{Load: q, MaxAge: time.Minute}})
			}
			goroutines := 0
			for range 10 * 60 {
				clock.step(time.Second)
				settle(t, s)
				open, _ := server.Connections()
				require.LessOrEqual(t, open, 2*concurrency, "sockets")
				goroutines = max(goroutines, runtime.NumGoroutine()-before)
			}
			_, total := server.Connections()
			requests := server.RequestCount()
			t.Logf("%d requests for %d questions in 10 min, %d connections, at most %d goroutines more", requests, c.asked, total, goroutines)
			assert.Less(t, goroutines, 60)
			assert.LessOrEqual(t, requests, 14*c.asked, "backed off: 41 intervals")
			assert.GreaterOrEqual(t, requests, 10*c.asked, "but never given up")
			if name == "of 401" {
				assert.LessOrEqual(t, total, 2*concurrency, "connections are used again")
			}
			stop()
			require.NoError(t, <-done)
		})
	}
}

func TestFC54_SocketsStayConstantUnderManyQuestions(t *testing.T) {
	server := fixture.NewMetricServer(t)
	clock := &stepClock{now: time.Unix(1795953600, 0)}
	client, err := NewClient([]Endpoint{{Name: "main", URL: server.URL()}}, clock.Now)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	s := NewSampler(client, SamplerOptions{Clock: clock, Jitter: random.Float64})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range 300 {
		s.Subscribe(Subscriber(fmt.Sprint(i)), 15*time.Second, []Measure{{Load: Question{Endpoint: "main", Expr: fmt.Sprint("q", i)}}})
	}
	for range 60 {
		clock.step(time.Second)
		settle(t, s)
	}
	open, total := server.Connections()
	// A connection that has just been used may not be free again in time.
	assert.LessOrEqual(t, open, 2*DefaultMaxConcurrentQueries)
	assert.LessOrEqual(t, total, 2*DefaultMaxConcurrentQueries)
	assert.InDelta(t, 300*5, server.RequestCount(), 300, "the first and one per interval")
	stop()
	require.NoError(t, <-done)
}

func TestFC5_LargeBodiesAreNotHeld(t *testing.T) {
	server := fixture.NewMetricServer(t)
	server.Large(2 << 30)
	client, err := NewClient([]Endpoint{{Name: "main", URL: server.URL()}}, time.Now)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 5 {
		got := client.Measure(t.Context(), Measure{Load: Question{Endpoint: "main", Expr: "up", Timeout: time.Minute}})
		require.Equal(t, ReasonResponseTooLarge, got.Reason)
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5*16<<20), "bytes allocated for 5 bodies of 2 GiB")
}
