package v1alpha1

// Condition types of an AutoScaler and their reasons. Each reason carries the
// sentence that is true when it is set.

// ConditionReady: the controller can manage the Deployment. It does not say that
// the service's pods are ready. While it is not True for the reason of another
// condition, it has that reason.
const (
	ConditionReady = "Ready"

	// ReasonManaging: the claim is held, metrics are usable, writes are allowed.
	ReasonManaging = "Managing"
	// ReasonInvalidSpec: the spec is refused; nothing is evaluated until it changes.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonPaused: spec.paused is set, and spec.pausedUntil, where it is set, has not
	// come; recommendations go on, writes do not.
	ReasonPaused = "Paused"
	// ReasonDryRun: spec.dryRun is set; recommendations only.
	ReasonDryRun = "DryRun"
	// ReasonNotEvaluated: the evaluation ended before it came to this condition.
	ReasonNotEvaluated = "NotEvaluated"
)

// ConditionBound: this AutoScaler owns the Deployment's replica count.
const (
	ConditionBound = "Bound"

	// ReasonClaimHeld: the ScaleBinding names this AutoScaler and was confirmed.
	ReasonClaimHeld = "ClaimHeld"
	// ReasonManagersUnknown: the claim is held, but other replica managers of some kind
	// cannot be looked for, as without the permission to list them.
	ReasonManagersUnknown = "ManagersUnknown"
	// ReasonHeldByAnother: another AutoScaler owns the replica count.
	ReasonHeldByAnother = "HeldByAnother"
	// ReasonWaitingForRelease: another AutoScaler owns the replica count, or an HPA or
	// another replica manager scales the Deployment; this one takes over when that goes
	// (claimPolicy Wait).
	ReasonWaitingForRelease = "WaitingForRelease"
	// ReasonConflictingHPA: a HorizontalPodAutoscaler targets the Deployment.
	ReasonConflictingHPA = "ConflictingHPA"
	// ReasonConflictingManager: another registered replica manager targets the
	// Deployment, such as a KEDA ScaledObject.
	ReasonConflictingManager = "ConflictingManager"
)

// ConditionTargetAvailable: the Deployment exists and can be managed.
const (
	ConditionTargetAvailable = "TargetAvailable"

	// ReasonTargetFound: the Deployment exists.
	ReasonTargetFound = "TargetFound"
	// ReasonTargetNotFound: there is no such Deployment in the namespace.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetTerminating: the Deployment is being deleted.
	ReasonTargetTerminating = "TargetTerminating"
	// ReasonTargetSuspended: a person scaled the Deployment to 0; it is left
	// alone until somebody scales it to 1 or more.
	ReasonTargetSuspended = "TargetAtZero"
)

// ConditionMetricsAvailable: every metric has a valid sample. While false the
// reason is that of the first metric that has none: one of these, of the package
// scaling/prometheus, or scaling.ReasonNoReadyReplicas.
const (
	ConditionMetricsAvailable = "MetricsAvailable"

	// ReasonSamplesValid: every metric's sample is valid.
	ReasonSamplesValid = "SamplesValid"
	// ReasonAwaitingSamples: the metrics have been asked, and not all have been answered
	// for the first time.
	ReasonAwaitingSamples = "AwaitingSamples"
	// ReasonProfileNotFound: a metricProfileRef names no MetricProfile.
	ReasonProfileNotFound = "ProfileNotFound"
	// ReasonProfileForbidden: a MetricProfile does not allow this namespace.
	ReasonProfileForbidden = "ProfileForbidden"
	// ReasonProfileInvalid: a MetricProfile cannot be used.
	ReasonProfileInvalid = "ProfileInvalid"
	// ReasonParametersInvalid: the parameters of a metric are not what its MetricProfile
	// declares.
	ReasonParametersInvalid = "ParametersInvalid"
)

// ConditionAbleToScale: the next write of the replica count is allowed and would
// succeed as far as is known.
const (
	ConditionAbleToScale = "AbleToScale"

	// ReasonScaleReady: the last write succeeded, or none was needed.
	ReasonScaleReady = "ScaleReady"
	// ReasonForbidden: the operator's account lacks a permission that it needs here.
	ReasonForbidden = "Forbidden"
	// ReasonScaleConflict: the Deployment changed between decision and write; the
	// decision was dropped.
	ReasonScaleConflict = "ScaleConflict"
	// ReasonScaleFailed: the API server refused the write for another reason.
	ReasonScaleFailed = "ScaleFailed"
	// ReasonEvaluationFailed: a step before the write failed; it is tried again.
	ReasonEvaluationFailed = "EvaluationFailed"
	// ReasonContended: another writer changed the replica count; the next write waits
	// for the end of a back-off, and then has yet to last.
	ReasonContended = "Contended"
	// ReasonNotBound: the AutoScaler does not own the replica count.
	ReasonNotBound = "NotBound"
)

// ConditionScalingLimited: a rule keeps the result from being the recommendation.
const (
	ConditionScalingLimited = "ScalingLimited"

	// ReasonNotLimited: the result of the decision is the recommendation.
	ReasonNotLimited = "NotLimited"
	// ReasonAtMinReplicas: the demand is below minReplicas.
	ReasonAtMinReplicas = "AtMinReplicas"
	// ReasonAtMaxReplicas: the demand is above maxReplicas; the service lacks
	// capacity.
	ReasonAtMaxReplicas = "AtMaxReplicas"
	// ReasonScaleUpStepLimited: scaleUpMaxStep limits the move.
	ReasonScaleUpStepLimited = "ScaleUpStepLimited"
	// ReasonScaleUpRateLimited: scaleUpRate limits what is added within its period.
	ReasonScaleUpRateLimited = "ScaleUpRateLimited"
	// ReasonScaleUpStabilized: a lower recommendation lies within the scale-up window,
	// or that window is not covered yet.
	ReasonScaleUpStabilized = "ScaleUpStabilized"
	// ReasonWithinTolerance: the demand is so near to the count that toleranceUp or
	// toleranceDown holds it.
	ReasonWithinTolerance = "WithinTolerance"
	// ReasonScaleDownStepLimited: scaleDownMaxStep limits the move.
	ReasonScaleDownStepLimited = "ScaleDownStepLimited"
	// ReasonScaleDownStabilized: a higher recommendation lies within the window,
	// or the window is not covered yet.
	ReasonScaleDownStabilized = "ScaleDownStabilized"
	// ReasonScaleDownInterval: scaleDownMinIntervalSeconds has not passed.
	ReasonScaleDownInterval = "ScaleDownIntervalLimited"
	// ReasonSomeMetricsInvalid: a metric is invalid, so scaling down is forbidden.
	ReasonSomeMetricsInvalid = "SomeMetricsInvalid"
	// ReasonAllMetricsInvalid: no metric is usable; the count is held.
	ReasonAllMetricsInvalid = "AllMetricsInvalid"
	// ReasonBelowMinimum: no metric is usable, and the count is below minReplicas, the
	// spec's or that of a schedule in force; it is raised to that.
	ReasonBelowMinimum = "BelowMinimum"
	// ReasonOutOfBounds: the count is above maxReplicas and held there, because not all
	// metrics are valid.
	ReasonOutOfBounds = "OutOfBounds"
	// ReasonFallbackFloor: no metric has been usable for fallback.afterSeconds, and the
	// count is raised to fallback.floorReplicas.
	ReasonFallbackFloor = "FallbackFloor"
	// ReasonFrozen: a schedule in force forbids the move.
	ReasonFrozen = "Frozen"
)
