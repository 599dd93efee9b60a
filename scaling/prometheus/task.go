package prometheus

import (
	"context"
	"fmt"
	"time"
)

// task asks one question once per interval. It is guarded by the sampler's mutex,
// but for its key, which never changes.
type task struct {
	taskKey
	lane   *lane // nil where the endpoint is unknown
	users  map[Subscriber]struct{}
	answer *answer // the newest, nil before the first
	// previous is the answer before it, where a source's freshness is asked for.
	previous      *answer
	keepsPrevious bool

	phase    time.Time
	first    time.Time // when the first query was due
	due      time.Time
	failures int    // in a row
	granted  int    // budgets that the next query has been taken out of
	waits    *quota // the one that due is a time of, nil without
	held     bool   // the next query waits for a budget
	cancel   context.CancelFunc
	index    int // in the queue, -1 outside
}

type taskKey struct {
	question Question
	interval time.Duration
}

// schedule sets the time of the next query after an answer.
func (t *task) schedule(a *answer, now time.Time, share func(time.Duration) time.Duration) {
	t.due = t.next(now)
	if !a.failed() {
		t.failures = 0
		return
	}
	t.failures++
	if wait := t.backoff(); wait > t.interval {
		t.due = now.Add(wait - share(wait/4))
	}
	if until := now.Add(min(a.retryAfter, MaxRetryAfter)); until.After(t.due) {
		t.due = until.Add(share(t.interval))
	}
}

// next is the next time that lies a multiple of the interval from the phase. A
// query that took longer than the interval leaves times out; none is made up for.
func (t *task) next(now time.Time) time.Time {
	since := now.Sub(t.phase) % t.interval
	if since < 0 {
		since += t.interval
	}
	return now.Add(t.interval - since)
}

// backoff is the wait after failures in a row: the interval after the first, then
// twice as long each time.
func (t *task) backoff() time.Duration {
	wait := t.interval
	for range t.failures - 1 {
		if wait *= 2; wait >= MaxBackoff {
			return max(MaxBackoff, t.interval)
		}
	}
	return wait
}

// reading is what is known at a time. Where nothing is, and the first answer
// should have been there, the reading says why it is not: whoever waits for it
// would wait in silence for as long as an endpoint hangs.
func (t *task) reading(now time.Time) reading {
	r := reading{question: &t.question, answer: t.answer, previous: t.previous}
	switch waited := now.Sub(t.due); {
	case t.held:
		r.late = ReasonBudgetExceeded
	case t.lane.full() && (t.index >= 0 && waited > 0 || waited > t.question.timeout()):
		r.late = ReasonEndpointBusy
	}
	if r.answer == nil && r.late != "" && now.Sub(t.first) > t.interval+t.question.timeout() {
		r.answer = &answer{
			reason:  r.late,
			message: fmt.Sprintf("endpoint %q: there is no sample yet: %s", t.question.Endpoint, whyLate[r.late]),
		}
	}
	return r
}

func (t *task) subscribers() []Subscriber {
	users := make([]Subscriber, 0, len(t.users))
	for id := range t.users {
		users = append(users, id)
	}
	return users
}

// taskQueue is a heap of tasks by the time they are due.
type taskQueue []*task

func (q taskQueue) Len() int           { return len(q) }
func (q taskQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q taskQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for container/heap.
func (q *taskQueue) Push(x any) {
	t := x.(*task) // nothing else is pushed
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop is for container/heap.
func (q *taskQueue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}
