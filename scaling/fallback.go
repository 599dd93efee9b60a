package scaling

// fallBack raises the count to the floor once nothing has been known of the load
// for long enough, at once and without steps:
//
//	replicas = max(current, clamp(FloorReplicas))   when every metric has been invalid
//	                                                for After without a pause
//
// It never lowers. Without a floor, or with a metric that says anything at all, it
// does nothing.
func (d *Decision) fallBack(p *Policy, current int32, now int64, m *Memory) {
	if p.Fallback.FloorReplicas == 0 || d.usable(p) {
		m.AllInvalidSince = 0
		return
	}
	if m.AllInvalidSince == 0 {
		m.AllInvalidSince = now
	}
	if age(now, m.AllInvalidSince) < span(p.Fallback.After) {
		return
	}
	if floor := p.clamp(p.Fallback.FloorReplicas); floor > current {
		d.Desired, d.Replicas, d.Rule = floor, floor, RuleFallbackFloor
	}
}

// usable reports whether some metric can be used.
func (d *Decision) usable(p *Policy) bool {
	for i := range p.Metrics {
		if d.Metrics[i].Validity != Invalid {
			return true
		}
	}
	return false
}

// longestSilence is the time without evaluations over which the metrics count as
// invalid if they were so before and are so after: long enough for an operator
// that restarts all the time to come to the floor, with the beginning stored only.
func (p *Policy) longestSilence() int64 { return span(p.Fallback.After) + 3*span(p.PollInterval) }
