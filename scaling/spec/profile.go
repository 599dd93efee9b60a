package spec

import (
	"cmp"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// ValidateMetricProfile checks everything that one MetricProfile says by itself,
// its queries included. Admission, reconciler and command line call it. Errors come
// in the order of the fields, and those of patterns and queries last.
func ValidateMetricProfile(p *v1alpha1.MetricProfile) field.ErrorList {
	errs := v1alpha1.ValidateMetricProfile(p)
	if p.DecodeError != "" {
		return errs
	}
	spec := field.NewPath("spec")
	s := &p.Spec
	if s.Series == v1alpha1.SeriesPerTarget && s.RequireNamespaceMatcher {
		errs = append(errs, field.Invalid(spec.Child("requireNamespaceMatcher"), true,
			"a query of series PerTarget is asked once for all namespaces and can have no namespace=$namespace; leave this out: an AutoScaler is given only the series whose labels name its own namespace and Deployment"))
	}
	if s.Series != v1alpha1.SeriesPerTarget && s.MaxSeries != 0 {
		errs = append(errs, field.Forbidden(spec.Child("maxSeries"), "bounds the answers of series PerTarget; leave it out: any other answer must be one series"))
	}
	for i := range s.Parameters {
		errs = append(errs, patternErrors(spec.Child("parameters").Index(i), &s.Parameters[i])...)
	}
	limits := queryLimits(p)
	errs = append(errs, unusedErrors(spec.Child("parameters"), s, limits.Parameters)...)
	errs = append(errs, queryErrors(spec.Child("query"), s.Query, limits)...)
	if s.ArrivalRateQuery != "" {
		errs = append(errs, queryErrors(spec.Child("arrivalRateQuery"), s.ArrivalRateQuery, limits)...)
	}
	if s.Freshness != nil {
		errs = append(errs, queryErrors(spec.Child("freshness", "query"), s.Freshness.Query, limits)...)
	}
	return errs
}

// patternErrors leaves a pattern that is too long, of which that has been said,
// uncompiled.
func patternErrors(path *field.Path, p *v1alpha1.ProfileParameter) field.ErrorList {
	if p.Pattern == "" || len(p.Pattern) > v1alpha1.MaxPatternLength {
		return nil
	}
	err := prometheus.CheckPattern(p.Pattern)
	if err == nil {
		_, err = wholly(p.Pattern)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("pattern"), p.Pattern, fmt.Sprintf("is no regular expression (RE2): %v", err))}
	}
	if p.Default != "" && disallowed(p, string(p.Default)) != "" {
		return field.ErrorList{field.Invalid(path.Child("default"), p.Default, allowed(p))}
	}
	return nil
}

// unusedErrors refuses parameters that no query has: whoever gives one believes to choose
// what is measured. A query that cannot be read, of which that is said, may have any.
func unusedErrors(path *field.Path, s *v1alpha1.MetricProfileSpec, parameters []string) field.ErrorList {
	queries := []string{s.Query}
	if s.ArrivalRateQuery != "" {
		queries = append(queries, s.ArrivalRateQuery)
	}
	if s.Freshness != nil {
		queries = append(queries, s.Freshness.Query)
	}
	used := map[string]bool{}
	for _, query := range queries {
		uses, err := prometheus.Uses(query, parameters...)
		if err != nil {
			return nil
		}
		maps.Copy(used, uses)
	}
	var errs field.ErrorList
	for i, name := range parameters {
		if !used[name] {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), name, fmt.Sprintf("no query has $%s, so that its value would change nothing; put it into one, or leave the parameter out", name)))
		}
	}
	return errs
}

func queryErrors(path *field.Path, query string, limits prometheus.QueryLimits) field.ErrorList {
	var errs field.ErrorList
	for _, err := range prometheus.CheckQuery(query, limits) {
		// Not field.Invalid: it would repeat the whole query for every fault.
		errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: path.String(), BadValue: field.OmitValueType{}, Detail: err.Error()})
	}
	return errs
}

func queryLimits(p *v1alpha1.MetricProfile) prometheus.QueryLimits {
	limits := prometheus.QueryLimits{MaxRange: seconds(cmp.Or(p.Spec.MaxRangeSeconds, v1alpha1.DefaultMaxRangeSeconds))}
	if p.Spec.Series == v1alpha1.SeriesPerTarget {
		limits.Series = seriesLabels(&p.Spec)
		return limits
	}
	limits.RequireNamespaceMatcher = p.Spec.RequireNamespaceMatcher
	for i := range p.Spec.Parameters {
		limits.Parameters = append(limits.Parameters, p.Spec.Parameters[i].Name)
	}
	return limits
}

// ProfileValidator is ValidateMetricProfile for profiles that are looked at again and
// again, as at every poll: what was said of one is kept until its object changes. The
// zero value is ready for use, by several goroutines too.
type ProfileValidator struct {
	mu   sync.Mutex
	said map[types.UID]verdict
}

type verdict struct {
	resourceVersion string
	errs            field.ErrorList
}

// maxVerdicts bounds what is kept of profiles that are gone.
const maxVerdicts = 4096

// Validate gives the errors of a stored profile; they must not be changed. An object
// that was never stored has nothing to know it by, and is validated each time.
func (v *ProfileValidator) Validate(p *v1alpha1.MetricProfile) field.ErrorList {
	if p.UID == "" || p.ResourceVersion == "" {
		return ValidateMetricProfile(p)
	}
	v.mu.Lock()
	known, ok := v.said[p.UID]
	v.mu.Unlock()
	if ok && known.resourceVersion == p.ResourceVersion {
		return known.errs
	}
	errs := ValidateMetricProfile(p)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.said == nil || len(v.said) >= maxVerdicts {
		v.said = map[types.UID]verdict{}
	}
	v.said[p.UID] = verdict{p.ResourceVersion, errs}
	return errs
}
