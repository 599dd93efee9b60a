package hpa_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/hpa"
)

// scenario is what test/tools/hpa recorded of the controller of Kubernetes.
type scenario struct {
	Spec     autoscalingv2.HorizontalPodAutoscalerSpec `json:"spec"`
	Replicas int32                                     `json:"replicas"`
	Steps    []struct {
		Usages   []*int64 `json:"usages"`
		Replicas int32    `json:"replicas"`
	} `json:"steps"`
}

var begin = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

func TestItDecidesAsTheControllerOfKubernetesDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/controller.json")
	require.NoError(t, err)
	var scenarios []scenario
	require.NoError(t, json.Unmarshal(text, &scenarios))
	require.NotEmpty(t, scenarios)
	changes := 0
	for i, s := range scenarios {
		a, err := hpa.New(&s.Spec)
		require.NoError(t, err, "scenario %d", i)
		current := s.Replicas
		for n, step := range s.Steps {
			usages := make([]hpa.Usage, len(step.Usages))
			for j, u := range step.Usages {
				if u != nil {
					usages[j] = hpa.Usage{Milli: *u, Known: true}
				}
			}
			d := a.Decide(begin.Add(time.Duration(n)*hpa.SyncPeriod), current, usages)
			require.Equal(t, step.Replicas, d.Replicas, "scenario %d, step %d, from %d: %+v", i, n, current, d)
			if d.Replicas != current {
				changes++
			}
			current = d.Replicas
		}
	}
	assert.Greater(t, changes, 300, "the recording is of something that happens")
}

func spec(metrics ...hpa.Metric) *autoscalingv2.HorizontalPodAutoscalerSpec {
	return hpa.Spec(2, 20, metrics)
}

func TestWhyACountIsNotTheProposal(t *testing.T) {
	metric := hpa.Metric{Name: "requests", Target: resource.MustParse("100")}
	load := func(v int64) []hpa.Usage { return []hpa.Usage{{Milli: v * 1000, Known: true}} }
	for name, tc := range map[string]struct {
		current int32
		usages  []hpa.Usage
		want    hpa.Decision
	}{
		"nothing limits it":                  {5, load(900), hpa.Decision{Recommended: 9, Desired: 9, Replicas: 9}},
		"within the tolerance it stays":      {10, load(1099), hpa.Decision{Recommended: 10, Desired: 10, Replicas: 10}},
		"it doubles at most":                 {3, load(2000), hpa.Decision{Recommended: 20, Desired: 20, Replicas: 6, Reason: hpa.ReasonUpLimit}},
		"or goes to four":                    {2, load(2000), hpa.Decision{Recommended: 20, Desired: 20, Replicas: 4, Reason: hpa.ReasonUpLimit}},
		"the maximum":                        {15, load(9000), hpa.Decision{Recommended: 90, Desired: 90, Replicas: 20, Reason: hpa.ReasonTooMany}},
		"its own count holds it at first":    {15, load(100), hpa.Decision{Recommended: 1, Desired: 15, Replicas: 15, Reason: hpa.ReasonDown}},
		"above the maximum":                  {30, load(100), hpa.Decision{Recommended: 1, Desired: 20, Replicas: 20, Reason: hpa.ReasonTooMany}},
		"below the minimum":                  {1, load(900), hpa.Decision{Recommended: 9, Desired: 2, Replicas: 2, Reason: hpa.ReasonTooFew}},
		"without a metric nothing is done":   {5, []hpa.Usage{{}}, hpa.Decision{Desired: 5, Replicas: 5, Reason: hpa.ReasonNoMetric}},
		"with 0 replicas it is switched off": {0, load(900), hpa.Decision{Recommended: 9}},
		"a load without a sensible number":   {5, load(1 << 50), hpa.Decision{Recommended: 2147483647, Desired: 2147483647, Replicas: 10, Reason: hpa.ReasonUpLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := hpa.New(spec(metric))
			require.NoError(t, err)
			assert.Equal(t, tc.want, a.Decide(begin, tc.current, tc.usages))
		})
	}
}

// up changes the rules of the way up, which are valid before.
func up(change func(r *autoscalingv2.HPAScalingRules)) func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
	return func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
		rules := &autoscalingv2.HPAScalingRules{Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}}}
		change(rules)
		s.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: rules}
	}
}

