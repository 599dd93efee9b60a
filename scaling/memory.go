package scaling

import (
	"math"
	"time"
)

// MaxUps is the largest number of scale-ups that are remembered one by one.
const MaxUps = 16

// Memory is what one decision leaves for the next. The zero value knows
// nothing. Times are Unix microseconds, and 0 is "never". It may come back
// from storage in any state: no content makes Decide panic, block for ever or
// act on times that lie in the future.
type Memory struct {
	// Target is the UID that the memory is about.
	Target string
	// Observed is the time of the last evaluation.
	Observed int64
	// LastDown is the time of the last successful scale-down.
	LastDown int64
	// AllInvalidSince is the time since which no metric can be used without a
	// pause. It is kept for a policy with a fallback only.
	AllInvalidSince int64
	// Up and Down anchor the running step intervals.
	Up, Down Step
	// Ups are the scale-ups that a rate still counts, the oldest first; unused ones
	// at the end are zero.
	Ups [MaxUps]Up
	// Windows[i] belongs to the metric with its key; unused ones are zero.
	Windows [MaxMetrics]Window
}

// Step anchors the steps of one poll interval: all writes until At plus the
// interval count from Base.
type Step struct {
	At   int64
	Base int32
}

// Up is a scale-up, or several that were joined into one for want of room. The
// zero value is none.
type Up struct {
	// At is the time of the last of them.
	At int64
	// Added is the number of replicas that they added in total.
	Added int32
}

// Window is the recent demand of one metric.
type Window struct {
	// Key is the metric's key.
	Key uint64
	// Down remembers the highest demand, Up the lowest.
	Down, Up History
}

// Scaled returns the memory after a successful write at the time of the
// decision that asked for it. poll is the policy's PollInterval. A failed write
// must not be recorded.
func (m Memory) Scaled(at time.Time, from, to int32, poll time.Duration) Memory {
	now := micros(at)
	switch {
	case to > from:
		if !m.Up.live(now, poll) || from < m.Up.Base {
			m.Up = Step{At: now, Base: from}
		}
		m.added(now, int64(to)-int64(from))
	case to < from:
		if !m.Down.live(now, poll) || from > m.Down.Base {
			m.Down = Step{At: now, Base: from}
		}
		m.LastDown = now
	}
	return m
}

// Discovered returns the memory after a write was found that nobody recorded:
// neither its time nor its direction is known, only a count from before it and
// the present one. It counts as made at the time of the discovery and in both
// directions, so that it can delay a scale-down and never hasten one; what it
// added counts against the rate.
func (m Memory) Discovered(at time.Time, before, current int32) Memory {
	now := micros(at)
	m.Up = Step{At: now, Base: min(before, current)}
	m.Down = Step{At: now, Base: math.MaxInt32}
	m.LastDown = now
	m.added(now, int64(current)-int64(before))
	return m
}

// Unwatched returns the memory for when the demand may have been high, unseen or
// forgotten, since the memory was kept: a full window is waited before a scale-down.
func (m Memory) Unwatched() Memory {
	for i := range m.Windows {
		m.Windows[i].Down = History{}
	}
	return m
}

// UnwatchedUp returns the memory for when the demand of metric i may have been low,
// unseen or forgotten, since the memory was kept: a full window is waited before a
// scale-up, where that has a window.
func (m Memory) UnwatchedUp(i int) Memory {
	m.Windows[i].Up = History{}
	return m
}

// live reports whether the step interval that the anchor began is still
// running. An anchor in the future counts as of now.
func (s Step) live(now int64, poll time.Duration) bool {
	return s.At != 0 && age(now, s.At) < span(poll)
}

// prepare makes the memory fit for a decision at now: of the same target only,
// without times in the future, with one window per metric.
func (m *Memory) prepare(now int64, target string, p *Policy) {
	if m.Target != target {
		*m = Memory{Target: target}
		return
	}
	if m.AllInvalidSince = notAfter(m.AllInvalidSince, now); age(now, m.Observed) > p.longestSilence() {
		m.AllInvalidSince = 0
	}
	m.LastDown = notAfter(m.LastDown, now)
	m.Up.At = notAfter(m.Up.At, now)
	m.Down.At = notAfter(m.Down.At, now)
	m.forgetUps(now, p.longestPeriod())
	for i := range p.Metrics {
		if p.Metrics[i].Behavior.windowed() && !m.Windows[i].holds(p.Metrics[i].Key) {
			m.reorder(p.Metrics)
			break
		}
	}
	clear(m.Windows[len(p.Metrics):])
}

// reorder moves the windows to the indexes of their metrics.
func (m *Memory) reorder(metrics []Metric) {
	var windows [MaxMetrics]Window
	for i := range metrics {
		if w := m.window(i, metrics[i].Key); w != nil {
			windows[i] = *w
		}
	}
	m.Windows = windows
}

// window finds the window of a key, at its own index first: metrics that were
// reordered keep their history.
func (m *Memory) window(i int, key uint64) *Window {
	if m.Windows[i].holds(key) {
		return &m.Windows[i]
	}
	for j := range m.Windows {
		if m.Windows[j].holds(key) {
			return &m.Windows[j]
		}
	}
	return nil
}

func (w *Window) holds(key uint64) bool {
	return w.Key == key && (w.Down.Since != 0 || w.Up.Since != 0)
}

// micros converts a time. Times before 1970 become the first microsecond, as
// 0 is "never".
func micros(t time.Time) int64 { return max(t.UnixMicro(), 1) }

// span converts a duration, rounded up so that no wait is shortened.
func span(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return us
}

// notAfter clamps a remembered time to now. A clock that jumped back must
// neither block for ever nor let time pass that did not.
func notAfter(at, now int64) int64 { return max(0, min(at, now)) }

// age is the time since at, 0 when at lies in the future. Both are at least 0
// by then, so the difference cannot overflow.
func age(now, at int64) int64 { return now - notAfter(at, now) }
