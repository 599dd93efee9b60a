package scaling

// Rule names what kept the replica count from being the raw demand.
type Rule uint8

const (
	// RuleNone means: nothing limited the demand.
	RuleNone Rule = iota
	// RuleMinReplicas means: the demand is below the minimum.
	RuleMinReplicas
	// RuleMaxReplicas means: the demand is above the maximum.
	RuleMaxReplicas
	// RuleScaleUpStep means: the way up is limited to a step per poll interval.
	RuleScaleUpStep
	// RuleScaleDownStep means: the way down is limited to a step per poll interval.
	RuleScaleDownStep
	// RuleScaleDownStabilization means: the demand was higher within the window, or
	// the window is not covered by observations yet.
	RuleScaleDownStabilization
	// RuleScaleDownMinInterval means: the last successful scale-down is too recent.
	RuleScaleDownMinInterval
	// RuleSomeMetricsInvalid means: a metric is not fully valid, so nothing is removed.
	RuleSomeMetricsInvalid
	// RuleAllMetricsInvalid means: no metric can be used, so nothing changes.
	RuleAllMetricsInvalid
	// RuleSuspended means: a human asked for 0 replicas; they are left alone.
	RuleSuspended
	// RuleOutOfBounds means: the current count is outside the bounds and stays there,
	// because not all metrics are valid.
	RuleOutOfBounds
	// RuleInvalidPolicy means: the policy cannot be evaluated, so nothing changes.
	RuleInvalidPolicy
)

var ruleNames = [...]string{
	RuleNone:                   "None",
	RuleMinReplicas:            "MinReplicas",
	RuleMaxReplicas:            "MaxReplicas",
	RuleScaleUpStep:            "ScaleUpStep",
	RuleScaleDownStep:          "ScaleDownStep",
	RuleScaleDownStabilization: "ScaleDownStabilization",
	RuleScaleDownMinInterval:   "ScaleDownMinInterval",
	RuleSomeMetricsInvalid:     "SomeMetricsInvalid",
	RuleAllMetricsInvalid:      "AllMetricsInvalid",
	RuleSuspended:              "Suspended",
	RuleOutOfBounds:            "OutOfBounds",
	RuleInvalidPolicy:          "InvalidPolicy",
}

// String returns the rule's name as it appears in status and reports.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "Unknown"
}

// MetricTrace holds one metric's value after each stage. The numbers of a
// metric that cannot be used are 0.
type MetricTrace struct {
	// Validity is the sample's, after the check of its value.
	Validity Validity
	// Raw is the demand in replicas; Bounded is Raw within the bounds.
	Raw, Bounded int32
	// Stabilized is Bounded, held by the window; Limited is Stabilized within
	// the steps and the interval.
	Stabilized, Limited int32
	// Rule is the last stage that changed the value.
	Rule Rule
}

// Decision is the answer for one moment, with its reasons.
type Decision struct {
	// Recommended is the raw demand: the highest of the usable metrics, before
	// any bound. It may exceed MaxReplicas. 0 when no metric can be used.
	Recommended int32
	// Desired is the demand after bounds and stabilization: where the policy is
	// heading. It is at least the current count while a metric is not valid.
	Desired int32
	// Replicas is what should be asked for now. When it equals the current
	// count there is nothing to write.
	Replicas int32
	// Rule is the rule that kept Replicas from being Recommended, the one that
	// binds last; RuleNone when they are equal.
	Rule Rule
	// ValidMetrics of TotalMetrics are fully valid. Both are 0 under
	// RuleInvalidPolicy.
	ValidMetrics, TotalMetrics int
	// PendingDown says that all metrics are valid and ask for less than
	// Replicas, but a window, an interval or a step still holds it: losing the
	// memory now would postpone the scale-down.
	PendingDown bool
	// Metrics[i] traces Policy.Metrics[i], for i < TotalMetrics.
	Metrics [MaxMetrics]MetricTrace
}

// Degraded reports whether some metric is not fully valid.
func (d *Decision) Degraded() bool { return d.ValidMetrics < d.TotalMetrics }
