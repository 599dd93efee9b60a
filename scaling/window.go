package scaling

const (
	// windowCells is the number of grid cells that make up one window.
	windowCells = 12
	// bucketCount is the cells that a window can touch (one more than its
	// length, as it rarely starts on the grid) and one to spare.
	bucketCount = windowCells + 2
)

// The window is a rolling maximum of the raw demand in a bounded number of
// buckets. The grid is fixed in time and its cells are a twelfth of the window.
// A bucket holds the highest demand of its cell and expires a whole window
// after the last record in it, so a demand is remembered for at least the
// window and at most a twelfth longer:
//
//	window <= remembered < window + window/12
//
// A scale-down can come that much later than an exact history would allow, and
// never earlier.

// begin forgets the history: it is complete from now on only.
func (w *Window) begin(key uint64, now int64) { *w = Window{Key: key, Since: now} }

// record adds a demand and returns the highest that is remembered.
func (w *Window) record(now, length int64, raw int32) int32 {
	width := (length + windowCells - 1) / windowCells
	cellStart := now - now%width
	floor, cell, slot := raw, raw, -1
	for i := range w.Buckets {
		b := &w.Buckets[i]
		switch {
		case age(now, b.At) >= length:
			*b, slot = Bucket{}, i
		case b.At >= cellStart:
			// This cell's bucket. A clock that jumped back can leave several.
			cell = max(cell, b.Max)
			*b, slot = Bucket{}, i
		}
		floor = max(floor, b.Max)
	}
	if slot < 0 {
		slot = w.makeRoom(width)
	}
	w.Buckets[slot] = Bucket{At: now, Max: cell}
	// What came before the window no longer counts, not even if the window is
	// made longer later.
	w.Since = max(notAfter(w.Since, now), now-length)
	return max(floor, cell)
}

// makeRoom folds two buckets of one cell, which can exist only after the window
// was made longer, and returns the slot that is free then. All slots are in use
// by cells of this window before the present one; those are fewer than the
// slots, so two buckets do share a cell.
func (w *Window) makeRoom(width int64) int {
	older, newer := 0, 1
	for i := range w.Buckets {
		for j := range i {
			if w.Buckets[i].At/width == w.Buckets[j].At/width {
				older, newer = i, j
			}
		}
	}
	if w.Buckets[older].At > w.Buckets[newer].At {
		older, newer = newer, older
	}
	w.Buckets[newer].Max = max(w.Buckets[newer].Max, w.Buckets[older].Max)
	return older
}

// covered reports whether the history is complete for a whole window.
func (w *Window) covered(now, length int64) bool { return age(now, w.Since) >= length }

// stabilize records the demand in the metric's window and lets the window hold
// a scale-down:
//
//	stabilized = max(bounded, min(current, clamp(floor, min, max)))
//
// The window only limits how far down: it never raises above current, and it
// never holds above a maximum that was lowered.
func (p *Policy) stabilize(i int, t *MetricTrace, current int32, now int64, m *Memory) int32 {
	metric, w := &p.Metrics[i], &m.Windows[i]
	length := span(metric.Behavior.DownStabilization)
	if length == 0 {
		*w = Window{}
		return t.Bounded
	}
	if w.Since == 0 || t.Validity == Invalid || age(now, m.Observed) > p.longestGap(length) {
		w.begin(metric.Key, now)
	}
	if t.Validity == Invalid {
		return 0
	}
	floor := w.record(now, length, t.Raw)
	if t.Validity != Valid {
		w.Since = now
	}
	if !w.covered(now, length) {
		floor = current
	}
	return max(t.Bounded, min(current, p.clamp(floor)))
}

// longestGap is the time without evaluations that a history survives: a missed
// poll or two, or a quick restart, but not an outage with unknown demand.
func (p *Policy) longestGap(length int64) int64 { return max(3*span(p.PollInterval), length/4) }
