package spec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// Trace is the decision as a status explains it; in is what Policy gave beside p.
func Trace(p *scaling.Policy, in Schedule, o *scaling.Observation, d *scaling.Decision) *v1alpha1.DecisionTrace {
	t := &v1alpha1.DecisionTrace{
		Time:        metav1.NewTime(o.Now),
		Current:     o.Current,
		MinReplicas: p.MinReplicas,
		MaxReplicas: p.MaxReplicas,
		Schedules:   in.Names,
		Freeze:      string(freezeStatus(p.Freeze)),
		Result:      d.Replicas,
		Rule:        rule(d.Rule),
	}
	for i := range p.Metrics {
		m := &d.Metrics[i]
		var ready int32
		if p.Metrics[i].Semantics == scaling.PerReplicaAverage && i < len(o.Samples) {
			ready = o.Samples[i].Ready
		}
		t.Metrics = append(t.Metrics, v1alpha1.MetricTrace{
			Name: p.Metrics[i].Name, Validity: m.Validity.String(), Reason: m.Reason,
			Ready: ready, Raw: m.Raw, Tolerated: m.Tolerated, Bounded: m.Bounded, Stabilized: m.Stabilized, Limited: m.Limited,
			Rule: rule(m.Rule),
		})
	}
	return t
}

func rule(r scaling.Rule) string {
	if r == scaling.RuleNone {
		return ""
	}
	return r.String()
}

func freezeStatus(f scaling.Freeze) v1alpha1.ScheduleFreeze {
	switch f {
	case scaling.FreezeAll:
		return v1alpha1.FreezeAll
	case scaling.FreezeScaleDown:
		return v1alpha1.FreezeScaleDown
	case scaling.FreezeNone:
	}
	return ""
}
