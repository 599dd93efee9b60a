package prometheus

import "time"

// quota is a budget. It allows queries evenly: it saves nothing up, so that no minute
// has more of them than it allows. Nobody's are kept for the future: whose turn it is
// shows when one is allowed.
type quota struct {
	every time.Duration
	next  time.Time // the first at which one is allowed
}

// newQuota is a budget of perMinute queries. nil is no limit.
func newQuota(perMinute int) *quota {
	if perMinute <= 0 {
		return nil
	}
	n := time.Duration(perMinute)
	return &quota{every: (time.Minute + n - 1) / n}
}

// opens is when the next query is allowed; it may have passed.
func (b *quota) opens() time.Time {
	if b == nil {
		return time.Time{}
	}
	return b.next
}

// take counts a query.
func (b *quota) take(now time.Time) {
	if b != nil {
		b.next = now.Add(b.every)
	}
}

// limit sets the budget of a profile, which may have changed.
func (p *profile) limit(perMinute int) {
	fresh := newQuota(perMinute)
	if p.budget == nil || fresh == nil || p.budget.every != fresh.every {
		p.budget = fresh
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
