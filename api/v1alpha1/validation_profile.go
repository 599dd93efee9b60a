package v1alpha1

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateMetricProfile checks what one MetricProfile says by itself, but for its
// queries and patterns, which the package that renders queries checks
// (spec.ValidateMetricProfile, which all callers use).
func ValidateMetricProfile(p *MetricProfile) field.ErrorList {
	path := field.NewPath("spec")
	if p.DecodeError != "" {
		return field.ErrorList{undecodable(path, p.DecodeError)}
	}
	s := &p.Spec
	errs := validateLabel(path.Child("endpoint"), s.Endpoint)
	errs = append(errs, validateSemantics(path, s)...)
	errs = append(errs, validateSeries(path, s)...)
	errs = append(errs, validateDeclarations(path.Child("parameters"), s)...)
	errs = append(errs, validateFreshness(path.Child("freshness"), s.Freshness)...)
	errs = append(errs, validateNamespaces(path.Child("allowedNamespaces"), s.AllowedNamespaces)...)
	errs = append(errs, inRangeIfSet(path.Child("maxRangeSeconds"), s.MaxRangeSeconds, 1, MaxRangeSecondsCeiling)...)
	errs = append(errs, inRangeIfSet(path.Child("timeoutSeconds"), s.TimeoutSeconds, 1, 60)...)
	errs = append(errs, inRangeIfSet(path.Child("maxSeries"), s.MaxSeries, 1, 100000)...)
	errs = append(errs, validateResponseBytes(path.Child("maxResponseBytes"), s.MaxResponseBytes)...)
	return append(errs, inRangeIfSet(path.Child("budget"), s.Budget, 1, 60000)...)
}

func validateSemantics(path *field.Path, s *MetricProfileSpec) field.ErrorList {
	known := []MetricSemantics{SemanticsBacklog, SemanticsPerReplicaAverage, SemanticsTotal}
	if !slices.Contains(known, s.Semantics) {
		return field.ErrorList{field.NotSupported(path.Child("semantics"), s.Semantics, known)}
	}
	arrivals, clearance := path.Child("arrivalRateQuery"), path.Child("clearanceSeconds")
	var errs field.ErrorList
	if s.Semantics == SemanticsBacklog {
		if s.ArrivalRateQuery == "" {
			errs = append(errs, field.Required(arrivals, "is needed for semantics Backlog: the items that arrive per second"))
		}
		if s.ClearanceSeconds == 0 {
			errs = append(errs, field.Required(clearance, "is needed for semantics Backlog: the seconds in which the backlog is to be worked off"))
		}
		return append(errs, inRangeIfSet(clearance, s.ClearanceSeconds, 1, 86400)...)
	}
	if s.ArrivalRateQuery != "" {
		errs = append(errs, field.Forbidden(arrivals, "is for semantics Backlog only"))
	}
	if s.ClearanceSeconds != 0 {
		errs = append(errs, field.Forbidden(clearance, "is for semantics Backlog only"))
	}
	return errs
}

