package scaling

// combine joins the metrics: the highest wins, and nothing is removed while a
// metric is not fully valid.
//
//	recommended = max(raw)        over the usable metrics
//	desired     = max(stabilized)
//	replicas    = max(limited)
//
// With a metric that is not valid, desired and replicas are at least current;
// with none that is usable they are current, or on the way up to the minimum.
func (d *Decision) combine(p *Policy, current int32, now int64, m *Memory) {
	usable, highestRaw, highestLimited := 0, 0, 0
	for i := range p.Metrics {
		t := &d.Metrics[i]
		if t.Validity == Invalid {
			continue
		}
		if t.Validity == Valid {
			d.ValidMetrics++
		}
		if t.Raw > d.Metrics[highestRaw].Raw {
			highestRaw = i
		}
		// A usable metric's limit is at least 1, so it beats an unusable one's 0.
		if h := &d.Metrics[highestLimited]; t.Limited > h.Limited || t.Limited == h.Limited && t.Raw > h.Raw {
			highestLimited = i
		}
		d.Desired = max(d.Desired, t.Stabilized)
		usable++
	}
	switch {
	case usable == 0 && current < p.MinReplicas:
		d.restore(p, current, now, m)
		return
	case usable == 0:
		d.hold(p, current, RuleAllMetricsInvalid)
		return
	}
	d.Recommended = d.Metrics[highestRaw].Raw
	d.Replicas = d.Metrics[highestLimited].Limited
	switch {
	case d.Replicas < d.Recommended:
		// The highest demand was cut, so its own last rule says why.
		d.Rule = d.Metrics[highestRaw].Rule
	case d.Replicas > d.Recommended:
		// Every demand is lower, so the metric that holds says why.
		d.Rule = d.Metrics[highestLimited].Rule
	}
	if !d.Degraded() {
		return
	}
	if d.Replicas < current {
		d.hold(p, current, RuleSomeMetricsInvalid)
	}
	d.Desired = max(d.Desired, current)
}

// restore goes up to the minimum, which says what is needed whatever the load is, as far
// as any metric's limits allow:
//
//	replicas = max(limited(MinReplicas))
func (d *Decision) restore(p *Policy, current int32, now int64, m *Memory) {
	d.Desired, d.Replicas, d.Rule = p.MinReplicas, current, RuleBelowMinimum
	for i := range p.Metrics {
		limited, _ := p.Metrics[i].Behavior.limit(p.MinReplicas, current, now, p, m)
		d.Replicas = max(d.Replicas, limited)
	}
}

// hold keeps the current count. Above the bounds that is worth saying, as only valid
// metrics bring it back.
func (d *Decision) hold(p *Policy, current int32, why Rule) {
	d.Desired, d.Replicas, d.Rule = current, current, why
	if current > p.MaxReplicas {
		d.Rule = RuleOutOfBounds
	}
}

// markPending says what losing the memory now would postpone.
func (d *Decision) markPending(p *Policy) {
	var demand, held int32
	for i := range p.Metrics {
		t := &d.Metrics[i]
		demand = max(demand, t.Bounded)
		if p.Metrics[i].Behavior.UpStabilization > 0 {
			held = max(held, t.Bounded)
		}
	}
	d.PendingDown = !d.Degraded() && demand < d.Replicas
	d.PendingUp = held > d.Replicas
}
