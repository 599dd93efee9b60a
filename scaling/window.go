package scaling

import (
	"math"
	"time"
)

const (
	// windowCells is the number of grid cells that make up one window.
	windowCells = 12
	// bucketCount is the cells that a window can touch (one more than its
	// length, as it rarely starts on the grid) and one to spare.
	bucketCount = windowCells + 2
)

// History is the extreme of the raw demand over a rolling window, in a bounded
// number of buckets: the highest for a scale-down, the lowest for a scale-up. The
// grid is fixed in time and its cells are a twelfth of the window. A bucket holds
// the extreme of its cell and expires a whole window after the last record in
// it, so a demand is remembered for at least the window and at most a twelfth
// longer:
//
//	window <= remembered < window + window/12
//
// A move can come that much later than an exact history would allow, and never
// earlier. The zero value is no history.
type History struct {
	// Since is the time from which on the history is complete.
	Since int64
	// At[i] and Replicas[i] are one bucket: the time of the last record in a grid
	// cell, 0 for none, and the extreme demand of that cell. The buckets have no
	// order. They are two arrays since pairs of them would be a third larger, and
	// copying a memory is much of what a decision costs.
	At       [bucketCount]int64
	Replicas [bucketCount]int32
}

// extreme is what a history remembers of two demands. It is no func, which could
// not be inlined: it is asked for every bucket.
type extreme bool

const (
	highest extreme = false
	lowest  extreme = true
)

func (e extreme) of(a, b int32) int32 {
	if e == lowest {
		return min(a, b)
	}
	return max(a, b)
}

// begin forgets the history: it is complete from now on only.
func (h *History) begin(now int64) { *h = History{Since: now} }

// sweep drops what has expired, and what storage has spoilt, and returns the
// extreme of the rest and the demand of now.
func (h *History) sweep(now, length int64, raw int32, e extreme) int32 {
	for i := range h.At {
		at := min(h.At[i], now)
		if at <= 0 || h.Replicas[i] < 0 || now-at >= length {
			h.At[i], h.Replicas[i] = 0, 0
			continue
		}
		h.At[i] = at
		raw = e.of(raw, h.Replicas[i])
	}
	// What came before the window no longer counts, not even if the window is
	// made longer later.
	h.Since = max(notAfter(h.Since, now), now-length)
	return raw
}

// record adds a demand to a history that is swept.
func (h *History) record(now, length int64, raw int32, e extreme) {
	width := (length + windowCells - 1) / windowCells
	cellStart, slot := now-now%width, -1
	for i, at := range h.At {
		switch {
		case at == 0:
			slot = i
		case at >= cellStart:
			// This cell's bucket. A clock that jumped back can leave several.
			raw = e.of(raw, h.Replicas[i])
			h.At[i], h.Replicas[i] = 0, 0
			slot = i
		}
	}
	if slot < 0 {
		slot = h.makeRoom(width, e)
	}
	h.At[slot], h.Replicas[slot] = now, raw
}

// makeRoom folds two buckets of one cell, which can exist only after the window
// was made longer, and returns the slot that is free then. All slots are in use
// by cells of this window before the present one; those are fewer than the
// slots, so two buckets do share a cell. Of several such pairs the oldest is
// taken, as the order of the buckets means nothing.
func (h *History) makeRoom(width int64, e extreme) int {
	older, newer, found := 0, 1, false
	for i, a := range h.At {
		for j, b := range h.At {
			if i == j || a > b || a/width != b/width {
				continue
			}
			if o, n := h.At[older], h.At[newer]; !found || a < o || a == o && b < n {
				older, newer, found = i, j, true
			}
		}
	}
	h.Replicas[newer] = e.of(h.Replicas[newer], h.Replicas[older])
	return older
}

// Floor is the highest demand that the scale-down window of metric i remembers of so
// long before a time, 0 where it remembers none.
func (m *Memory) Floor(i int, at time.Time, before time.Duration) int32 {
	h := m.Windows[i].Down
	return h.sweep(micros(at), span(before), 0, highest)
}

// Ceiling is the lowest demand that the scale-up window of metric i remembers of so
// long before a time, MaxInt32 where it remembers none.
func (m *Memory) Ceiling(i int, at time.Time, before time.Duration) int32 {
	h := m.Windows[i].Up
	return h.sweep(micros(at), span(before), math.MaxInt32, lowest)
}

// covers reports whether the history is complete for a whole window.
func (h *History) covers(now, length int64) bool { return age(now, h.Since) >= length }
