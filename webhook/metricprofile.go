package webhook

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// MetricProfileValidator admits MetricProfiles.
type MetricProfileValidator struct {
	// Endpoints are the names in the operator's configuration.
	Endpoints []string
}

// ValidateCreate checks a new profile.
func (v *MetricProfileValidator) ValidateCreate(_ context.Context, p *v1alpha1.MetricProfile) (admission.Warnings, error) {
	return nil, refuse("MetricProfile", p.Name, v.check(p))
}

// ValidateUpdate checks a changed profile.
func (v *MetricProfileValidator) ValidateUpdate(_ context.Context, old, p *v1alpha1.MetricProfile) (admission.Warnings, error) {
	if p.DeletionTimestamp != nil || old.DecodeError == p.DecodeError && apiequality.Semantic.DeepEqual(old.Spec, p.Spec) {
		return nil, nil
	}
	kept := v.check(old)
	if old.Spec.Query != p.Spec.Query {
		// What is said of a query does not repeat it, and is the same of two bad ones.
		kept = slices.DeleteFunc(kept, func(err *field.Error) bool { return err.Field == "spec.query" })
	}
	return nil, refuse("MetricProfile", p.Name, added(v.check(p), kept))
}

// ValidateDelete never objects: AutoScalers that use the profile hold their count
// and say so.
func (v *MetricProfileValidator) ValidateDelete(context.Context, *v1alpha1.MetricProfile) (admission.Warnings, error) {
	return nil, nil
}

func (v *MetricProfileValidator) check(p *v1alpha1.MetricProfile) field.ErrorList {
	errs := spec.ValidateMetricProfile(p)
	if p.DecodeError == "" && !slices.Contains(v.Endpoints, p.Spec.Endpoint) {
		unknown := field.NotSupported(field.NewPath("spec", "endpoint"), p.Spec.Endpoint, v.Endpoints)
		errs = append(field.ErrorList{unknown}, errs...)
	}
	return errs
}
