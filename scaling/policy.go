package scaling

import (
	"math"
	"time"
)

const (
	// MaxMetrics is the largest number of metrics in one policy.
	MaxMetrics = 10
	// MaxDownStabilization is the longest window of a scale-down.
	MaxDownStabilization = 24 * time.Hour
	// MaxUpStabilization is the longest window of a scale-up.
	MaxUpStabilization = time.Hour
	// MaxRatePeriod is the longest period of a rate.
	MaxRatePeriod = time.Hour
)

// Semantics says what a metric's number means, and so how replicas follow from it.
type Semantics uint8

const (
	// Total is the load of the whole workload, such as requests per second.
	Total Semantics = iota
	// PerReplicaAverage is the load that a Ready replica bears on average.
	PerReplicaAverage
	// Backlog is the number of items that wait, beside the rate at which more arrive.
	Backlog
)

// Rate limits what is added over time. The zero value is no limit.
type Rate struct {
	// MaxReplicas may be added within any Period, over the recorded writes.
	MaxReplicas int32
	// Period is at most MaxRatePeriod.
	Period time.Duration
}

// Behavior limits how fast one metric may move the replica count.
type Behavior struct {
	// UpMaxStep is the number of replicas that may be added within one poll
	// interval, however often the policy is evaluated in it. 0 is no limit.
	UpMaxStep int32
	// DownMaxStep is the number of replicas that may be removed within one poll
	// interval. 0 is no limit.
	DownMaxStep int32
	// UpRate limits the replicas that are added within any of its periods.
	UpRate Rate
	// UpStabilization is the length of the window whose lowest demand is the
	// ceiling of a scale-up: 0 (no window) to MaxUpStabilization.
	UpStabilization time.Duration
	// DownStabilization is the length of the window whose highest demand is the
	// floor of a scale-down: 0 (no window) to MaxDownStabilization.
	DownStabilization time.Duration
	// DownMinInterval is the least time between two successful scale-downs.
	// 0 is no limit.
	DownMinInterval time.Duration
	// ToleranceUp and ToleranceDown are the shares, 0 to 1, by which the demand may
	// exceed the current count, or fall short of it, before replicas follow. The
	// ends belong to the band.
	ToleranceUp, ToleranceDown float64
}

// Metric is one measure of the workload's load and what a replica bears.
type Metric struct {
	// Name is for people and traces; it takes no part in the decision.
	Name string
	// Key identifies what is measured and how. The window follows the key when
	// metrics are reordered; a metric with an unknown key starts a new window.
	Key uint64
	// Semantics says what the sample's value means.
	Semantics Semantics
	// TargetPerReplica is the load that one replica should bear, in the unit of
	// the sample: finite and above 0. For a Backlog it is in items per second.
	TargetPerReplica float64
	// Clearance is the time in which a Backlog should be worked off. Only a Backlog
	// uses it, and needs it.
	Clearance time.Duration
	Behavior  Behavior
}

// Freeze forbids moves for a time, such as during maintenance.
type Freeze uint8

const (
	// FreezeNone forbids nothing.
	FreezeNone Freeze = iota
	// FreezeScaleDown forbids to remove replicas.
	FreezeScaleDown
	// FreezeAll forbids any move.
	FreezeAll
)

// Fallback is the count for when nothing is known of the load for long. The zero
// value is none.
type Fallback struct {
	// FloorReplicas is what a smaller count is raised to, within the bounds.
	FloorReplicas int32
	// After is how long every metric must have been invalid without a pause.
	After time.Duration
}

// Policy is the rule by which replicas follow load.
type Policy struct {
	// MinReplicas and MaxReplicas bound the demand: 1 <= min <= max. The schedules
	// that are active have moved them already.
	MinReplicas, MaxReplicas int32
	Freeze                   Freeze
	Fallback                 Fallback
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
	// Value is the load. A value that is not finite or is negative makes the
	// sample Invalid, whatever Validity says.
	Value float64
	// ArrivalRate is, for a Backlog only, the items that arrive per second. What
	// is said of Value holds for it too.
	ArrivalRate float64
	// Ready is, for a PerReplicaAverage only, the number of replicas that were Ready
	// when the sample was taken: those that it is the average of. A sample that is used
	// again keeps it, or a replica that became Ready meanwhile would be counted as one
	// that bore load.
	Ready    int32
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
		p.Freeze > FreezeAll || p.Fallback.FloorReplicas < 0 || p.Fallback.After < 0 ||
		len(p.Metrics) == 0 || len(p.Metrics) > MaxMetrics {
		return false
	}
	for i := range p.Metrics {
		if !p.Metrics[i].valid() {
			return false
		}
	}
	return true
}

func (m *Metric) valid() bool {
	return m.TargetPerReplica > 0 && !math.IsInf(m.TargetPerReplica, 0) &&
		m.Semantics <= Backlog && (m.Semantics != Backlog || m.Clearance > 0) && m.Behavior.valid()
}

func (b *Behavior) valid() bool {
	return b.UpMaxStep >= 0 && b.DownMaxStep >= 0 && b.DownMinInterval >= 0 && b.UpRate.valid() &&
		within(b.UpStabilization, MaxUpStabilization) && within(b.DownStabilization, MaxDownStabilization) &&
		isShare(b.ToleranceUp) && isShare(b.ToleranceDown)
}

// windowed reports whether any history of the demand is needed.
func (b *Behavior) windowed() bool { return b.DownStabilization > 0 || b.UpStabilization > 0 }

// valid refuses half a rate, which would be no limit or a limit for ever.
func (r Rate) valid() bool {
	return r.MaxReplicas >= 0 && within(r.Period, MaxRatePeriod) && (r.MaxReplicas > 0) == (r.Period > 0)
}

func within(d, longest time.Duration) bool { return d >= 0 && d <= longest }

// isShare is false for NaN.
func isShare(f float64) bool { return f >= 0 && f <= 1 }