func validateSeries(path *field.Path, s *MetricProfileSpec) field.ErrorList {
	var errs field.ErrorList
	if s.Series != "" && s.Series != SeriesSingle && s.Series != SeriesPerTarget {
		errs = append(errs, field.NotSupported(path.Child("series"), s.Series, []SeriesMode{SeriesPerTarget, SeriesSingle}))
	}
	errs = append(errs, validateSeriesLabels(path.Child("seriesLabels"), s)...)
	if s.OnEmpty != "" && s.OnEmpty != EmptyInvalid && s.OnEmpty != EmptyZero {
		errs = append(errs, field.NotSupported(path.Child("onEmpty"), s.OnEmpty, []EmptyMode{EmptyInvalid, EmptyZero}))
	}
	return errs
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`)

func validateSeriesLabels(path *field.Path, s *MetricProfileSpec) field.ErrorList {
	l := s.SeriesLabels
	switch {
	case l == nil:
		return nil
	case s.Series != SeriesPerTarget:
		return field.ErrorList{field.Forbidden(path, "is for series PerTarget only")}
	}
	var errs field.ErrorList
	for _, label := range []struct {
		field string
		name  LabelName
	}{{"namespace", l.Namespace}, {"target", l.Target}} {
		if label.name != "" && !labelName.MatchString(string(label.name)) {
			errs = append(errs, field.Invalid(path.Child(label.field), label.name, "must be the name of a Prometheus label: letters, digits and _, at most 128"))
		}
	}
	if cmp.Or(l.Namespace, DefaultNamespaceLabel) == cmp.Or(l.Target, DefaultTargetLabel) {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "namespace and target must be different labels"))
	}
	return errs
}

// validateDeclarations checks the parameters that a profile declares.
func validateDeclarations(path *field.Path, s *MetricProfileSpec) field.ErrorList {
	switch {
	case len(s.Parameters) > MaxParameters:
		return field.ErrorList{field.TooMany(path, len(s.Parameters), MaxParameters)}
	case len(s.Parameters) > 0 && s.Series == SeriesPerTarget:
		return field.ErrorList{field.Forbidden(path, "a query of series PerTarget is the same for all AutoScalers and takes no parameters")}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(s.Parameters))
	for i := range s.Parameters {
		d, at := &s.Parameters[i], path.Index(i)
		switch {
		case !parameterName.MatchString(d.Name):
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must begin with a letter and have at most 63 lower-case letters, digits and _"))
		case d.Name == "namespace" || d.Name == "target":
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "$namespace and $target are set by the operator; choose another name"))
		case seen[d.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		seen[d.Name] = true
		errs = append(errs, validateAllowed(at, d)...)
	}
	return errs
}

// validateAllowed checks what a parameter may be.
func validateAllowed(path *field.Path, d *ProfileParameter) field.ErrorList {
	var errs field.ErrorList
	if (len(d.Values) > 0) == (d.Pattern != "") {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "set either values or pattern: what an AutoScaler may ask for is the administrator's to say"))
	}
	if len(d.Values) > MaxParameterValues {
		errs = append(errs, field.TooMany(path.Child("values"), len(d.Values), MaxParameterValues))
	}
	for i, v := range d.Values {
		at := path.Child("values").Index(i)
		if v == "" {
			errs = append(errs, field.Required(at, "an empty value cannot be asked for"))
		}
		errs = append(errs, notLonger(at, string(v), MaxParameterValueLength)...)
		if slices.Contains(d.Values[:i], v) {
			errs = append(errs, field.Duplicate(at, v))
		}
	}
	// In bytes, as the package that compiles it counts.
	if len(d.Pattern) > MaxPatternLength {
		errs = append(errs, field.TooLong(path.Child("pattern"), "", MaxPatternLength))
	}
	errs = append(errs, notLonger(path.Child("default"), string(d.Default), MaxParameterValueLength)...)
	if d.Default != "" && len(d.Values) > 0 && !slices.Contains(d.Values, d.Default) {
		errs = append(errs, field.Invalid(path.Child("default"), d.Default, "must be one of values"))
	}
	return errs
}

func validateFreshness(path *field.Path, f *Freshness) field.ErrorList {
	if f == nil {
		return nil
	}
	var errs field.ErrorList
	if (f.MaxAgeSeconds != nil) == (f.MinHealthyShare != "") {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "set exactly one bound: maxAgeSeconds where the query gives an age in seconds, minHealthyShare where it gives the share of healthy targets"))
	}
	errs = append(errs, inRangeIfGiven(path.Child("maxAgeSeconds"), f.MaxAgeSeconds, 1, 86400)...)
	return append(errs, validateShare(path.Child("minHealthyShare"), f.MinHealthyShare)...)
}

func validateNamespaces(path *field.Path, namespaces []NamespaceName) field.ErrorList {
	var errs field.ErrorList
	if len(namespaces) == 0 {
		errs = append(errs, field.Required(path, `list the namespaces that may use the profile, or "*" for all`))
	}
	for i, ns := range namespaces {
		if ns == AllNamespaces {
			continue
		}
		errs = append(errs, validateLabel(path.Index(i), string(ns))...)
		if slices.Contains(namespaces[:i], ns) {
			errs = append(errs, field.Duplicate(path.Index(i), ns))
		}
	}
	return errs
}

// Bounds of maxResponseBytes.
const (
	minResponseBytes = 1 << 10
	maxResponseBytes = 64 << 20
)

func validateResponseBytes(path *field.Path, n int64) field.ErrorList {
	if n != 0 && (n < minResponseBytes || n > maxResponseBytes) {
		return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("must be from %d to %d", minResponseBytes, maxResponseBytes))}
	}
	return nil
}
