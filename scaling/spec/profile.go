package spec

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// ValidateMetricProfile checks everything that one MetricProfile says by itself,
// its query included. Admission, reconciler and command line call it. Errors come
// in the order of the fields, and the query's own last.
func ValidateMetricProfile(p *v1alpha1.MetricProfile) field.ErrorList {
	errs := v1alpha1.ValidateMetricProfile(p)
	if p.DecodeError != "" {
		return errs
	}
	path := field.NewPath("spec", "query").String()
	for _, err := range prometheus.CheckQuery(p.Spec.Query, queryLimits(p)) {
		// Not field.Invalid: it would repeat the whole query for every fault.
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: err.Error()})
	}
	return errs
}

func queryLimits(p *v1alpha1.MetricProfile) prometheus.QueryLimits {
	return prometheus.QueryLimits{
		MaxRange:                seconds(cmp.Or(p.Spec.MaxRangeSeconds, v1alpha1.DefaultMaxRangeSeconds)),
		RequireNamespaceMatcher: p.Spec.RequireNamespaceMatcher,
	}
}
