package simulate

import (
	"fmt"
	"slices"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// target stands for the UID of the simulated Deployment.
const target = "replay"

// Policy is an AutoScaler as the operator runs it: the policy that its schedules make of
// it at each time, the same Decide, and a memory in which each change is recorded.
type Policy struct {
	autoscaler *v1alpha1.AutoScaler
	profiles   []*v1alpha1.MetricProfile
	// metrics[i] is the metric of the recording that metric i is.
	metrics  []int
	policy   scaling.Policy
	schedule spec.Schedule
	// until is how long policy and schedule hold.
	until  time.Time
	memory scaling.Memory
	// observation and decision are used again each time.
	observation scaling.Observation
	decision    scaling.Decision
}

// schedules look so far ahead for a change; a policy holds no longer.
const holdsAtMost = 12 * time.Hour

// NewPolicy is for a valid AutoScaler with its defaults; profiles[i] is that of metric i,
// nil where there is none, and metrics[i] the metric of the recording that it is.
func NewPolicy(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, metrics []int) *Policy {
	return &Policy{
		autoscaler: a, profiles: profiles, metrics: metrics,
		observation: scaling.Observation{Target: target, Samples: make([]scaling.Sample, len(a.Spec.Metrics))},
	}
}

// Interval is the poll interval.
func (p *Policy) Interval() time.Duration { return spec.PollInterval(p.autoscaler) }

// Decide evaluates the policy as the reconciler does.
func (p *Policy) Decide(at time.Time, current, ready int32, load []Load) (Verdict, error) {
	d, err := p.decide(at, current, ready, load)
	if err != nil {
		return Verdict{}, err
	}
	if d.Replicas != current {
		p.memory = p.memory.Scaled(at, current, d.Replicas, p.policy.PollInterval)
	}
	v := Verdict{
		Recommended: d.Recommended, Desired: d.Desired, Replicas: d.Replicas,
		Min: p.schedule.MinReplicas, Max: p.schedule.MaxReplicas, Schedules: p.schedule.Names,
		Invalid: p.invalid(len(load)), Blind: p.blind(),
	}
	if d.Rule != scaling.RuleNone {
		v.Rule = d.Rule.String()
	}
	return v, nil
}

// invalid has the reasons of the newest decision by the recording's metrics; nil where all
// are valid.
func (p *Policy) invalid(metrics int) []string {
	if !p.decision.Degraded() {
		return nil
	}
	reasons := make([]string, metrics)
	for i, metric := range p.metrics {
		reasons[metric] = p.decision.Metrics[i].Reason
	}
	return reasons
}

// blind says whether the newest decision could use no metric.
func (p *Policy) blind() bool {
	for i := range p.metrics {
		if p.decision.Metrics[i].Validity != scaling.Invalid {
			return false
		}
	}
	return true
}

func (p *Policy) decide(at time.Time, current, ready int32, load []Load) (*scaling.Decision, error) {
	if err := p.at(at); err != nil {
		return nil, err
	}
	o := &p.observation
	o.Now, o.Current = at, current
	for i := range o.Samples {
		o.Samples[i] = p.sample(i, ready, &load[p.metrics[i]])
	}
	p.decision, p.memory = scaling.Decide(&p.policy, o, p.memory)
	return &p.decision, nil
}

// at brings the policy up to a time.
func (p *Policy) at(now time.Time) error {
	if now.Before(p.until) {
		return nil
	}
	var err error
	if p.policy, p.schedule, err = spec.Policy(p.autoscaler, p.profiles, now); err != nil {
		return fmt.Errorf("AutoScaler %q: %w", p.autoscaler.Name, err)
	}
	p.until = now.Add(holdsAtMost)
	if change := p.schedule.Change; !change.IsZero() && change.Before(p.until) {
		p.until = change
	}
	p.schedule.Names = slices.Clone(p.schedule.Names)
	return nil
}

// sample is what the sampler would say of a load.
func (p *Policy) sample(i int, ready int32, load *Load) scaling.Sample {
	profile := p.profiles[i]
	if load.Absent {
		if profile == nil || profile.Spec.OnEmpty != v1alpha1.EmptyZero {
			return scaling.Sample{Reason: prometheus.ReasonNoData}
		}
		return scaling.Sample{Validity: scaling.Valid, Ready: ready}
	}
	// Whether the number is a load is for Decide to say.
	s := scaling.Sample{Value: load.Value, ArrivalRate: load.Arrivals, Validity: scaling.Valid, Ready: ready}
	if p.policy.Metrics[i].Semantics == scaling.PerReplicaAverage && ready > 0 {
		s.Value = load.Value / float64(ready)
	}
	return s
}

// Needed is how many replicas bear a load by the targets of the AutoScaler, or why that
// cannot be said, as a moment has it.
func (p *Policy) Needed(at time.Time, load []Load) (needed int32, invalid []string, err error) {
	// With one replica that is ready an average is the total; the memory is not kept.
	before := p.memory
	d, err := p.decide(at, 1, 1, load)
	p.memory = before
	if err != nil {
		return 0, nil, err
	}
	return d.Recommended, p.invalid(len(load)), nil
}
