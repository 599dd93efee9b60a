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
	"k8s.io/utils/ptr"

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
	// Without a container's name a series is the sum over the pod, which would count twice.
	matchers := `namespace=$namespace, deployment=$target, container!=""`
	if container != "" {
		matchers = "namespace=$namespace, deployment=$target, container=" + strconv.Quote(container)
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
	for _, of := range slices.Sorted(maps.Keys(f.Requests)) { // a sum of floats depends on their order
		if container == "" || of == container {
			sum += f.Requests[of][name]
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
	d.scaleUp(out, &up)
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

// scaleUp is never slower than the other one at any count: too few replicas are an
// outage, too many are a bill.
func (d *Draft) scaleUp(out *v1alpha1.Behavior, r *autoscalingv2.HPAScalingRules) {
	out.ScaleUpStabilizationSeconds = r.StabilizationWindowSeconds
	if r.Tolerance != nil {
		out.ToleranceUp = decimal(r.Tolerance.AsApproximateFloat64())
	}
	if choice(r) == autoscalingv2.DisabledPolicySelect {
		d.note("scaleUp is disabled in the HPA; an AutoScaler has no such switch. A schedule with freeze: All stops both ways.")
		return
	}
	high, poll := int64(max(d.AutoScaler.Spec.MaxReplicas, 1)), int64(d.AutoScaler.Spec.PollIntervalSeconds)
	p := chosen(r, high)
	if choice(r) == autoscalingv2.MaxChangePolicySelect {
		p = together(r, p, high)
	}
	var result, field string
	if p.period > poll {
		p.replicas = min(p.replicas, high)
		out.ScaleUpRate = &v1alpha1.ScaleRate{MaxReplicas: short(p.replicas), PeriodSeconds: short(p.period)}
		result, field = fmt.Sprintf("%s in any %d s", counted(p.replicas), p.period), "scaleUpRate.maxReplicas"
	} else {
		p.replicas = min(divideUp(p.replicas*poll, p.period), high)
		out.ScaleUpMaxStep = new(short(p.replicas))
		result, field = fmt.Sprintf("%s per poll of %d s", counted(p.replicas), poll), "scaleUpMaxStep"
	}
	switch {
	case p.of == nil:
		d.note("scaleUp: of the HPA's policies the one that allows the most at the moment counts; they have become their sum, %s, never slower than the HPA and sometimes faster. Lower behavior.%s for smaller steps.", result, field)
	case p.of.Type == autoscalingv2.PercentScalingPolicy:
		d.note("scaleUp: %d %% per %d s has become %s, the share of maxReplicas (%d): never slower than the HPA, and faster at small counts, where the HPA takes the share of what there is. Lower behavior.%s for smaller steps.",
			p.of.Value, p.of.PeriodSeconds, result, high, field)
	}
}

// scaleDown takes the share of the present count: a number of replicas that is removed at
// smaller counts too.
func (d *Draft) scaleDown(out *v1alpha1.Behavior, r *autoscalingv2.HPAScalingRules, f Facts) {
	if r.StabilizationWindowSeconds != nil {
		out.ScaleDownStabilizationSeconds = r.StabilizationWindowSeconds
	}
	if r.Tolerance != nil {
		out.ToleranceDown = decimal(r.Tolerance.AsApproximateFloat64())
	}
	if choice(r) == autoscalingv2.DisabledPolicySelect {
		d.note("scaleDown is disabled in the HPA; an AutoScaler has no such switch. A schedule with freeze: ScaleDown that is always in force comes to the same.")
		return
	}
	count, of := d.AutoScaler.Spec.MinReplicas, "minReplicas, as the present count is not known"
	if f.Replicas > 0 {
		count, of = max(f.Replicas, count), "the present count"
	}
	limits := slices.DeleteFunc(slices.Clone(r.Policies), allAtOnce)
	if len(limits) == 0 || len(limits) < len(r.Policies) && choice(r) == autoscalingv2.MaxChangePolicySelect {
		return // all of them at once
	}
	r.Policies = limits
	p := chosen(r, int64(count))
	out.ScaleDownMaxStep = new(short(p.replicas))
	every := fmt.Sprintf("per poll of %d s", d.AutoScaler.Spec.PollIntervalSeconds)
	if p.period > int64(d.AutoScaler.Spec.PollIntervalSeconds) {
		out.ScaleDownMinIntervalSeconds = new(short(p.period))
		every = fmt.Sprintf("each %d s", p.period)
	}
	if p.of.Type == autoscalingv2.PercentScalingPolicy {
		d.note("scaleDown: %d %% per %d s has become %s %s, the share of %d (%s): slower than the HPA at higher counts, faster at lower ones. behavior.scaleDownMaxStep sets it.",
			p.of.Value, p.of.PeriodSeconds, counted(p.replicas), every, count, of)
	}
}

func allAtOnce(p autoscalingv2.HPAScalingPolicy) bool {
	return p.Type == autoscalingv2.PercentScalingPolicy && p.Value >= 100
}

func choice(r *autoscalingv2.HPAScalingRules) autoscalingv2.ScalingPolicySelect {
	return ptr.Deref(r.SelectPolicy, autoscalingv2.MaxChangePolicySelect)
}

// pace is a number of replicas in a period of seconds, and the policy that it is of.
type pace struct {
	replicas, period int64
	of               *autoscalingv2.HPAScalingPolicy
}

func paceOf(p *autoscalingv2.HPAScalingPolicy, count int64) pace {
	this := pace{replicas: int64(max(p.Value, 1)), period: int64(max(p.PeriodSeconds, 1)), of: p}
	if p.Type == autoscalingv2.PercentScalingPolicy {
		this.replicas = max(1, divideUp(count*int64(p.Value), 100))
	}
	return this
}

// chosen is the policy that lets the most through per second at a count, or the least,
// where the HPA is to choose that.
func chosen(r *autoscalingv2.HPAScalingRules, count int64) pace {
	best := paceOf(&r.Policies[0], count)
	for i := range r.Policies {
		this := paceOf(&r.Policies[i], count)
		faster := this.replicas*best.period > best.replicas*this.period
		slower := this.replicas*best.period < best.replicas*this.period
		if faster && choice(r) == autoscalingv2.MaxChangePolicySelect || slower && choice(r) == autoscalingv2.MinChangePolicySelect {
			best = this
		}
	}
	return best
}

// together is a pace that no order of using the policies goes beyond: where they have
// different periods a slow one may let a burst through that the fastest does not.
func together(r *autoscalingv2.HPAScalingRules, best pace, count int64) pace {
	most := map[int64]int64{} // by period, of which only the most counts
	longest := int64(0)
	for i := range r.Policies {
		p := paceOf(&r.Policies[i], count)
		most[p.period], longest = max(most[p.period], p.replicas), max(longest, p.period)
	}
	if len(most) == 1 {
		return best
	}
	sum := pace{period: longest}
	for period, replicas := range most {
		sum.replicas += replicas * divideUp(longest, period)
	}
	return sum
}

func divideUp(a, b int64) int64 { return (a + b - 1) / b }

// short is a number of the API; what is larger than those admission refuses.
func short(n int64) int32 {
	return int32(min(n, math.MaxInt32)) //nolint:gosec // it fits
}

// counted is a number of replicas, in words.
func counted(n int64) string {
	if n == 1 {
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}
