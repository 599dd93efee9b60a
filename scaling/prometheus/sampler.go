package prometheus

import (
	"context"
	"sync"
	"time"

	"example.com/platform/autoscale-operator/scaling"
)

const (
	// MinInterval is the shortest time between two queries of one question.
	MinInterval = time.Second
	// FirstWithin is the time over which first questions are spread, when it is
	// shorter than their interval: after a start, or a change of the leader,
	// nothing is decided before the first answers.
	FirstWithin = 2 * time.Second
	// MaxBackoff is the longest wait after failures, if the interval is not
	// longer. The wait doubles with each failure, from the interval on.
	MaxBackoff = time.Minute
	// MaxRetryAfter is the longest wait that a server may ask for.
	MaxRetryAfter = 5 * time.Minute
	// delayGrace is how late a budget may make a question before it is counted.
	delayGrace = time.Second
)

// Subscriber is the key of whoever needs samples, such as "namespace/name".
type Subscriber string

// Arrival is when the load of a sample arrived.
type Arrival struct {
	// Newest is that of the newest answer, Used that of the one the sample's value is
	// from: the one before, while a lower load is not believed yet.
	Newest, Used time.Time
}

// Clock is the time and the waiting of the sampler.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// SamplerOptions are what a sampler needs from outside.
type SamplerOptions struct {
	// Clock is the time that questions are due by. It should be the client's.
	Clock Clock
	// Jitter gives numbers from 0 to below 1, to spread questions in time. It is
	// called by one goroutine at a time.
	Jitter func() float64
	// Wake is called once per subscriber and answer, or failure to get one, outside
	// of locks; where others share the question at shorter intervals, about once per
	// interval of its own. It must not block. It may be nil.
	Wake func(id Subscriber, failed bool)
	// Observer is told of exchanges. It may be nil.
	Observer Observer
}

// Sampler keeps the newest answers to the questions of its subscribers. A
// question that several have, at the same interval, is asked once, and one for many
// targets at the shortest interval for all. Each endpoint has a queue and a bound of
// its own, so that a slow one delays no other, and in it each profile has its turns.
// It is safe for concurrent use.
//
// A question is first asked within FirstWithin, then at a phase of its interval
// that is drawn by lot; questions that are subscribed to together share it, so
// that their answers belong together. Once it has failed twice in a row it waits
// longer, up to MaxBackoff, and as long as the server asks for, up to
// MaxRetryAfter. It ends with its last subscriber.
type Sampler struct {
	client *Client
	opts   SamplerOptions
	lanes  map[string]*lane

	mu            sync.Mutex
	subscriptions map[Subscriber]*subscription
	tasks         map[taskKey]*task
	profiles      map[string]*profile
}

// profile is what the questions of one MetricProfile share.
type profile struct {
	tasks  int
	budget *quota
}

// NewSampler returns a sampler that asks nothing before Run.
func NewSampler(client *Client, opts SamplerOptions) *Sampler {
	s := &Sampler{
		client:        client,
		opts:          opts,
		lanes:         make(map[string]*lane, len(client.endpoints)),
		subscriptions: map[Subscriber]*subscription{},
		tasks:         map[taskKey]*task{},
		profiles:      map[string]*profile{},
	}
	for name, e := range client.endpoints {
		s.lanes[name] = &lane{
			limit: e.concurrency, lines: map[string]*line{}, budget: newQuota(e.perMinute), kick: make(chan struct{}, 1),
		}
	}
	return s
}

// Run asks until ctx ends, and returns when no query runs any more. What is
// known stays known.
func (s *Sampler) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, l := range s.lanes {
		running.Go(func() { s.serve(ctx, l, &running) })
	}
	running.Wait()
	return nil
}

// Has reports whether the endpoint is configured.
func (s *Sampler) Has(endpoint string) bool { return s.client.Has(endpoint) }

// Subscribe makes the sampler ask the questions of the measures once in each
// interval. It replaces what the subscriber had before; questions that stay go
// on as they were, so it may be called at every evaluation.
func (s *Sampler) Subscribe(id Subscriber, interval time.Duration, measures []Measure) {
	interval = max(interval, MinInterval)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subscriptions[id]
	if old.same(interval, measures) {
		return
	}
	now := s.opts.Clock.Now()
	start := start{
		first: now.Add(s.share(min(interval, FirstWithin))),
		phase: now.Add(s.share(interval)),
	}
	fresh := &subscription{interval: interval, metrics: make([]metric, len(measures))}
	for i := range measures {
		m, own := &measures[i], &fresh.metrics[i]
		own.judge = judge{
			Namespace: m.Namespace, Target: m.Target, MaxAge: m.MaxAge,
			sourceMaxAge: m.Freshness.MaxAge, sourceShare: m.Freshness.MinHealthyShare,
		}
		for k, q := range m.questions() {
			if q != nil {
				own.tasks[k] = s.join(id, q, interval, start)
			}
		}
		for _, t := range own.tasks[:2] {
			if t != nil && own.tasks[2] != nil {
				t.keepsPrevious = true
			}
		}
	}
	s.subscriptions[id] = fresh
	s.leave(id, old, fresh)
}

// Unsubscribe ends what Subscribe began.
func (s *Sampler) Unsubscribe(id Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(id, s.subscriptions[id], nil)
	delete(s.subscriptions, id)
}

// Samples returns the newest sample of each measure of a subscription, judged at
// now. ready is false until each of its questions has been answered, has failed,
// or has waited for an interval and its timeout. at is when each one's load
// arrived.
func (s *Sampler) Samples(id Subscriber, now time.Time) (samples []scaling.Sample, at []Arrival, ready bool) {
	s.mu.Lock()
	sub := s.subscriptions[id]
	if sub == nil {
		s.mu.Unlock()
		return nil, nil, false
	}
	readings := sub.readings(now)
	s.mu.Unlock()

	for i := range sub.metrics {
		for k, t := range sub.metrics[i].tasks {
			if t != nil && readings[i][k].answer == nil {
				return nil, nil, false
			}
		}
	}
	samples, at = make([]scaling.Sample, len(sub.metrics)), make([]Arrival, len(sub.metrics))
	for i := range sub.metrics {
		j := sub.metrics[i].judge
		j.now, j.patience = now, sub.interval+readings[i][0].question.timeout()
		samples[i] = j.sample(readings[i][0], readings[i][1], readings[i][2])
		at[i] = Arrival{Newest: readings[i][0].answer.arrived, Used: j.used}
	}
	return samples, at, true
}

// share is a random share of a duration.
func (s *Sampler) share(d time.Duration) time.Duration {
	return time.Duration(s.opts.Jitter() * float64(d))
}
