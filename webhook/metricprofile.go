package webhook

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// MetricProfileValidator admits MetricProfiles.
type MetricProfileValidator struct {
	// Endpoints are the names in the operator's configuration.
	Endpoints []string
	// Cached looks up who uses a profile, by the index binding.AutoScalerProfile.
	Cached client.Reader
	// Namespaces that the operator watches; none stands for all. With some, profiles are
	// shared with operators that watch others and may have other endpoints.
	Namespaces []string
}

// ValidateCreate checks a new profile.
func (v *MetricProfileValidator) ValidateCreate(_ context.Context, p *v1alpha1.MetricProfile) (admission.Warnings, error) {
	return v.answer(p, v.check(p), nil)
}

// ValidateUpdate checks a changed profile.
func (v *MetricProfileValidator) ValidateUpdate(ctx context.Context, old, p *v1alpha1.MetricProfile) (admission.Warnings, error) {
	if p.DeletionTimestamp != nil || old.DecodeError == p.DecodeError && apiequality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return nil, nil
	}
	kept := v.check(old)
	// What is said of a query does not repeat it, and is the same of two bad ones.
	for path, changed := range map[string]bool{
		"spec.query":            old.Spec.Query != p.Spec.Query,
		"spec.arrivalRateQuery": old.Spec.ArrivalRateQuery != p.Spec.ArrivalRateQuery,
		"spec.freshness.query":  freshnessQuery(old) != freshnessQuery(p),
	} {
		if changed {
			kept = slices.DeleteFunc(kept, func(err *field.Error) bool { return err.Field == path })
		}
	}
	return v.answer(p, added(v.check(p), kept), v.usersWarnings(ctx, old, p))
}

func freshnessQuery(p *v1alpha1.MetricProfile) string {
	if p.Spec.Freshness == nil {
		return ""
	}
	return p.Spec.Freshness.Query
}

// answer refuses, or admits with warnings: those of users, and the spec's own.
func (v *MetricProfileValidator) answer(p *v1alpha1.MetricProfile, errs field.ErrorList, users []string) (admission.Warnings, error) {
	if len(errs) > 0 {
		return nil, refuse("MetricProfile", p.Name, errs)
	}
	return said(slices.Concat(users, v.foreignEndpoint(p), profileWarnings(p))), nil
}

// ValidateDelete never objects: AutoScalers that use the profile hold their count
// and say so. The API server does not even ask, since a webhook that must answer would
// keep profiles from being deleted while the operator is down.
func (v *MetricProfileValidator) ValidateDelete(context.Context, *v1alpha1.MetricProfile) (admission.Warnings, error) {
	return nil, nil
}

func (v *MetricProfileValidator) unknownEndpoint(p *v1alpha1.MetricProfile) bool {
	return p.DecodeError == "" && !slices.Contains(v.Endpoints, p.Spec.Endpoint)
}

func (v *MetricProfileValidator) check(p *v1alpha1.MetricProfile) field.ErrorList {
	errs := spec.ValidateMetricProfile(p)
	if len(v.Namespaces) == 0 && v.unknownEndpoint(p) {
		unknown := field.NotSupported(field.NewPath("spec", "endpoint"), p.Spec.Endpoint, v.Endpoints)
		errs = append(field.ErrorList{unknown}, errs...)
	}
	return errs
}
