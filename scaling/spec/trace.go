package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// Trace is the decision as a status explains it.
func Trace(p *scaling.Policy, o *scaling.Observation, d *scaling.Decision) *v1alpha1.DecisionTrace {
	t := &v1alpha1.DecisionTrace{
		Time:    metav1.NewTime(o.Now),
		Current: o.Current,
		Result:  d.Replicas,
		Rule:    rule(d.Rule),
	}
	for i := range p.Metrics {
		m := &d.Metrics[i]
		trace := v1alpha1.MetricTrace{
			Name: p.Metrics[i].Name, Validity: m.Validity.String(),
			Raw: m.Raw, Bounded: m.Bounded, Stabilized: m.Stabilized, Limited: m.Limited,
			Rule: rule(m.Rule),
		}
		if i < len(o.Samples) {
			trace.Reason = o.Samples[i].Reason
		}
		t.Metrics = append(t.Metrics, trace)
	}
	return t
}

func rule(r scaling.Rule) string {
	if r == scaling.RuleNone {
		return ""
	}
	return r.String()
}
