package hpa

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// behave is the way of an HPA with a behavior: its windows, then its policies and bounds.
//
//	lowest, highest = min and max of proposed and of the proposals within the window of
//	                  the way up and of the way down
//	desired         = min(max(current, lowest), highest)
//	replicas        = desired within what the policies allow and the bounds
func (a *Autoscaler) behave(now time.Time, current int32, d *Decision) {
	d.Desired = a.stabilize(now, current, d.Recommended)
	switch {
	case d.Desired == d.Recommended:
	case d.Recommended >= current:
		d.Reason = ReasonUp
	default:
		d.Reason = ReasonDown
	}
	d.Replicas = d.Desired
	switch {
	case d.Desired > current:
		limit, reason := a.max, ReasonTooMany
		if fast := max(a.memory.upLimit(now, current, a.rules.up), current); limit > fast {
			limit, reason = fast, ReasonUpLimit
		}
		if d.Desired > limit {
			d.Replicas, d.Reason = limit, reason
		}
	case d.Desired < current:
		limit, reason := a.min, ReasonTooFew
		if fast := min(a.memory.downLimit(now, current, a.rules.down), current); limit < fast {
			limit, reason = fast, ReasonDownLimit
		}
		if d.Desired < limit {
			d.Replicas, d.Reason = limit, reason
		}
	}
}

func (a *Autoscaler) stabilize(now time.Time, current, proposed int32) int32 {
	m := &a.memory
	lowest, highest, old := proposed, proposed, -1
	upCutoff, downCutoff := now.Add(-a.rules.upWindow), now.Add(-a.rules.downWindow)
	for i, r := range m.recommendations {
		if r.at.After(upCutoff) {
			lowest = min(lowest, r.replicas)
		}
		if r.at.After(downCutoff) {
			highest = max(highest, r.replicas)
		}
		if r.at.Before(upCutoff) && r.at.Before(downCutoff) {
			old = i
		}
	}
	m.record(old, recommendation{proposed, now})
	return min(max(current, lowest), highest)
}

// upLimit is the highest count that the policies allow now. Each grants its pods, or its
// share, on top of the count at the beginning of its period.
func (m *memory) upLimit(now time.Time, current int32, r *autoscalingv2.HPAScalingRules) int32 {
	limit, choose := int32(math.MinInt32), higher
	switch *r.SelectPolicy {
	case autoscalingv2.DisabledPolicySelect:
		return current
	case autoscalingv2.MinChangePolicySelect:
		limit, choose = math.MaxInt32, lower
	case autoscalingv2.MaxChangePolicySelect:
	}
	for _, p := range r.Policies {
		begin := m.before(now, current, p.PeriodSeconds)
		if p.Type == autoscalingv2.PercentScalingPolicy {
			// Up to a whole one, or a small count would never grow.
			limit = choose(limit, int32(math.Min(math.Ceil(float64(begin)*(1+float64(p.Value)/100)), math.MaxInt32)))
			continue
		}
		limit = choose(limit, begin+p.Value)
	}
	return limit
}

// downLimit is the lowest count that the policies allow now.
func (m *memory) downLimit(now time.Time, current int32, r *autoscalingv2.HPAScalingRules) int32 {
	limit, choose := int32(math.MaxInt32), lower
	switch *r.SelectPolicy {
	case autoscalingv2.DisabledPolicySelect:
		return current
	case autoscalingv2.MinChangePolicySelect:
		limit, choose = math.MinInt32, higher
	case autoscalingv2.MaxChangePolicySelect:
	}
	for _, p := range r.Policies {
		begin := m.before(now, current, p.PeriodSeconds)
		if p.Type == autoscalingv2.PercentScalingPolicy {
			limit = choose(limit, int32(float64(begin)*(1-float64(p.Value)/100)))
			continue
		}
		limit = choose(limit, begin-p.Value)
	}
	return limit
}

func higher(a, b int32) int32 { return max(a, b) }
func lower(a, b int32) int32  { return min(a, b) }

// before is the count at the beginning of the period that ends now.
func (m *memory) before(now time.Time, current, periodSeconds int32) int32 {
	cutoff := now.Add(-time.Duration(periodSeconds) * time.Second)
	return current - changed(m.ups, cutoff) + changed(m.downs, cutoff)
}

func changed(events []event, since time.Time) (replicas int32) {
	for _, e := range events {
		if e.at.After(since) {
			replicas += e.replicas
		}
	}
	return replicas
}

// store keeps a change of the count for as long as a policy counts it.
func (m *memory) store(now time.Time, from, to int32, r *rules) {
	if to > from {
		m.ups = keep(m.ups, now, to-from, r.up.Policies)
		return
	}
	m.downs = keep(m.downs, now, from-to, r.down.Policies)
}

func keep(events []event, now time.Time, replicas int32, policies []autoscalingv2.HPAScalingPolicy) []event {
	var longest int32
	for _, p := range policies {
		longest = max(longest, p.PeriodSeconds)
	}
	cutoff, old := now.Add(-time.Duration(longest)*time.Second), -1
	for i := range events {
		events[i].outdated = events[i].outdated || events[i].at.Before(cutoff)
		if events[i].outdated {
			old = i
		}
	}
	newest := event{replicas: replicas, at: now}
	if old >= 0 {
		events[old] = newest
		return events
	}
	return append(events, newest)
}
