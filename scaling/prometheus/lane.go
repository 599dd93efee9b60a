package prometheus

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// lane is the queue of one endpoint: a line for each profile. They have their turns
// one after the other, so that a profile with a thousand queries delays another's one
// by a single turn. Everything but kick is guarded by the sampler's mutex.
type lane struct {
	limit   int // queries that may run at once
	running int
	lines   map[string]*line // by profile
	turns   uint64           // that there have been
	budget  *quota
	// kick makes the lane look at its lines.
	kick chan struct{}
}

// line is what one profile has at one endpoint.
type line struct {
	lane    *lane
	profile *profile
	tasks   int       // all of them
	queue   taskQueue // those that wait
	turn    uint64    // the last that it had
}

// line gives that of a profile. A new one comes after all others.
func (l *lane) line(name string, p *profile) *line {
	row, ok := l.lines[name]
	if !ok {
		l.turns++
		row = &line{lane: l, profile: p, turn: l.turns}
		l.lines[name] = row
	}
	return row
}

func (l *lane) wake() {
	select {
	case l.kick <- struct{}{}:
	default: // it is going to look
	}
}

// full reports whether as many queries run as may.
func (l *lane) full() bool { return l.running >= l.limit }

// opens is the time from which on the budgets, the profile's and the endpoint's, allow
// a query.
func (r *line) opens() time.Time { return later(r.profile.budget.opens(), r.lane.budget.opens()) }

// next is the line whose turn it is, nil where nothing waits, and when that comes: at
// now or later. Of those that may have it at the same time it is the one that has gone
// without for longest.
func (l *lane) next(now time.Time) (first *line, at time.Time) {
	for _, row := range l.lines {
		if len(row.queue) == 0 {
			continue
		}
		from := later(now, later(row.queue[0].due, row.opens()))
		if first == nil || from.Before(at) || from.Equal(at) && row.turn < first.turn {
			first, at = row, from
		}
	}
	return first, at
}

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
	for !l.full() {
		now := s.opts.Clock.Now()
		row, at := l.next(now)
		if row == nil {
			return 0, true
		}
		if wait := at.Sub(now); wait > 0 {
			return wait, false
		}
		t := s.take(row, now)
		bounded, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		running.Go(func() {
			defer cancel()
			s.ask(bounded, l, t)
		})
	}
	return 0, true
}

// take lets a line have its turn.
func (s *Sampler) take(r *line, now time.Time) *task {
	t := heap.Pop(&r.queue).(*task) // nothing else is in it
	if r.opens().Sub(t.due) > delayGrace && s.opts.Observer != nil {
		s.opts.Observer.Delayed(t.question.Profile, t.question.Endpoint)
	}
	r.profile.budget.take(now)
	r.lane.budget.take(now)
	r.lane.running++
	r.lane.turns++
	r.turn = r.lane.turns
	return t
}

// ask has one exchange and tells those who wait for it.
func (s *Sampler) ask(ctx context.Context, l *lane, t *task) {
	begun := s.opts.Clock.Now()
	a := s.client.ask(ctx, &t.question)
	now := s.opts.Clock.Now()

	s.mu.Lock()
	l.running--
	l.wake()
	t.cancel = nil
	if s.tasks[t.taskKey] != t {
		s.mu.Unlock()
		return // nobody uses it any more
	}
	if ctx.Err() != nil {
		// The sampler stops. Should it run again, this is where it goes on.
		t.due = now
		heap.Push(&t.line.queue, t)
		s.mu.Unlock()
		return
	}
	if t.keepsPrevious {
		t.previous = t.answer
	}
	t.answer = a
	t.schedule(a, now, s.share)
	heap.Push(&t.line.queue, t)
	users := t.toWake(now)
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
