package hpa

import (
	"math"
	"time"
)

const (
	// upFactor and upLeast limit the way up of an HPA without a behavior: to the double,
	// or to 4.
	upFactor = 2.0
	upLeast  = 4.0
)

// legacy is the way of an HPA without a behavior:
//
//	desired  = max(proposed, the proposals of the last 5 minutes)
//	replicas = clamp(desired, min, min(max, max(2*current, 4)))
func (a *Autoscaler) legacy(now time.Time, current int32, d *Decision) {
	d.Desired = a.memory.highest(now, d.Recommended)
	if d.Desired != d.Recommended {
		d.Reason = ReasonDown
	}
	limit, reason := a.max, ReasonTooMany
	if fast := int32(math.Min(math.Max(upFactor*float64(current), upLeast), math.MaxInt32)); a.max > fast {
		limit, reason = fast, ReasonUpLimit
	}
	switch {
	case d.Desired < a.min:
		d.Replicas, d.Reason = a.min, ReasonTooFew
	case d.Desired > limit:
		d.Replicas, d.Reason = limit, reason
	default:
		d.Replicas = d.Desired
	}
}

// highest is the highest of a proposal and those of the window, and records it.
func (m *memory) highest(now time.Time, proposed int32) int32 {
	cutoff, old := now.Add(-downWindow), -1
	most := proposed
	for i, r := range m.recommendations {
		if r.at.Before(cutoff) {
			old = i
		} else {
			most = max(most, r.replicas)
		}
	}
	m.record(old, recommendation{proposed, now})
	return most
}

// record keeps a proposal, in the place of an old one if there is any.
func (m *memory) record(old int, r recommendation) {
	if old >= 0 {
		m.recommendations[old] = r
		return
	}
	m.recommendations = append(m.recommendations, r)
}
