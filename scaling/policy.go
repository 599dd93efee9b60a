package scaling

import (
	"math"
	"time"
)

const (
	// MaxMetrics is the largest number of metrics in one policy.
	MaxMetrics = 10
	// MaxDownStabilization is the longest stabilization window.
	MaxDownStabilization = 24 * time.Hour
)

// Behavior limits how fast one metric may move the replica count.
type Behavior struct {
	// UpMaxStep is the number of replicas that may be added within one poll
	// interval, however often the policy is evaluated in it. 0 is no limit.
	UpMaxStep int32
	// DownMaxStep is the number of replicas that may be removed within one poll
	// interval. 0 is no limit.
	DownMaxStep int32
	// DownStabilization is the length of the window whose highest demand is the
	// floor of a scale-down: 0 (no window) to MaxDownStabilization.
	DownStabilization time.Duration
	// DownMinInterval is the least time between two successful scale-downs.
	// 0 is no limit.
	DownMinInterval time.Duration
}

// Metric is one measure of the workload's total load and what a replica bears.
type Metric struct {
	// Name is for people and traces; it takes no part in the decision.
	Name string
	// Key identifies what is measured and how. The window follows the key when
	// metrics are reordered; a metric with an unknown key starts a new window.
	Key uint64
	// TargetPerReplica is the load that one replica should bear, in the unit of
	// the sample: finite and above 0.
	TargetPerReplica float64
	Behavior         Behavior
}

// Policy is the rule by which replicas follow load.
type Policy struct {
	// MinReplicas and MaxReplicas bound the demand: 1 <= min <= max.
	MinReplicas, MaxReplicas int32
	// PollInterval is the intended time between two evaluations, and the unit
	// in which steps are granted. It must be above 0.
	PollInterval time.Duration
	// Metrics holds 1 to MaxMetrics metrics.
	Metrics []Metric
}

// Validity says how far a sample can be trusted. The zero value is Invalid.
type Validity uint8

const (
	// Invalid samples say nothing about the load; they are not zero load.
	Invalid Validity = iota
	// ScaleUpOnly samples come from a partial answer: the load is at least this.
	ScaleUpOnly
	// Valid samples can be trusted in both directions.
	Valid
)

// String returns the constant's name.
func (v Validity) String() string {
	switch v {
	case Valid:
		return "Valid"
	case ScaleUpOnly:
		return "ScaleUpOnly"
	case Invalid:
		return "Invalid"
	}
	return "Unknown"
}

// Sample is one metric's answer.
type Sample struct {
	// Value is the total load. A value that is not finite or is negative makes
	// the sample Invalid, whatever Validity says.
	Value    float64
	Validity Validity
	// Reason is a machine-readable word for what is wrong; empty when Valid.
	Reason string
	// Message explains Reason to people. It holds no address and no credentials.
	Message string
}

// Observation is what was seen at one moment.
type Observation struct {
	// Now is the time of the evaluation.
	Now time.Time
	// Target is the UID of the workload. History of another UID is not used.
	Target string
	// Current is the number of replicas asked for (spec.replicas, an absent
	// value already taken as 1); never the number that runs.
	Current int32
	// Samples[i] answers Policy.Metrics[i]; a missing one is Invalid.
	Samples []Sample
}

// valid reports whether every field of the policy is within its range. The
// message for people is the business of the validation of the spec that the
// policy comes from; here an unusable policy only has to do no harm.
func (p *Policy) valid() bool {
	if p == nil || p.MinReplicas < 1 || p.MaxReplicas < p.MinReplicas || p.PollInterval <= 0 ||
		len(p.Metrics) == 0 || len(p.Metrics) > MaxMetrics {
		return false
	}
	for i := range p.Metrics {
		m := &p.Metrics[i]
		if !(m.TargetPerReplica > 0) || math.IsInf(m.TargetPerReplica, 0) || !m.Behavior.valid() {
			return false
		}
	}
	return true
}

func (b *Behavior) valid() bool {
	return b.UpMaxStep >= 0 && b.DownMaxStep >= 0 && b.DownMinInterval >= 0 &&
		b.DownStabilization >= 0 && b.DownStabilization <= MaxDownStabilization
}
