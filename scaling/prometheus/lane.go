package prometheus

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// lane is the queue of one endpoint: tasks by the time they are due. Everything
// but kick is guarded by the sampler's mutex.
type lane struct {
	limit   int // queries that may run at once
	running int
	queue   taskQueue
	budget  *quota
	// kick makes the lane look at its queue.
	kick chan struct{}
}

func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default: // it is going to look
	}
}

// full reports whether as many queries run as may.
func (l *lane) full() bool { return l != nil && l.running >= l.limit }

// serve starts what is due until ctx ends. There is one goroutine for the lane
// and one for each query that runs.
func (s *Sampler) serve(ctx context.Context, l *lane, running *sync.WaitGroup) {
	for {
		wait, idle := s.startDue(ctx, l, running)
		var due <-chan time.Time
		if !idle {
			due = s.opts.Clock.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
		case <-due:
		}
	}
}

// startDue starts the queries that are due, as many as may run. It returns the
// time to the next, or idle where only a kick can change anything.
func (s *Sampler) startDue(ctx context.Context, l *lane, running *sync.WaitGroup) (wait time.Duration, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l.running < l.limit && len(l.queue) > 0 {
		now := s.opts.Clock.Now()
		t := l.queue[0]
		if wait := t.due.Sub(now); wait > 0 {
			return wait, false
		}
		if late := s.reserve(l, t, now); late > 0 {
			t.due = now.Add(late) // the time that t.waits keeps for it
			heap.Fix(&l.queue, 0)
			s.hold(t, late)
			continue
		}
		heap.Pop(&l.queue)
		t.waits = nil
		l.running++
		bounded, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		running.Go(func() {
			defer cancel()
			s.ask(bounded, l, t)
		})
	}
	return 0, true
}

// reserve takes a query out of the budgets, first out of the profile's and, once
// that has come, out of the endpoint's. It returns how long the query has to wait.
// Those who wait get their turn in the order in which they were due.
func (s *Sampler) reserve(l *lane, t *task, now time.Time) time.Duration {
	budgets := [...]*quota{s.profiles[t.question.Profile].budget, l.budget}
	for t.granted < len(budgets) {
		b := budgets[t.granted]
		t.granted++
		if b == nil {
			continue
		}
		if late := b.reserve(now); late > 0 {
			t.waits = b
			return late
		}
	}
	return 0
}

// hold notes that a task waits for a budget.
func (s *Sampler) hold(t *task, wait time.Duration) {
	if wait <= delayGrace {
		return
	}
	t.held = true
	if s.opts.Observer != nil {
		s.opts.Observer.Delayed(t.question.Profile, t.question.Endpoint)
	}
}

// ask has one exchange and tells those who wait for it.
func (s *Sampler) ask(ctx context.Context, l *lane, t *task) {
	begun := s.opts.Clock.Now()
	a := s.client.ask(ctx, &t.question)
	now := s.opts.Clock.Now()

	s.mu.Lock()
	l.running--
	l.wake()
	t.cancel, t.granted = nil, 0
	if s.tasks[t.taskKey] != t {
		s.mu.Unlock()
		return // nobody uses it any more
	}
	if ctx.Err() != nil {
		// The sampler stops. Should it run again, this is where it goes on.
		t.due = now
		heap.Push(&l.queue, t)
		s.mu.Unlock()
		return
	}
	if t.keepsPrevious {
		t.previous = t.answer
	}
	t.answer, t.held = a, false
	t.schedule(a, now, s.share)
	heap.Push(&l.queue, t)
	users := t.subscribers()
	if s.opts.Observer != nil {
		s.opts.Observer.Asked(t.question.Profile, t.question.Endpoint, a.reason, now.Sub(begun))
	}
	s.mu.Unlock()
	if s.opts.Wake == nil {
		return
	}
	for _, id := range users {
		s.opts.Wake(id, a.failed())
	}
}
