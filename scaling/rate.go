package scaling

import "math"

// limitUp lets an up through as far as the rate allows:
//
//	limited = min(stabilized, current + UpRate.MaxReplicas - added)
//
// with added = the replicas that the recorded writes of the last UpRate.Period
// added. So no period, wherever it begins, sees more than MaxReplicas added, however
// often the policy is evaluated in it. What was removed meanwhile gives nothing
// back, and a count that a human raised uses nothing up. Only ups that the present
// policy can count are kept: a period that is made longer begins with those.
func (r Rate) limitUp(stabilized, current int32, now int64, m *Memory) (int32, Rule) {
	if r.MaxReplicas == 0 {
		return stabilized, RuleNone
	}
	left := int64(r.MaxReplicas)
	for _, up := range m.Ups {
		if up.At != 0 && age(now, up.At) < span(r.Period) {
			left -= int64(up.Added)
		}
	}
	ceiling := int64(current) + max(left, 0)
	if int64(stabilized) <= ceiling {
		return stabilized, RuleNone
	}
	return int32(ceiling), RuleScaleUpRate //nolint:gosec // below stabilized, an int32
}

// added remembers a scale-up, of nothing or less not at all. Where there is no room
// the two neighbors that are nearest in time become one, as if both had happened
// at the time of the later: they count for longer then, never shorter.
func (m *Memory) added(now, n int64) {
	if n <= 0 {
		return
	}
	up := Up{At: now, Added: int32(min(n, math.MaxInt32))}
	last := len(m.Ups) - 1
	if m.Ups[last].At != 0 {
		m.joinUps()
	}
	for i := range m.Ups {
		if m.Ups[i].At == 0 {
			m.Ups[i] = up
			return
		}
	}
}

// joinUps makes one of two neighbors, so that the last place is free.
func (m *Memory) joinUps() {
	nearest := 1
	for i := 2; i < len(m.Ups); i++ {
		if m.Ups[i].At-m.Ups[i-1].At < m.Ups[nearest].At-m.Ups[nearest-1].At {
			nearest = i
		}
	}
	m.Ups[nearest].Added = saturate(m.Ups[nearest].Added, m.Ups[nearest-1].Added)
	copy(m.Ups[nearest-1:], m.Ups[nearest:])
	m.Ups[len(m.Ups)-1] = Up{}
}

// forgetUps drops the ups that no rate counts any more, and what storage has
// spoilt, and puts the rest in order.
func (m *Memory) forgetUps(now, period int64) {
	kept := 0
	for i := range m.Ups {
		up := m.Ups[i]
		m.Ups[i] = Up{}
		if up.At <= 0 || up.Added <= 0 || age(now, up.At) >= period {
			continue
		}
		up.At = min(up.At, now)
		at := kept
		for ; at > 0 && m.Ups[at-1].At > up.At; at-- {
			m.Ups[at] = m.Ups[at-1]
		}
		m.Ups[at] = up
		kept++
	}
}

// longestPeriod is that of the policy's rates, 0 without any.
func (p *Policy) longestPeriod() int64 {
	var longest int64
	for i := range p.Metrics {
		longest = max(longest, span(p.Metrics[i].Behavior.UpRate.Period))
	}
	return longest
}

func saturate(a, b int32) int32 {
	return int32(min(int64(a)+int64(b), math.MaxInt32)) //nolint:gosec // bounded on both sides: neither is negative
}
