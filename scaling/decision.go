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
	// RuleOutOfBounds means: the current count is above the maximum and stays there,
	// because not all metrics are valid.
	RuleOutOfBounds
	// RuleInvalidPolicy means: the policy cannot be evaluated, so nothing changes.
	RuleInvalidPolicy
	// RuleTolerance means: the demand is so near to the current count that it is
	// taken for met.
	RuleTolerance
	// RuleScaleUpStabilization means: the demand was lower within the window of the
	// scale-up, or that window is not covered by observations yet.
	RuleScaleUpStabilization
	// RuleScaleUpRate means: as many replicas as the rate allows were added within
	// its period.
	RuleScaleUpRate
	// RuleFallbackFloor means: nothing has been known of the load for so long that
	// the count is raised to the floor.
	RuleFallbackFloor
	// RuleFrozen means: a freeze forbids the move.
	RuleFrozen
	// RuleBelowMinimum means: no metric can be used, and the count is below the minimum,
	// which it is raised to.
	RuleBelowMinimum
	ruleCount
)

var ruleNames = [ruleCount]string{
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
	RuleTolerance:              "Tolerance",
	RuleScaleUpStabilization:   "ScaleUpStabilization",
	RuleScaleUpRate:            "ScaleUpRate",
	RuleFallbackFloor:          "FallbackFloor",
	RuleBelowMinimum:           "BelowMinimum",
	RuleFrozen:                 "Frozen",
}

// String returns the rule's name as it appears in status and reports.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "Unknown"
}

const (
	// ReasonNoReadyReplicas is a metric's when its value is an average over Ready
	// replicas and there are none: what it was taken over is unknown.
	ReasonNoReadyReplicas = "NoReadyReplicas"
	// ReasonInvalidValue is a metric's when its value is NaN, infinite or negative
	// and the sample does not say so itself.
	ReasonInvalidValue = "InvalidValue"
)

// MetricTrace holds one metric's value after each stage. The numbers of a
// metric that cannot be used are 0.
type MetricTrace struct {
	// Validity is the sample's, after the check of its value.
	Validity Validity
	// Reason is why it is not Valid: the sample's, or one of this package.
	Reason string
	// Raw is the demand in replicas; Tolerated is Raw, or the current count where
	// the demand is near enough to it; Bounded is Tolerated within the bounds.
	Raw, Tolerated, Bounded int32
	// Stabilized is Bounded, held by the windows; Limited is Stabilized within
	// the steps, the rate and the interval.
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
	// PendingUp says that a metric with a window of the scale-up asks for more than
	// Replicas: losing the memory now would start that window anew and postpone the
	// scale-up, whatever holds it at present.
	PendingUp bool
	// Metrics[i] traces Policy.Metrics[i], for i < TotalMetrics.
	Metrics [MaxMetrics]MetricTrace
}

// Degraded reports whether some metric is not fully valid.
func (d *Decision) Degraded() bool { return d.ValidMetrics < d.TotalMetrics }
