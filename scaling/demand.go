package scaling

import "math"

// noise is the part of a replica count, relative to the count itself, that is
// taken for rounding noise of the division: 3.0000000004 is 3.
const noise = 1e-9

// demand is what one metric asks for, before anything that depends on history.
func (p *Policy) demand(i int, o *Observation) MetricTrace {
	if i >= len(o.Samples) {
		return MetricTrace{}
	}
	metric, sample := &p.Metrics[i], &o.Samples[i]
	t := MetricTrace{Reason: sample.Reason}
	if t.Validity = sample.trusted(metric.Semantics); t.Validity == Invalid {
		if sample.Validity != Invalid {
			t.Reason = ReasonInvalidValue
		}
		return t
	}
	if metric.Semantics == PerReplicaAverage && sample.Ready <= 0 {
		return MetricTrace{Reason: ReasonNoReadyReplicas}
	}
	needed := metric.needed(sample)
	t.Raw = rawDemand(needed)
	t.Tolerated, t.Rule = metric.Behavior.tolerate(t.Raw, needed, o.Current)
	if bounded := p.clamp(t.Tolerated); bounded != t.Tolerated {
		t.Bounded, t.Rule = bounded, boundMet(bounded, t.Tolerated)
		return t
	}
	t.Bounded = t.Tolerated
	return t
}

// trusted returns the sample's validity after a check of its numbers. The
// sampler has checked them already; one that would poison the arithmetic is
// refused here once more.
func (s *Sample) trusted(of Semantics) Validity {
	if !isLoad(s.Value) || of == Backlog && !isLoad(s.ArrivalRate) || s.Validity > Valid {
		return Invalid
	}
	return s.Validity
}

// isLoad is false for NaN.
func isLoad(f float64) bool { return f >= 0 && !math.IsInf(f, 1) }

// needed is the number of replicas that bear the load, as a fraction:
//
//	Total:             value / target
//	PerReplicaAverage: ready * value / target
//	Backlog:           (arrivals + value / clearance) / target
//
// It can be infinite, but not NaN: every number in it is finite, and neither target
// nor clearance is 0.
func (m *Metric) needed(s *Sample) float64 {
	load := s.Value
	switch m.Semantics {
	case Total:
	case PerReplicaAverage:
		load *= float64(s.Ready)
	case Backlog:
		load = s.ArrivalRate + load/m.Clearance.Seconds()
	}
	return load / m.TargetPerReplica
}

// rawDemand is that number in whole replicas, with no rule applied:
//
//	raw = ceil(needed), between 0 and MaxInt32
//
// It is clamped as a float: converting a larger one to int32 gives a negative
// number on amd64 and others elsewhere.
func rawDemand(needed float64) int32 {
	if needed >= math.MaxInt32 {
		return math.MaxInt32
	}
	n := math.Round(needed)
	if needed-n > noise*n {
		n = math.Ceil(needed)
	}
	return int32(n)
}

func (p *Policy) clamp(n int32) int32 { return max(p.MinReplicas, min(n, p.MaxReplicas)) }

// boundMet says which bound made a count the bounded one.
func boundMet(bounded, n int32) Rule {
	if bounded > n {
		return RuleMinReplicas
	}
	return RuleMaxReplicas
}