func TestASpecThatCannotBePlayedIsRefused(t *testing.T) {
	metric := hpa.Metric{Name: "requests", Target: resource.MustParse("100")}
	for name, tc := range map[string]struct {
		change func(s *autoscalingv2.HorizontalPodAutoscalerSpec)
		want   string
	}{
		"no metric": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) { s.Metrics = nil }, "spec.metrics: Required value: without one the HPA follows the CPU"},
		"the CPU": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics = []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType}}
		}, "spec.metrics[0].type: Invalid value: \"Resource\""},
		"a type that is none": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) { s.Metrics[0].Type = "Extern" }, "spec.metrics[0].type: Unsupported value"},
		"another source than the type's": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].Type = autoscalingv2.ObjectMetricSourceType
		}, "spec.metrics[0].object: Required"},
		"two sources": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].Pods = &autoscalingv2.PodsMetricSource{}
		}, "spec.metrics[0].pods: Forbidden"},
		"no name": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) { s.Metrics[0].External.Metric.Name = "" }, "external.metric.name: Required"},
		"a target for all pods together": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].External.Target = autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse("1"))}
		}, "target.type: Invalid value: \"Value\": only AverageValue"},
		"another target than the type's": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].External.Target.AverageValue = nil
		}, "external.target.averageValue: Required"},
		"two targets": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].External.Target.AverageUtilization = new(int32(50))
		}, "external.target.averageUtilization: Forbidden"},
		"a target of 0": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].External.Target.AverageValue = new(resource.Quantity)
		}, "external.target.averageValue: Invalid value: \"0\""},
		"a target without thousandths": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) {
			s.Metrics[0].External.Target.AverageValue = new(resource.MustParse("1E30"))
		}, "external.target.averageValue: Invalid value"},
		"a maximum below":   {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) { s.MaxReplicas = 1 }, "spec.maxReplicas: Invalid value: 1"},
		"scaling down to 0": {func(s *autoscalingv2.HorizontalPodAutoscalerSpec) { s.MinReplicas = new(int32) }, "spec.minReplicas: Invalid value: 0"},
		"a window too long": {up(func(r *autoscalingv2.HPAScalingRules) { r.StabilizationWindowSeconds = new(int32(3601)) }), "spec.behavior.scaleUp.stabilizationWindowSeconds"},
		"a negative window": {up(func(r *autoscalingv2.HPAScalingRules) { r.StabilizationWindowSeconds = new(int32(-1)) }), "spec.behavior.scaleUp.stabilizationWindowSeconds"},
		"another choice": {up(func(r *autoscalingv2.HPAScalingRules) {
			r.SelectPolicy = new(autoscalingv2.ScalingPolicySelect("max"))
		}), "spec.behavior.scaleUp.selectPolicy: Unsupported value"},
		"a negative tolerance": {up(func(r *autoscalingv2.HPAScalingRules) { r.Tolerance = new(resource.MustParse("-1m")) }), "spec.behavior.scaleUp.tolerance"},
		"no policy":            {up(func(r *autoscalingv2.HPAScalingRules) { r.Policies = r.Policies[:0] }), "spec.behavior.scaleUp.policies: Required"},
		"another policy":       {up(func(r *autoscalingv2.HPAScalingRules) { r.Policies[0].Type = "percent" }), "spec.behavior.scaleUp.policies[0].type: Unsupported value"},
		"a policy of nothing":  {up(func(r *autoscalingv2.HPAScalingRules) { r.Policies[0].Value = 0 }), "spec.behavior.scaleUp.policies[0].value"},
		"a period of nothing":  {up(func(r *autoscalingv2.HPAScalingRules) { r.Policies[0].PeriodSeconds = 0 }), "spec.behavior.scaleUp.policies[0].periodSeconds"},
		"a period too long":    {up(func(r *autoscalingv2.HPAScalingRules) { r.Policies[0].PeriodSeconds = 1801 }), "spec.behavior.scaleUp.policies[0].periodSeconds"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(metric)
			tc.change(s)
			_, err := hpa.New(s)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}
