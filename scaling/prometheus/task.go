package prometheus

import (
	"container/heap"
	"context"
	"fmt"
	"time"
)

// task asks one question once per interval. It is guarded by the sampler's mutex,
// but for its key, which never changes.
type task struct {
	taskKey
	line  *line // nil where the endpoint is unknown
	users map[Subscriber]user
	// intervals is how many users have each. The shortest is the task's.
	intervals map[time.Duration]int
	interval  time.Duration
	answer    *answer // the newest, nil before the first
	// previous is the answer before it, where a source's freshness is asked for.
	previous      *answer
	keepsPrevious bool

	phase    time.Time
	first    time.Time // when the first query was due
	due      time.Time
	failures int // in a row
	cancel   context.CancelFunc
	index    int // in the queue, -1 outside
}

// taskKey is what is asked once. A question for many targets is, however often each of
// them needs its answer: who needs it less often has that of those who need it most.
// One for a single target is asked at each interval for itself: the questions of one
// measure must stay together, and its others may not be shared alike.
type taskKey struct {
	question Question
	apart    time.Duration // the interval, 0 where all share one
}

func keyOf(q *Question, interval time.Duration) taskKey {
	if !q.Series.single() {
		interval = 0
	}
	return taskKey{*q, interval}
}

// user is one subscriber of a task.
type user struct {
	interval time.Duration
	// enough is the time up to which its last answer is new enough, where others have
	// more of them than it needs.
	enough time.Time
}

// use makes the subscriber a user, or changes its interval.
func (t *task) use(id Subscriber, interval time.Duration) {
	if was, ok := t.users[id]; ok && was.interval == interval {
		return
	}
	t.unuse(id)
	t.users[id] = user{interval: interval}
	t.intervals[interval]++
}

func (t *task) unuse(id Subscriber) {
	was, ok := t.users[id]
	if !ok {
		return
	}
	delete(t.users, id)
	t.intervals[was.interval]--
	if t.intervals[was.interval] == 0 {
		delete(t.intervals, was.interval)
	}
}

// pace makes the shortest interval in use the task's, and each answer one for those who
// have it. Where it is shorter than before, the question is asked as if it were new, but
// for the wait after failures.
func (t *task) pace(when start) {
	before := t.interval
	t.interval = 0
	for interval := range t.intervals {
		if t.interval == 0 || interval < t.interval {
			t.interval = interval
		}
	}
	switch {
	case t.interval == before:
		return
	case t.interval > before:
		for id, u := range t.users {
			if u.interval == t.interval {
				t.users[id] = user{interval: u.interval}
			}
		}
		return
	}
	t.phase = when.phase
	if t.index >= 0 && t.failures == 0 && when.first.Before(t.due) {
		t.due = when.first
		heap.Fix(&t.line.queue, t.index)
		t.line.lane.wake()
	}
}

// toWake are the users who need the answer of now: all, but for those with a longer
// interval than the task's, in which the next one comes early enough. They are woken by
// the one that is nearest to their interval, and not too late.
func (t *task) toWake(now time.Time) []Subscriber {
	woken := make([]Subscriber, 0, len(t.users))
	for id, u := range t.users {
		if now.Before(u.enough) {
			continue
		}
		if u.interval > t.interval && !t.question.EveryAnswer {
			u.enough = now.Add(u.interval - t.interval*3/4)
			t.users[id] = u
		}
		woken = append(woken, id)
	}
	return woken
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
	r := reading{question: &t.question, answer: t.answer, previous: t.previous, late: t.late(now)}
	if r.answer == nil && r.late != "" && now.Sub(t.first) > t.interval+t.question.timeout() {
		r.answer = &answer{
			reason:  r.late,
			message: fmt.Sprintf("endpoint %q: there is no sample yet: %s", t.question.Endpoint, whyLate[r.late]),
		}
	}
	return r
}

// late is the reason why the next answer is, if it is.
func (t *task) late(now time.Time) string {
	if t.line == nil {
		return ""
	}
	opens, full := t.line.opens(), t.line.lane.full()
	waits, waited := t.index >= 0, now.Sub(t.due)
	switch {
	case waits && opens.Sub(t.due) > delayGrace && (opens.After(now) || !full):
		return ReasonBudgetExceeded
	case full && (waits && waited > 0 || waited > t.question.timeout()):
		return ReasonEndpointBusy
	}
	return ""
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
