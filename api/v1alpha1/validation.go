package v1alpha1

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits are the platform's bounds from the operator's configuration.
type Limits struct {
	// MaxReplicas bounds spec.maxReplicas of every AutoScaler, 1 to
	// MaxReplicasCeiling.
	MaxReplicas int32
}

// DefaultLimits apply where the configuration says nothing.
var DefaultLimits = Limits{MaxReplicas: 1000}

// ValidateAutoScaler checks everything that one AutoScaler says by itself, but for the
// times of its schedules, which the package that evaluates them checks
// (spec.ValidateAutoScaler, which all callers use). It repeats the bounds of the CRD
// schema because a stored object may be older than the schema. Errors come in the order
// of the fields.
func ValidateAutoScaler(a *AutoScaler, limits Limits) field.ErrorList {
	spec := field.NewPath("spec")
	if a.DecodeError != "" {
		return field.ErrorList{undecodable(spec, a.DecodeError)}
	}
	s := &a.Spec
	var errs field.ErrorList
	errs = append(errs, validateName(spec.Child("targetRef", "name"), s.TargetRef.Name)...)
	errs = append(errs, validateReplicas(spec, s, limits)...)
	errs = append(errs, inRangeIfSet(spec.Child("pollIntervalSeconds"), s.PollIntervalSeconds, 5, 3600)...)
	errs = append(errs, notLonger(spec.Child("pauseReason"), s.PauseReason, MaxPauseReasonLength)...)
	errs = append(errs, validateClaimPolicy(spec.Child("claimPolicy"), s.ClaimPolicy)...)
	errs = append(errs, validateMetrics(spec.Child("metrics"), s.Metrics)...)
	errs = append(errs, validateBehavior(spec.Child("behavior"), s.Behavior)...)
	errs = append(errs, validateFallback(spec.Child("fallback"), s)...)
	return append(errs, validateSchedules(spec.Child("schedules"), s.Schedules, limits)...)
}

func validateClaimPolicy(path *field.Path, p ClaimPolicy) field.ErrorList {
	if p != "" && p != ClaimReject && p != ClaimWait {
		return field.ErrorList{field.NotSupported(path, p, []ClaimPolicy{ClaimReject, ClaimWait})}
	}
	return nil
}

func validateReplicas(spec *field.Path, s *AutoScalerSpec, limits Limits) field.ErrorList {
	errs := inRange(spec.Child("minReplicas"), s.MinReplicas, 1, MaxReplicasCeiling)
	path := spec.Child("maxReplicas")
	switch {
	case s.MaxReplicas < s.MinReplicas:
		errs = append(errs, field.Invalid(path, s.MaxReplicas, fmt.Sprintf("must be at least minReplicas (%d)", s.MinReplicas)))
	default:
		errs = append(errs, withinPlatform(path, s.MaxReplicas, limits)...)
	}
	return errs
}

func withinPlatform(path *field.Path, replicas int32, limits Limits) field.ErrorList {
	if replicas <= limits.MaxReplicas {
		return nil
	}
	return field.ErrorList{field.Invalid(path, replicas, fmt.Sprintf("the platform allows at most %d replicas; ask its administrator to raise limits.max_replicas in the operator's configuration", limits.MaxReplicas))}
}

func validateName(path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

// inRangeIfSet is for fields that have a default: 0 is "not set".
func inRangeIfSet(path *field.Path, value, low, high int32) field.ErrorList {
	if value == 0 {
		return nil
	}
	return inRange(path, value, low, high)
}

func inRange(path *field.Path, value, low, high int32) field.ErrorList {
	if value < low || value > high {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must be from %d to %d", low, high))}
	}
	return nil
}

// inRangeIfGiven is for optional fields in which 0 is a value.
func inRangeIfGiven(path *field.Path, value *int32, low, high int32) field.ErrorList {
	if value == nil {
		return nil
	}
	return inRange(path, *value, low, high)
}

// notLonger counts characters, as the schema's maxLength does.
func notLonger(path *field.Path, value string, limit int) field.ErrorList {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("must have at most %d characters", limit))}
}

func validateLabel(path *field.Path, value string) field.ErrorList {
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(value) {
		errs = append(errs, field.Invalid(path, value, msg))
	}
	return errs
}

func validateShare(path *field.Path, value string) field.ErrorList {
	switch {
	case value == "":
		return nil
	case len(value) > ShareMaxLength:
		return field.ErrorList{field.TooLong(path, value, ShareMaxLength)}
	}
	if _, err := ParseShare(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

func undecodable(path *field.Path, decodeError string) *field.Error {
	return field.Invalid(path, "(not decodable)", "the stored object does not fit this API version; apply it again with valid fields: "+decodeError)
}
