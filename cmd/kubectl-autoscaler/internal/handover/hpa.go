package handover

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// What an HPA does where it says nothing (k8s.io/api/autoscaling/v2, the documentation of
// HorizontalPodAutoscalerBehavior).
const (
	hpaMinReplicas = 1
	hpaCPU         = 80
	hpaTolerance   = "0.1"
)

// FromHPA translates an HPA that scales a Deployment.
func FromHPA(hpa *autoscalingv2.HorizontalPodAutoscaler, f Facts) (*Draft, error) {
	live := hpa.DeepCopy()
	live.DeletionTimestamp = nil
	targets := binding.IndexHPA(live)
	if len(targets) == 0 {
		ref := hpa.Spec.ScaleTargetRef
		return nil, fmt.Errorf("HorizontalPodAutoscaler %s/%s scales %s %q, and an AutoScaler scales Deployments only", hpa.Namespace, hpa.Name, ref.Kind, ref.Name)
	}
	low := int32(hpaMinReplicas)
	if hpa.Spec.MinReplicas != nil {
		low = *hpa.Spec.MinReplicas
	}
	d := newDraft("hpa "+hpa.Name, hpa.Namespace, hpa.Name, targets[0], low, hpa.Spec.MaxReplicas)
	if by := metav1.GetControllerOf(hpa); by != nil {
		d.note("The HPA is made by %s %q, which would make it again: hand that over, or delete it instead of the HPA.", by.Kind, by.Name)
	}
	metrics := hpa.Spec.Metrics
	if len(metrics) == 0 {
		metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(hpaCPU))},
		}}}
	}
	for i := range metrics {
		d.hpaMetric(&metrics[i], f)
	}
	d.AutoScaler.Spec.Behavior = d.hpaBehavior(hpa.Spec.Behavior, f)
	d.check()
	return d, nil
}

func (d *Draft) hpaMetric(m *autoscalingv2.MetricSpec, f Facts) {
	switch {
	case m.Resource != nil:
		d.resource(string(m.Resource.Name), "", m.Resource.Target, f)
	case m.ContainerResource != nil:
		d.resource(string(m.ContainerResource.Name), m.ContainerResource.Container, m.ContainerResource.Target, f)
	case m.Pods != nil:
		d.named(m.Pods.Metric, m.Pods.Target, "avg", v1alpha1.SemanticsPerReplicaAverage, f)
	case m.Object != nil:
		d.note("Metric %q is of %s %q: say so in the query of its profile.", m.Object.Metric.Name, m.Object.DescribedObject.Kind, m.Object.DescribedObject.Name)
		d.summed(m.Object.Metric, m.Object.Target, f)
	case m.External != nil:
		d.summed(m.External.Metric, m.External.Target, f)
	default:
		d.note("A metric of type %q is not translated.", m.Type)
	}
}

// usage are the queries for a replica's use of a resource, as the kubelet's metrics have
// it, where a recording rule or a relabeling gives them the Deployment's name.
var usage = map[string]string{
	string(corev1.ResourceCPU):    "rate(container_cpu_usage_seconds_total{%s}[2m])",
	string(corev1.ResourceMemory): "container_memory_working_set_bytes{%s}",
}

func (d *Draft) resource(name, container string, target autoscalingv2.MetricTarget, f Facts) {
	query, known := usage[name]
	if !known {
		d.note("The resource metric %q is not translated: say in a profile's query what a replica uses of it.", name)
		return
	}
	matchers := "namespace=$namespace, deployment=$target"
	if container != "" {
		matchers += ", container=" + strconv.Quote(container)
	}
	value := 1.0
	switch {
	case target.AverageValue != nil:
		value = target.AverageValue.AsApproximateFloat64()
	case target.AverageUtilization != nil:
		share := float64(*target.AverageUtilization) / 100
		request := f.request(container, name)
		value = share * request
		if request == 0 {
			value = share
			d.note("The HPA wants %d %% of the requested %s, and the request is not known: set targetPerReplica of metric %q to %s x the request, in cores or bytes.", *target.AverageUtilization, name, name, decimal(share))
		}
	}
	d.note("The HPA takes %s from the metrics API; metric %q asks Prometheus for it. See that its series have a label with the whole name of the Deployment. A total, such as requests per second, with what one replica carries, follows the load better.", name, name)
	d.measure(name, "avg(sum by (pod) ("+fmt.Sprintf(query, matchers)+"))", v1alpha1.SemanticsPerReplicaAverage, value, f.Endpoint)
}

// request is what a replica requests of a resource, in one container or in all.
func (f *Facts) request(container, name string) float64 {
	sum := 0.0
	for of, requests := range f.Requests {
		if container == "" || of == container {
			sum += requests[name]
		}
	}
	return sum
}

func (d *Draft) summed(m autoscalingv2.MetricIdentifier, target autoscalingv2.MetricTarget, f Facts) {
	if target.Type == autoscalingv2.AverageValueMetricType {
		d.named(m, target, "sum", v1alpha1.SemanticsTotal, f)
		return
	}
	d.note("Metric %q has a target of type %s, which the HPA multiplies the count by: that is right for a mean. If it is a total, make its profile's semantics Total and targetPerReplica what one replica carries.", m.Name, target.Type)
	d.named(m, target, "sum", v1alpha1.SemanticsPerReplicaAverage, f)
}

