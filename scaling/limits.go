package scaling

// limit lets the demand move away from current only as far as the metric's
// steps, rate and interval allow. With base = the replicas at the start of the
// running poll interval, or current if none is running:
//
//	up:   limited = min(stabilized, base + UpMaxStep), and as the rate allows (rate.go)
//	down: limited = current                               until DownMinInterval has
//	                                                      passed since the last down
//	      limited = max(stabilized, base - DownMaxStep)   after that
//
// Steps count from the records of successful writes, so an evaluation that
// comes early adds none. The result lies between current and the demand even
// if a human moved the replicas since the base was recorded.
func (b *Behavior) limit(stabilized, current int32, now int64, p *Policy, m *Memory) (int32, Rule) {
	switch {
	case stabilized > current:
		return b.limitUp(stabilized, current, now, p, m)
	case stabilized < current:
		return b.limitDown(stabilized, current, now, p, m)
	}
	return stabilized, RuleNone
}

func (b *Behavior) limitUp(stabilized, current int32, now int64, p *Policy, m *Memory) (int32, Rule) {
	stabilized, rule := b.UpRate.limitUp(stabilized, current, now, m)
	if b.UpMaxStep == 0 {
		return stabilized, rule
	}
	base := current
	if m.Up.live(now, p.PollInterval) {
		base = min(base, m.Up.Base)
	}
	ceiling := int64(base) + int64(b.UpMaxStep)
	if int64(stabilized) <= ceiling {
		return stabilized, rule
	}
	return int32(max(ceiling, int64(current))), RuleScaleUpStep //nolint:gosec // below stabilized, an int32
}

func (b *Behavior) limitDown(stabilized, current int32, now int64, p *Policy, m *Memory) (int32, Rule) {
	if m.LastDown != 0 && age(now, m.LastDown) < span(b.DownMinInterval) {
		return current, RuleScaleDownMinInterval
	}
	if b.DownMaxStep == 0 {
		return stabilized, RuleNone
	}
	base := current
	if m.Down.live(now, p.PollInterval) {
		base = max(base, m.Down.Base)
	}
	floor := int64(base) - int64(b.DownMaxStep)
	if int64(stabilized) >= floor {
		return stabilized, RuleNone
	}
	return int32(min(floor, int64(current))), RuleScaleDownStep //nolint:gosec // above stabilized, an int32
}
