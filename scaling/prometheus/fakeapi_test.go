package prometheus

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// realClock is the clock of the process; in a synctest bubble that is a fake one.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// fakeAPI is a Prometheus without a network, for synctest bubbles.
type fakeAPI struct {
	mu            sync.Mutex
	status        int
	header        http.Header
	value         string                   // of the one series
	vectors       map[string]func() string // result by query, instead of value
	delays        map[string]time.Duration // by query
	asked         []asked
	running, peak int
}

type asked struct {
	expr string
	at   time.Time
}

func (f *fakeAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	expr := req.Form.Get("query")
	f.mu.Lock()
	f.asked = append(f.asked, asked{expr, time.Now()})
	f.running++
	f.peak = max(f.peak, f.running)
	delay := f.delays[expr]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	if delay > 0 {
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(delay):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	result := fmt.Sprintf(`[{"metric":{},"value":[%d,%q]}]`, time.Now().Unix(), f.value)
	if vector, ok := f.vectors[expr]; ok {
		result = vector()
	}
	return &http.Response{
		StatusCode: f.status, Header: f.header.Clone(), Request: req, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader(`{"status":"success","data":{"resultType":"vector","result":` + result + `}}`)),
	}, nil
}

func (f *fakeAPI) set(change func(*fakeAPI)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// times are when a query was asked, since the begin of the test.
func (f *fakeAPI) times(expr string, begin time.Time) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var times []time.Duration
	for _, a := range f.asked {
		if a.expr == expr {
			times = append(times, a.at.Sub(begin))
		}
	}
	return times
}

func (f *fakeAPI) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// rig is a sampler with its endpoints, "main" and "other", in a synctest bubble.
type rig struct {
	*Sampler
	main, other *fakeAPI
	begin       time.Time

	mu     sync.Mutex
	woken  map[Subscriber]int
	failed map[Subscriber]int // of those, without an answer
	events []string
	jitter float64
}

func newRig(tb testing.TB, changes ...func(*Endpoint)) *rig {
	tb.Helper()
	r := &rig{begin: time.Now(), woken: map[Subscriber]int{}, failed: map[Subscriber]int{}}
	endpoints := []Endpoint{{Name: "main", URL: "http://main"}, {Name: "other", URL: "http://other"}}
	for _, change := range changes {
		change(&endpoints[0])
	}
	client, err := NewClient(endpoints, time.Now)
	require.NoError(tb, err)
	for name, api := range map[string]**fakeAPI{"main": &r.main, "other": &r.other} {
		*api = &fakeAPI{
			status: http.StatusOK, header: http.Header{}, value: "7",
			vectors: map[string]func() string{}, delays: map[string]time.Duration{},
		}
		client.endpoints[name].http.Transport = *api
	}
	r.Sampler = NewSampler(client, SamplerOptions{
		Clock: realClock{}, Jitter: func() float64 { return r.jitter }, Observer: r,
		Wake: func(id Subscriber, failed bool) {
			r.Samples(id, time.Now()) // would not return under the sampler's lock
			r.mu.Lock()
			defer r.mu.Unlock()
			r.woken[id]++
			if failed {
				r.failed[id]++
			}
		},
	})
	return r
}

// Asked, Delayed and Forgotten implement Observer.
func (r *rig) Asked(profile, endpoint, reason string, took time.Duration) {
	r.note("asked", profile, endpoint, reason, took.String())
}

func (r *rig) Delayed(profile, endpoint string) { r.note("delayed", profile, endpoint) }

func (r *rig) Forgotten(profile string) { r.note("forgotten", profile) }

func (r *rig) note(words ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, strings.Join(words, " "))
}

func (r *rig) observed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

func (r *rig) wakes(id Subscriber) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.woken[id]
}

// start runs the sampler until the test ends, or stop is called.
func (r *rig) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// load is a measure with one question to the endpoint "main".
func load(expr string, changes ...func(*Question)) []Measure {
	q := Question{Profile: "requests", Endpoint: "main", Expr: expr, Timeout: 5 * time.Second}
	for _, change := range changes {
		change(&q)
	}
	return []Measure{{Load: q, Namespace: "shop", Target: "web", MaxAge: time.Minute}}
}

const interval = 15 * time.Second