// named translates a metric of an adapter, whose query nobody but the adapter knows.
func (d *Draft) named(m autoscalingv2.MetricIdentifier, target autoscalingv2.MetricTarget, aggregate string, semantics v1alpha1.MetricSemantics, f Facts) {
	var value *resource.Quantity
	for _, v := range []*resource.Quantity{target.AverageValue, target.Value} {
		if v != nil {
			value = v
		}
	}
	if value == nil {
		d.note("Metric %q has no target that could be translated.", m.Name)
		return
	}
	matchers := []string{"namespace=$namespace"}
	if m.Selector != nil {
		for _, key := range slices.Sorted(maps.Keys(m.Selector.MatchLabels)) {
			matchers = append(matchers, key+"="+strconv.Quote(m.Selector.MatchLabels[key]))
		}
		if len(m.Selector.MatchExpressions) > 0 {
			d.note("The matchExpressions of metric %q are not translated.", m.Name)
		}
	}
	d.note("Metric %q comes from a metrics adapter, whose rules say what it asks Prometheus for; the query of its profile is a guess by its name. Put the adapter's query there.", m.Name)
	d.measure(m.Name, aggregate+"("+selector(m.Name, matchers)+")", semantics, value.AsApproximateFloat64(), f.Endpoint)
}

// hpaBehavior translates the policies; an HPA without any has those of its defaults.
func (d *Draft) hpaBehavior(b *autoscalingv2.HorizontalPodAutoscalerBehavior, f Facts) *v1alpha1.Behavior {
	if b == nil {
		b = &autoscalingv2.HorizontalPodAutoscalerBehavior{}
	}
	out := &v1alpha1.Behavior{ScaleDownStabilizationSeconds: new(int32(300)), ToleranceUp: hpaTolerance, ToleranceDown: hpaTolerance}
	up := rulesOr(b.ScaleUp, []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}, {Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}})
	d.scaleUp(out, &up, f)
	down := rulesOr(b.ScaleDown, []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}})
	d.scaleDown(out, &down, f)
	return out
}

func rulesOr(given *autoscalingv2.HPAScalingRules, policies []autoscalingv2.HPAScalingPolicy) autoscalingv2.HPAScalingRules {
	var r autoscalingv2.HPAScalingRules
	if given != nil {
		r = *given
	}
	if len(r.Policies) == 0 {
		r.Policies = policies
	}
	return r
}

func (d *Draft) scaleUp(out *v1alpha1.Behavior, r *autoscalingv2.HPAScalingRules, f Facts) {
	out.ScaleUpStabilizationSeconds = r.StabilizationWindowSeconds
	if r.Tolerance != nil {
		out.ToleranceUp = decimal(r.Tolerance.AsApproximateFloat64())
	}
	p, disabled := d.chosen("scaleUp", r, f)
	switch {
	case disabled:
		d.note("scaleUp is disabled in the HPA; an AutoScaler has no such switch. A schedule with freeze: All stops both ways.")
	case p == nil:
	case p.period > d.AutoScaler.Spec.PollIntervalSeconds:
		out.ScaleUpRate = &v1alpha1.ScaleRate{MaxReplicas: p.replicas, PeriodSeconds: p.period}
	default:
		out.ScaleUpMaxStep = new(p.replicas)
	}
}

func (d *Draft) scaleDown(out *v1alpha1.Behavior, r *autoscalingv2.HPAScalingRules, f Facts) {
	if r.StabilizationWindowSeconds != nil {
		out.ScaleDownStabilizationSeconds = r.StabilizationWindowSeconds
	}
	if r.Tolerance != nil {
		out.ToleranceDown = decimal(r.Tolerance.AsApproximateFloat64())
	}
	p, disabled := d.chosen("scaleDown", r, f)
	switch {
	case disabled:
		d.note("scaleDown is disabled in the HPA; an AutoScaler has no such switch. A schedule with freeze: ScaleDown that is always in force comes to the same.")
	case p == nil:
	default:
		out.ScaleDownMaxStep = new(p.replicas)
		if p.period > d.AutoScaler.Spec.PollIntervalSeconds {
			out.ScaleDownMinIntervalSeconds = new(p.period)
		}
	}
}

// pace is a number of replicas in a period of seconds.
type pace struct{ replicas, period int32 }

// chosen is the policy that the HPA would choose at the present count; nil where that is no
// limit. Of several it is the one that lets more through, or less, per second.
func (d *Draft) chosen(way string, r *autoscalingv2.HPAScalingRules, f Facts) (best *pace, disabled bool) {
	choice := autoscalingv2.MaxChangePolicySelect
	if r.SelectPolicy != nil {
		choice = *r.SelectPolicy
	}
	if choice == autoscalingv2.DisabledPolicySelect {
		return nil, true
	}
	count := max(f.Replicas, d.AutoScaler.Spec.MinReplicas)
	for _, p := range r.Policies {
		if way == "scaleDown" && p.Type == autoscalingv2.PercentScalingPolicy && p.Value >= 100 {
			if choice == autoscalingv2.MaxChangePolicySelect {
				return nil, false // all of them at once
			}
			continue
		}
		this := pace{replicas: max(p.Value, 1), period: max(p.PeriodSeconds, 1)}
		if p.Type == autoscalingv2.PercentScalingPolicy {
			this.replicas = max(1, int32(min(math.Ceil(float64(count)*float64(p.Value)/100), math.MaxInt16)))
			d.note("%s: %d %% per %d s has become %d replicas, the share of %d.", way, p.Value, p.PeriodSeconds, this.replicas, count)
		}
		if best == nil || faster(this, *best) == (choice == autoscalingv2.MaxChangePolicySelect) {
			best = &this
		}
	}
	return best, false
}

func faster(a, b pace) bool {
	return int64(a.replicas)*int64(b.period) > int64(b.replicas)*int64(a.period)
}
