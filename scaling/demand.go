package scaling

import "math"

// tolerance is the part of a replica count, relative to the count itself, that
// is taken for rounding noise of the division: 3.0000000004 is 3.
const tolerance = 1e-9

// trusted returns the sample's validity after a check of its value. The
// sampler has checked it already; a number that would poison the arithmetic is
// refused here once more.
func (s *Sample) trusted() Validity {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0 || s.Validity > Valid {
		return Invalid
	}
	return s.Validity
}

// rawDemand is the number of replicas that bear the load, with no rule applied:
//
//	raw = ceil(value / target), between 0 and MaxInt32
//
// The quotient is clamped as a float: converting a larger one to int32 gives a
// negative number on amd64 and others elsewhere.
func rawDemand(value, target float64) int32 {
	q := value / target
	if q >= math.MaxInt32 {
		return math.MaxInt32
	}
	n := math.Round(q)
	if q-n > tolerance*n {
		n = math.Ceil(q)
	}
	return int32(n)
}

// bound is clamp(raw, min, max) and the bound that was met, if any.
func (p *Policy) bound(raw int32) (int32, Rule) {
	switch {
	case raw < p.MinReplicas:
		return p.MinReplicas, RuleMinReplicas
	case raw > p.MaxReplicas:
		return p.MaxReplicas, RuleMaxReplicas
	}
	return raw, RuleNone
}

func (p *Policy) clamp(n int32) int32 { return max(p.MinReplicas, min(n, p.MaxReplicas)) }
