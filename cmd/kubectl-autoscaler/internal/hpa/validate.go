package hpa

import (
	"math"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxPeriodSeconds and maxWindowSeconds are the API server's bounds of a policy's
	// period and of a stabilization window.
	maxPeriodSeconds = 1800
	maxWindowSeconds = 3600
)

var (
	selectPolicies = []autoscalingv2.ScalingPolicySelect{
		autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect,
	}
	policyTypes = []autoscalingv2.HPAScalingPolicyType{autoscalingv2.PodsScalingPolicy, autoscalingv2.PercentScalingPolicy}
)

// Validate holds a spec to what the API server says of one, and to what can be played
// from a recorded load.
func Validate(s *autoscalingv2.HorizontalPodAutoscalerSpec) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	low := minReplicas(s)
	if low < 1 {
		errs = append(errs, field.Invalid(spec.Child("minReplicas"), low, "must be at least 1; 0 is not played"))
	}
	if s.MaxReplicas < max(1, low) {
		errs = append(errs, field.Invalid(spec.Child("maxReplicas"), s.MaxReplicas, "must be at least 1, and at least minReplicas"))
	}
	if len(s.Metrics) == 0 {
		errs = append(errs, field.Required(spec.Child("metrics"), "without one the HPA follows the CPU, of which a recorded load says nothing"))
	}
	for i := range s.Metrics {
		errs = append(errs, validateMetric(spec.Child("metrics").Index(i), &s.Metrics[i])...)
	}
	if s.Behavior != nil {
		behavior := spec.Child("behavior")
		errs = append(errs, validateRules(behavior.Child("scaleUp"), s.Behavior.ScaleUp)...)
		errs = append(errs, validateRules(behavior.Child("scaleDown"), s.Behavior.ScaleDown)...)
	}
	return errs
}

func minReplicas(s *autoscalingv2.HorizontalPodAutoscalerSpec) int32 {
	if s.MinReplicas == nil {
		return 1
	}
	return *s.MinReplicas
}

func validateMetric(at *field.Path, m *autoscalingv2.MetricSpec) field.ErrorList {
	var errs field.ErrorList
	var source string
	switch m.Type {
	case autoscalingv2.ExternalMetricSourceType:
		source = "external"
	case autoscalingv2.ObjectMetricSourceType:
		source = "object"
	case autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType:
		return append(errs, field.Invalid(at.Child("type"), m.Type, "only External and Object can be played from a recorded load"))
	default:
		return append(errs, field.NotSupported(at.Child("type"), m.Type, []autoscalingv2.MetricSourceType{
			autoscalingv2.ExternalMetricSourceType, autoscalingv2.ObjectMetricSourceType,
		}))
	}
	for _, other := range []struct {
		name  string
		given bool
	}{
		{"external", m.External != nil}, {"object", m.Object != nil}, {"pods", m.Pods != nil},
		{"resource", m.Resource != nil}, {"containerResource", m.ContainerResource != nil},
	} {
		switch {
		case other.name == source && !other.given:
			return append(errs, field.Required(at.Child(source), "the type asks for it"))
		case other.name != source && other.given:
			errs = append(errs, field.Forbidden(at.Child(other.name), "only "+source+" may be there with this type"))
		}
	}
	name, target := identify(m)
	at = at.Child(source)
	switch faults := content.IsPathSegmentName(name); {
	case name == "":
		errs = append(errs, field.Required(at.Child("metric", "name"), ""))
	case len(faults) > 0:
		errs = append(errs, field.Invalid(at.Child("metric", "name"), name, faults[0]))
	}
	return append(errs, validateTarget(at.Child("target"), target)...)
}

// identify is for a metric that has one of the two sources.
func identify(m *autoscalingv2.MetricSpec) (name string, target *autoscalingv2.MetricTarget) {
	if m.External != nil {
		return m.External.Metric.Name, &m.External.Target
	}
	return m.Object.Metric.Name, &m.Object.Target
}

func validateTarget(at *field.Path, t *autoscalingv2.MetricTarget) field.ErrorList {
	var errs field.ErrorList
	if t.Type != autoscalingv2.AverageValueMetricType {
		return append(errs, field.Invalid(at.Child("type"), t.Type, "only AverageValue can be played from a recorded load"))
	}
	if t.Value != nil {
		errs = append(errs, field.Forbidden(at.Child("value"), "only averageValue may be there with this type"))
	}
	if t.AverageUtilization != nil {
		errs = append(errs, field.Forbidden(at.Child("averageUtilization"), "only averageValue may be there with this type"))
	}
	switch most := resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI); {
	case t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageValue"), "the type asks for it"))
	case t.AverageValue.Sign() <= 0 || t.AverageValue.Cmp(*most) >= 0:
		errs = append(errs, field.Invalid(at.Child("averageValue"), t.AverageValue.String(), "must be above 0, and less than "+most.String()))
	}
	return errs
}

func validateRules(at *field.Path, r *autoscalingv2.HPAScalingRules) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if w := r.StabilizationWindowSeconds; w != nil && (*w < 0 || *w > maxWindowSeconds) {
		errs = append(errs, field.Invalid(at.Child("stabilizationWindowSeconds"), *w, "must be from 0 to 3600"))
	}
	if r.SelectPolicy != nil && !slices.Contains(selectPolicies, *r.SelectPolicy) {
		errs = append(errs, field.NotSupported(at.Child("selectPolicy"), *r.SelectPolicy, selectPolicies))
	}
	if r.Tolerance != nil && r.Tolerance.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), r.Tolerance.String(), "must be at least 0"))
	}
	return append(errs, validatePolicies(at.Child("policies"), r.Policies)...)
}

func validatePolicies(at *field.Path, policies []autoscalingv2.HPAScalingPolicy) field.ErrorList {
	var errs field.ErrorList
	if policies != nil && len(policies) == 0 {
		errs = append(errs, field.Required(at, "leave it out for the default policies"))
	}
	for i, p := range policies {
		at := at.Index(i)
		if !slices.Contains(policyTypes, p.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), p.Type, policyTypes))
		}
		if p.Value <= 0 {
			errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be above 0"))
		}
		if p.PeriodSeconds < 1 || p.PeriodSeconds > maxPeriodSeconds {
			errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be from 1 to 1800"))
		}
	}
	return errs
}
