package prometheus

import (
	"container/heap"
	"time"
)

// subscription is what one subscriber needs. It never changes: Subscribe makes a
// new one.
type subscription struct {
	interval time.Duration
	metrics  []metric
}

// metric is one measure of a subscription: the tasks that ask for its load, its
// arrivals and its freshness, nil where there is nothing to ask, and how to
// judge their answers.
type metric struct {
	judge judge
	tasks [3]*task
}

// questions are those that the measure asks, nil in place of the others.
func (m *Measure) questions() [3]*Question {
	asked := [3]*Question{&m.Load}
	if m.Arrivals.Expr != "" {
		asked[1] = &m.Arrivals
	}
	if m.Freshness.Expr != "" {
		asked[2] = &m.Freshness.Question
	}
	return asked
}

// same reports whether the subscription is one for exactly these measures.
func (s *subscription) same(interval time.Duration, measures []Measure) bool {
	if s == nil || s.interval != interval || len(s.metrics) != len(measures) {
		return false
	}
	for i := range measures {
		m, own := &measures[i], &s.metrics[i]
		if own.judge.Namespace != m.Namespace || own.judge.Target != m.Target || own.judge.MaxAge != m.MaxAge ||
			own.judge.sourceMaxAge != m.Freshness.MaxAge || own.judge.sourceShare != m.Freshness.MinHealthyShare {
			return false
		}
		for k, q := range m.questions() {
			t := own.tasks[k]
			if (q == nil) != (t == nil) || q != nil && *q != t.question {
				return false
			}
		}
	}
	return true
}

// readings are the newest answers to the subscription's questions. They are read
// under the sampler's mutex.
func (s *subscription) readings(now time.Time) [][3]reading {
	all := make([][3]reading, len(s.metrics))
	for i := range s.metrics {
		for k, t := range s.metrics[i].tasks {
			if t != nil {
				all[i][k] = t.reading(now)
			}
		}
	}
	return all
}

// start is when the questions of one subscription begin.
type start struct {
	first time.Time // the first query
	phase time.Time // what later ones keep a multiple of the interval to
}

// join makes the subscriber a user of a question's task, which begins if it is
// the first.
func (s *Sampler) join(id Subscriber, q *Question, interval time.Duration, when start) *task {
	key := keyOf(q, interval)
	t, ok := s.tasks[key]
	if !ok {
		t = &task{
			taskKey: key, users: map[Subscriber]user{}, intervals: map[time.Duration]int{}, interval: interval,
			phase: when.phase, first: when.first, due: when.first, index: -1,
		}
		s.tasks[key] = t
		s.begin(t)
	}
	t.use(id, interval)
	t.pace(when)
	s.profiles[q.Profile].limit(q.BudgetPerMinute)
	return t
}

func (s *Sampler) begin(t *task) {
	name := t.question.Profile
	p := s.profiles[name]
	if p == nil {
		p = &profile{}
		s.profiles[name] = p
	}
	p.tasks++
	l := s.lanes[t.question.Endpoint]
	if l == nil {
		t.answer = s.client.unknownEndpoint(&t.question)
		return
	}
	t.line = l.line(name, p)
	t.line.tasks++
	heap.Push(&t.line.queue, t)
	l.wake()
}

// leave ends the part of a subscription that the new one, if any, has not.
func (s *Sampler) leave(id Subscriber, old, fresh *subscription) {
	if old == nil {
		return
	}
	kept := map[*task]bool{}
	if fresh != nil {
		for i := range fresh.metrics {
			for _, t := range fresh.metrics[i].tasks {
				kept[t] = true
			}
		}
	}
	for i := range old.metrics {
		for _, t := range old.metrics[i].tasks {
			if t == nil || kept[t] {
				continue
			}
			kept[t] = true // two metrics may share a task
			t.unuse(id)
			if len(t.users) == 0 {
				s.end(t)
				continue
			}
			t.pace(start{}) // no shorter than before
		}
	}
}

// end forgets a task that nobody uses. A query that runs is given up.
func (s *Sampler) end(t *task) {
	delete(s.tasks, t.taskKey)
	if t.index >= 0 {
		heap.Remove(&t.line.queue, t.index)
	}
	if t.cancel != nil {
		t.cancel()
	}
	name := t.question.Profile
	if t.line != nil {
		t.line.tasks--
		if t.line.tasks == 0 {
			delete(t.line.lane.lines, name)
		}
	}
	p := s.profiles[name]
	p.tasks--
	if p.tasks > 0 {
		return
	}
	delete(s.profiles, name)
	if s.opts.Observer != nil {
		s.opts.Observer.Forgotten(name)
	}
}
