package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func validAutoScaler() *AutoScaler {
	return &AutoScaler{Spec: AutoScalerSpec{
		TargetRef:   TargetReference{Name: "web"},
		MinReplicas: 2, MaxReplicas: 20,
		Metrics: []MetricSpec{{Name: "load", Type: MetricTypePrometheus, MetricProfileRef: "total", TargetPerReplica: "100"}},
	}}
}

func number(n int32) *int32 { return &n }

func TestValidateAutoScaler(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*AutoScaler)
		want   []string // "field: part of the message", in order
	}{
		"a plain one is valid":                  {func(*AutoScaler) {}, nil},
		"fields with a default may be left out": {func(a *AutoScaler) { a.Spec.PollIntervalSeconds = 0; a.Spec.Behavior = nil }, nil},
		"the target needs a name":               {func(a *AutoScaler) { a.Spec.TargetRef.Name = "" }, []string{"spec.targetRef.name: "}},
		"min is at least 1":                     {func(a *AutoScaler) { a.Spec.MinReplicas = 0 }, []string{"spec.minReplicas: must be from 1 to 100000"}},
		"max is at least min":                   {func(a *AutoScaler) { a.Spec.MaxReplicas = 1 }, []string{"spec.maxReplicas: must be at least minReplicas (2)"}},
		"max is within the platform's bound":    {func(a *AutoScaler) { a.Spec.MaxReplicas = 1001 }, []string{"spec.maxReplicas: the platform allows at most 1000"}},
		"the poll interval is bounded":          {func(a *AutoScaler) { a.Spec.PollIntervalSeconds = 4 }, []string{"spec.pollIntervalSeconds: must be from 5 to 3600"}},
		"a negative number is refused":          {func(a *AutoScaler) { a.Spec.PollIntervalSeconds = -15 }, []string{"spec.pollIntervalSeconds: must be from"}},
		"there is a metric":                     {func(a *AutoScaler) { a.Spec.Metrics = nil }, []string{"spec.metrics: "}},
		"there are at most ten metrics":         {func(a *AutoScaler) { a.Spec.Metrics = make([]MetricSpec, 11) }, []string{"spec.metrics: "}},
		"metric names are unique":               {func(a *AutoScaler) { a.Spec.Metrics = append(a.Spec.Metrics, a.Spec.Metrics[0]) }, []string{"spec.metrics[1].name: "}},
		"the metric type is known":              {func(a *AutoScaler) { a.Spec.Metrics[0].Type = "Datadog" }, []string{"spec.metrics[0].type: "}},
		"targetPerReplica is above 0":           {func(a *AutoScaler) { a.Spec.Metrics[0].TargetPerReplica = "0" }, []string{`spec.metrics[0].targetPerReplica: must be a decimal number above 0`}},
		"targetPerReplica is short":             {func(a *AutoScaler) { a.Spec.Metrics[0].TargetPerReplica = "100000000000000000000" }, []string{"spec.metrics[0].targetPerReplica: "}},
		"maxAgeSeconds is bounded":              {func(a *AutoScaler) { a.Spec.Metrics[0].MaxAgeSeconds = 3601 }, []string{"spec.metrics[0].maxAgeSeconds: must be from 1 to 3600"}},
		"steps are positive":                    {func(a *AutoScaler) { a.Spec.Behavior = &Behavior{ScaleUpMaxStep: number(0)} }, []string{"spec.behavior.scaleUpMaxStep: must be from 1"}},
		"FC-15 a window is not negative":        {func(a *AutoScaler) { a.Spec.Behavior = &Behavior{ScaleDownStabilizationSeconds: number(-300)} }, []string{"spec.behavior.scaleDownStabilizationSeconds: must be from 0 to 86400"}},
		"FC-15 a window is at most a day":       {func(a *AutoScaler) { a.Spec.Behavior = &Behavior{ScaleDownStabilizationSeconds: number(86401)} }, []string{"spec.behavior.scaleDownStabilizationSeconds: must be from 0 to 86400"}},
		"FC-15 an interval may exceed the window": {func(a *AutoScaler) {
			a.Spec.Behavior = &Behavior{ScaleDownStabilizationSeconds: number(60), ScaleDownMinIntervalSeconds: number(600)}
		}, nil},
		"a metric's own behavior is checked too": {func(a *AutoScaler) { a.Spec.Metrics[0].Behavior = &Behavior{ScaleDownMaxStep: number(-1)} }, []string{"spec.metrics[0].behavior.scaleDownMaxStep: "}},
		"all errors come at once, in a fixed order": {
			func(a *AutoScaler) {
				a.Spec.TargetRef.Name, a.Spec.MinReplicas, a.Spec.PollIntervalSeconds = "Web", 0, 1
				a.Spec.Metrics[0].TargetPerReplica = "1Ki"
			},
			[]string{"spec.targetRef.name: ", "spec.minReplicas: ", "spec.pollIntervalSeconds: ", "spec.metrics[0].targetPerReplica: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := validAutoScaler()
			tc.change(a)

			errs := ValidateAutoScaler(a, DefaultLimits)

			require.Len(t, errs, len(tc.want), "%v", errs)
			for i, want := range tc.want {
				assert.Contains(t, errs[i].Field+": "+errs[i].Detail, want)
			}
		})
	}
}

func TestValidateMetricProfile(t *testing.T) {
	valid := func() *MetricProfile {
		return &MetricProfile{Spec: MetricProfileSpec{
			Endpoint: "main", Query: "up", Semantics: SemanticsTotal, AllowedNamespaces: []NamespaceName{"production"},
		}}
	}
	for name, tc := range map[string]struct {
		change func(*MetricProfile)
		want   []string
	}{
		"a plain one is valid":           {func(*MetricProfile) {}, nil},
		"all namespaces may be allowed":  {func(p *MetricProfile) { p.Spec.AllowedNamespaces = []NamespaceName{AllNamespaces} }, nil},
		"an endpoint is a name, no URL":  {func(p *MetricProfile) { p.Spec.Endpoint = "http://10.0.0.1" }, []string{"spec.endpoint"}},
		"semantics are known":            {func(p *MetricProfile) { p.Spec.Semantics = "Average" }, []string{"spec.semantics"}},
		"somebody must be allowed":       {func(p *MetricProfile) { p.Spec.AllowedNamespaces = nil }, []string{"spec.allowedNamespaces"}},
		"a namespace is listed once":     {func(p *MetricProfile) { p.Spec.AllowedNamespaces = []NamespaceName{"a", "a"} }, []string{"spec.allowedNamespaces[1]"}},
		"a namespace is a name":          {func(p *MetricProfile) { p.Spec.AllowedNamespaces = []NamespaceName{"a*"} }, []string{"spec.allowedNamespaces[0]"}},
		"the deadline is at most minute": {func(p *MetricProfile) { p.Spec.TimeoutSeconds = 61 }, []string{"spec.timeoutSeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := valid()
			tc.change(p)

			errs := ValidateMetricProfile(p)

			require.Len(t, errs, len(tc.want), "%v", errs)
			for i, want := range tc.want {
				assert.Equal(t, want, errs[i].Field)
			}
		})
	}
}

func TestAProfileAllowsTheNamespacesItLists(t *testing.T) {
	p := &MetricProfile{Spec: MetricProfileSpec{AllowedNamespaces: []NamespaceName{"production"}}}
	assert.True(t, p.Allows("production"))
	assert.False(t, p.Allows("production-eu"))
	assert.False(t, (&MetricProfile{}).Allows("production"), "a profile that lists nobody allows nobody")
}
