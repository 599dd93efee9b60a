package scaling

// tolerate takes a demand for met that is near enough to the current count:
//
//	tolerated = current   where (1-ToleranceDown)*current <= needed <= (1+ToleranceUp)*current
//	tolerated = raw       otherwise
//
// The fraction is compared, not the count that it is rounded up to, and the ends
// belong to the band: 132 at a target of 120 is within 0.1, whatever the division
// makes of it. The bounds come later, so a count outside them is not tolerated.
func (b *Behavior) tolerate(raw int32, needed float64, current int32) (int32, Rule) {
	if raw == current || current <= 0 {
		return raw, RuleNone
	}
	n := float64(current)
	if needed < n*(1-b.ToleranceDown)*(1-noise) || needed > n*(1+b.ToleranceUp)*(1+noise) {
		return raw, RuleNone
	}
	return current, RuleTolerance
}
