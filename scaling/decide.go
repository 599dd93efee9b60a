package scaling

// Decide says how many replicas the workload should have now, and what to
// remember for the next time. It is total and deterministic: every input gives
// an answer, the same input the same one, and an input that makes no sense
// gives the current count. It does not allocate.
//
// The caller keeps the returned memory whether or not it writes, and adds a
// successful write by [Memory.Scaled].
func Decide(p *Policy, o *Observation, m Memory) (Decision, Memory) {
	if o == nil {
		o = &Observation{}
	}
	if !p.valid() {
		return Decision{Desired: o.Current, Replicas: o.Current, Rule: RuleInvalidPolicy}, m
	}
	now := micros(o.Now)
	m.prepare(now, o.Target, p)
	d := Decision{TotalMetrics: len(p.Metrics)}
	for i := range p.Metrics {
		d.Metrics[i] = p.demand(i, o)
	}
	if o.Current <= 0 {
		d.suspend(o.Current, &m)
	} else {
		for i := range p.Metrics {
			p.shape(i, &d.Metrics[i], o.Current, now, &m)
		}
		d.combine(p, o.Current, now, &m)
		d.fallBack(p, o.Current, now, &m)
		d.freeze(p, o.Current)
		d.markPending(p)
	}
	m.Observed = now
	return d, m
}

// shape runs the stages that depend on history and on writes.
func (p *Policy) shape(i int, t *MetricTrace, current int32, now int64, m *Memory) {
	stabilized, rule := p.stabilize(i, t, current, now, m)
	if t.Stabilized = stabilized; rule != RuleNone {
		t.Rule = rule
	}
	if t.Validity == Invalid {
		return
	}
	limited, rule := p.Metrics[i].Behavior.limit(t.Stabilized, current, now, p, m)
	if t.Limited = limited; rule != RuleNone {
		t.Rule = rule
	}
}

// suspend leaves a workload alone that a human scaled to 0. The demand is still
// shown, but not remembered: without replicas there is hardly any load, and
// what it says must not shrink the workload as soon as it is resumed.
func (d *Decision) suspend(current int32, m *Memory) {
	for i := range d.TotalMetrics {
		t := &d.Metrics[i]
		if t.Validity == Invalid {
			continue
		}
		if t.Validity == Valid {
			d.ValidMetrics++
		}
		d.Recommended = max(d.Recommended, t.Raw)
		t.Stabilized, t.Limited, t.Rule = current, current, RuleSuspended
	}
	d.Desired, d.Replicas, d.Rule = current, current, RuleSuspended
	m.Windows, m.AllInvalidSince = [MaxMetrics]Window{}, 0
}
