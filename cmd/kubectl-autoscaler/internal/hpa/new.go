package hpa

import (
	"cmp"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Metric is what the algorithm knows of a metric.
type Metric struct {
	// Name is the metric's.
	Name string
	// Target is its averageValue.
	Target resource.Quantity
}

// Metrics gives those of a valid spec.
func Metrics(s *autoscalingv2.HorizontalPodAutoscalerSpec) []Metric {
	metrics := make([]Metric, len(s.Metrics))
	for i := range s.Metrics {
		name, target := identify(&s.Metrics[i])
		metrics[i] = Metric{Name: name, Target: *target.AverageValue}
	}
	return metrics
}

// New gives the autoscaler of a spec, which has the defaults of the API server for what
// it leaves open.
func New(s *autoscalingv2.HorizontalPodAutoscalerSpec) (*Autoscaler, error) {
	if errs := Validate(s); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	a, metrics := &Autoscaler{min: minReplicas(s), max: s.MaxReplicas}, Metrics(s)
	for i := range metrics {
		a.targets = append(a.targets, metrics[i].Target.MilliValue())
	}
	if s.Behavior != nil {
		up, down := s.Behavior.ScaleUp, s.Behavior.ScaleDown
		a.rules = &rules{
			up: defaulted(up, upPolicies), down: defaulted(down, downPolicies),
			upWindow: window(up, 0), downWindow: window(down, downWindow),
			upTolerance: tolerated(up), downTolerance: tolerated(down),
		}
	}
	return a, nil
}

// The policies of a behavior that has none of its own.
var (
	upPolicies = []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
		{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15},
	}
	downPolicies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}}
)

func defaulted(r *autoscalingv2.HPAScalingRules, policies []autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	full := autoscalingv2.HPAScalingRules{}
	if r != nil {
		full = *r
	}
	if full.SelectPolicy == nil {
		full.SelectPolicy = new(autoscalingv2.MaxChangePolicySelect)
	}
	if full.Policies == nil {
		full.Policies = policies
	}
	return &full
}

func window(r *autoscalingv2.HPAScalingRules, otherwise time.Duration) time.Duration {
	if r == nil || r.StabilizationWindowSeconds == nil {
		return otherwise
	}
	return time.Duration(*r.StabilizationWindowSeconds) * time.Second
}

func tolerated(r *autoscalingv2.HPAScalingRules) float64 {
	if r == nil || r.Tolerance == nil {
		return tolerance
	}
	return r.Tolerance.AsApproximateFloat64()
}

// Spec is an HPA without a behavior for the bounds and the targets per replica, by name,
// of another autoscaler. minReplicas 0 is the default.
func Spec(minReplicas, maxReplicas int32, metrics []Metric) *autoscalingv2.HorizontalPodAutoscalerSpec {
	s := &autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(cmp.Or(minReplicas, 1)), MaxReplicas: maxReplicas}
	for _, m := range metrics {
		s.Metrics = append(s.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: m.Name},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(m.Target)},
			},
		})
	}
	return s
}
