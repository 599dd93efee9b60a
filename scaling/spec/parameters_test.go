package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestParametersAreHeldToTheProfile(t *testing.T) {
	declared := []v1alpha1.ProfileParameter{
		{Name: "queue", Values: []v1alpha1.ParameterValue{"orders", "invoices"}},
		{Name: "shard", Pattern: "[0-9]{1,2}", Default: "1"},
	}
	for name, tc := range map[string]struct {
		declared []v1alpha1.ProfileParameter
		given    map[string]string
		want     []string
	}{
		"none of none":           {nil, nil, nil},
		"all":                    {declared, map[string]string{"queue": "orders", "shard": "12"}, nil},
		"the default":            {declared, map[string]string{"queue": "invoices"}, nil},
		"none where one must be": {declared, nil, []string{`spec.metrics[1].parameters[queue]: Required value: MetricProfile "p" asks for it and has no default; it must be one of orders, invoices`}},
		"a value not allowed":    {declared, map[string]string{"queue": "Orders"}, []string{`spec.metrics[1].parameters[queue]: Invalid value: "Orders": it must be one of orders, invoices`}},
		"a part that matches": {declared, map[string]string{"queue": "orders", "shard": "123"}, []string{
			`spec.metrics[1].parameters[shard]: Invalid value: "123": the whole value must match [0-9]{1,2}`}},
		"a line that matches": {declared, map[string]string{"queue": "orders", "shard": "1\n"}, []string{
			`spec.metrics[1].parameters[shard]: Invalid value: "1\n": the whole value must match [0-9]{1,2}`}},
		"an undeclared one": {declared, map[string]string{"queue": "orders", "topic": "x"}, []string{
			`spec.metrics[1].parameters[topic]: Invalid value: "topic": MetricProfile "p" declares queue, shard`}},
		"one of none": {nil, map[string]string{"queue": "orders"}, []string{
			`spec.metrics[1].parameters[queue]: Invalid value: "queue": MetricProfile "p" declares no parameters; leave it out`}},
		"all that is wrong, in order": {declared, map[string]string{"zone": "a", "app": "b", "shard": "x"}, []string{
			"spec.metrics[1].parameters[app]: ", "spec.metrics[1].parameters[zone]: ", "spec.metrics[1].parameters[queue]: Required", "spec.metrics[1].parameters[shard]: "}},
		"a long one is not repeated": {declared, map[string]string{"queue": strings.Repeat("x", 5000)}, []string{"spec.metrics[1].parameters[queue]: Too long"}},
		"an empty one": {[]v1alpha1.ProfileParameter{{Name: "queue", Pattern: ".*"}}, map[string]string{"queue": ""}, []string{
			`spec.metrics[1].parameters[queue]: Invalid value: "": the whole value must match .*`}},
		"alternatives, anchored as a whole": {[]v1alpha1.ProfileParameter{{Name: "queue", Pattern: "a|b"}}, map[string]string{"queue": "ax"}, []string{
			`spec.metrics[1].parameters[queue]: Invalid value: "ax": the whole value must match a|b`}},
		"a pattern that ends the anchors": {[]v1alpha1.ProfileParameter{{Name: "queue", Pattern: "a)|(b"}}, map[string]string{"queue": "xb"}, []string{
			`spec.metrics[1].parameters[queue]: Invalid value: "xb": the whole value must match a)|(b`}},
		"a pattern over lines": {[]v1alpha1.ProfileParameter{{Name: "queue", Pattern: "(?m)^a$"}}, map[string]string{"queue": "a\nb"}, []string{
			"spec.metrics[1].parameters[queue]: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := builders.MakeMetricProfile("p").Obj()
			p.Spec.Parameters = tc.declared
			a := builders.MakeAutoScaler("production", "web").Metric("first", "total", "1").Metric("second", "p", "1").Obj()
			a.Spec.Metrics[1].Parameters = tc.given

			errs := CheckParameters(a, 1, p)

			require.Len(t, errs, len(tc.want), "%v", errs)
			for i, err := range errs {
				assert.Contains(t, err.Error(), tc.want[i])
				assert.Less(t, len(err.Error()), 400)
			}
		})
	}
}
