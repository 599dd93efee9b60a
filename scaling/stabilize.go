package scaling

// stabilize records the demand in the metric's windows and lets them hold a move:
//
//	ceiling    = lowest raw of the window of the scale-up
//	floor      = highest raw of the window of the scale-down
//	             both current while their window is not covered
//	stabilized = min(bounded, max(current, clamp(ceiling)))   where bounded > current
//	stabilized = max(bounded, min(current, clamp(floor)))     where bounded < current
//
// A window only limits how far: that of a scale-down never raises above current,
// that of a scale-up never lowers below it, and neither holds a count outside the
// bounds.
func (p *Policy) stabilize(i int, t *MetricTrace, current int32, now int64, m *Memory) (int32, Rule) {
	behavior, w := &p.Metrics[i].Behavior, &m.Windows[i]
	w.Key = p.Metrics[i].Key
	floor := p.floor(t, span(behavior.DownStabilization), current, now, m.Observed, &w.Down)
	ceiling := p.ceiling(t, span(behavior.UpStabilization), current, now, m.Observed, &w.Up)
	if w.Down.Since == 0 && w.Up.Since == 0 {
		*w = Window{}
	}
	if t.Validity == Invalid {
		return 0, RuleNone
	}
	stabilized := max(t.Bounded, min(current, p.clamp(floor)))
	if stabilized > t.Bounded {
		return stabilized, RuleScaleDownStabilization
	}
	stabilized = min(t.Bounded, max(current, p.clamp(ceiling)))
	if stabilized < t.Bounded {
		return stabilized, RuleScaleUpStabilization
	}
	return stabilized, RuleNone
}

// floor is the highest demand in the window of the scale-down. A sample that is
// not valid starts the window anew, as the demand of that time is unknown; what a
// partial answer says counts all the same.
func (p *Policy) floor(t *MetricTrace, length int64, current int32, now, observed int64, h *History) int32 {
	if length == 0 {
		*h = History{}
		return t.Raw
	}
	if h.Since == 0 || t.Validity == Invalid || age(now, observed) > p.longestGap(length) {
		h.begin(now)
	}
	if t.Validity == Invalid {
		return current
	}
	floor := h.sweep(now, length, t.Raw, highest)
	h.record(now, length, t.Raw, highest)
	if t.Validity != Valid {
		h.Since = now
	}
	if !h.covers(now, length) {
		return current
	}
	return floor
}

// ceiling is the lowest demand in the window of the scale-up. A sample that is not
// valid says nothing of how low the demand was, so it neither counts nor starts the
// window anew: a failing metric must not keep capacity away for longer.
func (p *Policy) ceiling(t *MetricTrace, length int64, current int32, now, observed int64, h *History) int32 {
	if length == 0 {
		*h = History{}
		return t.Raw
	}
	if h.Since == 0 || age(now, observed) > p.longestGap(length) {
		h.begin(now)
	}
	ceiling := h.sweep(now, length, t.Raw, lowest)
	if t.Validity == Valid {
		h.record(now, length, t.Raw, lowest)
	}
	if !h.covers(now, length) {
		return current
	}
	return ceiling
}

// longestGap is the time without evaluations that a history survives: a missed
// poll or two, or a quick restart, but not an outage with unknown demand.
func (p *Policy) longestGap(length int64) int64 { return max(3*span(p.PollInterval), length/4) }
