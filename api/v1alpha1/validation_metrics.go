package v1alpha1

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
		errs = append(errs, validateLabel(at.Child("name"), m.Name)...)
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
		errs = append(errs, validateParameters(at.Child("parameters"), m.Parameters)...)
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

// parameterName is the form of a parameter's name, which is a placeholder in queries.
var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// validateParameters checks the form. Whether the profile allows them is asked where
// the profile is at hand.
func validateParameters(path *field.Path, parameters map[string]string) field.ErrorList {
	if len(parameters) > MaxParameters {
		return field.ErrorList{field.TooMany(path, len(parameters), MaxParameters)}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if !parameterName.MatchString(name) {
			errs = append(errs, field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("%q is no name of a parameter; it begins with a letter and has at most 63 lower-case letters, digits and _", name[:min(len(name), 64)])))
			continue
		}
		if n := utf8.RuneCountInString(parameters[name]); n < 1 || n > MaxParameterValueLength {
			errs = append(errs, field.Invalid(path.Key(name), field.OmitValueType{}, fmt.Sprintf("must have 1 to %d characters; leave the parameter out for the profile's default", MaxParameterValueLength)))
		}
	}
	return errs
}
