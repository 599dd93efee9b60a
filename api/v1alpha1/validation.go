package v1alpha1

import (
	"fmt"
	"slices"

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

// ValidateAutoScaler checks everything that one AutoScaler says by itself. It is
// the only validation of a spec: admission, reconciler and command line call it,
// so they cannot disagree. It repeats the bounds of the CRD schema because a
// stored object may be older than the schema. Errors come in the order of the
// fields.
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
	errs = append(errs, validateClaimPolicy(spec.Child("claimPolicy"), s.ClaimPolicy)...)
	errs = append(errs, validateMetrics(spec.Child("metrics"), s.Metrics)...)
	return append(errs, validateBehavior(spec.Child("behavior"), s.Behavior)...)
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
	case s.MaxReplicas > limits.MaxReplicas:
		errs = append(errs, field.Invalid(path, s.MaxReplicas, fmt.Sprintf("the platform allows at most %d replicas; ask its administrator to raise limits.max_replicas in the operator's configuration", limits.MaxReplicas)))
	}
	return errs
}

func validateMetrics(path *field.Path, metrics []MetricSpec) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(metrics) == 0:
		return append(errs, field.Required(path, "name at least one metric; without one nothing can be decided"))
	case len(metrics) > MaxMetrics:
		return append(errs, field.TooMany(path, len(metrics), MaxMetrics))
	}
	seen := make(map[string]bool, len(metrics))
	for i := range metrics {
		m, at := &metrics[i], path.Index(i)
		for _, msg := range validation.IsDNS1123Label(m.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, msg))
		}
		if seen[m.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		}
		seen[m.Name] = true
		if m.Type != MetricTypePrometheus {
			errs = append(errs, field.NotSupported(at.Child("type"), m.Type, []MetricType{MetricTypePrometheus}))
		}
		errs = append(errs, validateName(at.Child("metricProfileRef"), m.MetricProfileRef)...)
		errs = append(errs, validateTarget(at.Child("targetPerReplica"), m.TargetPerReplica)...)
		errs = append(errs, inRangeIfSet(at.Child("maxAgeSeconds"), m.MaxAgeSeconds, 1, 3600)...)
		errs = append(errs, validateBehavior(at.Child("behavior"), m.Behavior)...)
	}
	return errs
}

func validateTarget(path *field.Path, value string) field.ErrorList {
	if len(value) > DecimalMaxLength {
		return field.ErrorList{field.TooLong(path, value, DecimalMaxLength)}
	}
	if _, err := ParsePositiveDecimal(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	return nil
}

func validateBehavior(path *field.Path, b *Behavior) field.ErrorList {
	if b == nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name     string
		value    *int32
		min, max int32
	}{
		{"scaleUpMaxStep", b.ScaleUpMaxStep, 1, MaxReplicasCeiling},
		{"scaleDownMaxStep", b.ScaleDownMaxStep, 1, MaxReplicasCeiling},
		{"scaleDownStabilizationSeconds", b.ScaleDownStabilizationSeconds, 0, 86400},
		{"scaleDownMinIntervalSeconds", b.ScaleDownMinIntervalSeconds, 0, 86400},
	} {
		if f.value != nil {
			errs = append(errs, inRange(path.Child(f.name), *f.value, f.min, f.max)...)
		}
	}
	return errs
}

// ValidateMetricProfile checks what one MetricProfile says by itself, but for its
// query, which the package that renders queries checks.
func ValidateMetricProfile(p *MetricProfile) field.ErrorList {
	spec := field.NewPath("spec")
	if p.DecodeError != "" {
		return field.ErrorList{undecodable(spec, p.DecodeError)}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Label(p.Spec.Endpoint) {
		errs = append(errs, field.Invalid(spec.Child("endpoint"), p.Spec.Endpoint, msg))
	}
	if p.Spec.Semantics != SemanticsTotal {
		errs = append(errs, field.NotSupported(spec.Child("semantics"), p.Spec.Semantics, []MetricSemantics{SemanticsTotal}))
	}
	namespaces := spec.Child("allowedNamespaces")
	if len(p.Spec.AllowedNamespaces) == 0 {
		errs = append(errs, field.Required(namespaces, `list the namespaces that may use the profile, or "*" for all`))
	}
	for i, ns := range p.Spec.AllowedNamespaces {
		if ns == AllNamespaces {
			continue
		}
		for _, msg := range validation.IsDNS1123Label(string(ns)) {
			errs = append(errs, field.Invalid(namespaces.Index(i), ns, msg))
		}
		if slices.Contains(p.Spec.AllowedNamespaces[:i], ns) {
			errs = append(errs, field.Duplicate(namespaces.Index(i), ns))
		}
	}
	errs = append(errs, inRangeIfSet(spec.Child("maxRangeSeconds"), p.Spec.MaxRangeSeconds, 1, MaxRangeSecondsCeiling)...)
	return append(errs, inRangeIfSet(spec.Child("timeoutSeconds"), p.Spec.TimeoutSeconds, 1, 60)...)
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

func undecodable(path *field.Path, decodeError string) *field.Error {
	return field.Invalid(path, "(not decodable)", "the stored object does not fit this API version; apply it again with valid fields: "+decodeError)
}
