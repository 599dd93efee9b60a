package prometheus

import (
	"container/heap"
	"time"
)

// quota is a budget. It hands out times for queries, evenly: it saves nothing up,
// so that no minute has more of them than it allows.
type quota struct {
	every time.Duration
	next  time.Time // the first that is not taken
}

// newQuota is a budget of perMinute queries. nil is no limit.
func newQuota(perMinute int) *quota {
	if perMinute <= 0 {
		return nil
	}
	n := time.Duration(perMinute)
	return &quota{every: (time.Minute + n - 1) / n}
}

// reserve takes the next time and returns how long it is until then.
func (b *quota) reserve(now time.Time) time.Duration {
	if b.next.Before(now) {
		b.next = now
	}
	late := b.next.Sub(now)
	b.next = b.next.Add(b.every)
	return late
}

// release gives back the time of a task that has ended while it waited for it. The
// last of those who wait takes it, and the last time is free again: what is gone
// delays nobody.
func (b *quota) release(t *task) {
	last := t
	for _, other := range t.lane.queue {
		if other.waits == b && other.due.After(last.due) {
			last = other
		}
	}
	free := last.due
	if last != t {
		last.due = t.due
		heap.Fix(&t.lane.queue, last.index)
		t.lane.wake()
	}
	if free.Add(b.every).Equal(b.next) {
		b.next = free
	}
}

// limit sets the budget of a profile, which may have changed.
func (p *profile) limit(perMinute int) {
	fresh := newQuota(perMinute)
	if p.budget == nil || fresh == nil || p.budget.every != fresh.every {
		p.budget = fresh
	}
}
