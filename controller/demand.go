package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// sample says what is to be known, and takes the newest of what is: the sampler asks,
// and an answer wakes the AutoScaler. A metric whose profile cannot be used is an
// invalid sample like any other: it is no reason to ignore the metrics beside it.
func (r *Reconciler) sample(ctx context.Context, e *evaluation) (bool, error) {
	metrics := e.autoscaler.Spec.Metrics
	profiles := make([]*v1alpha1.MetricProfile, len(metrics))
	e.samples = make([]scaling.Sample, len(metrics))
	var measures []prometheus.Measure
	var measured []int // the metric that each measure is of
	for i := range metrics {
		var err error
		if profiles[i], e.samples[i], err = r.profile(ctx, e.autoscaler, metrics[i].MetricProfileRef); err != nil {
			return true, err
		}
		if e.samples[i].Reason != "" {
			continue // the profile cannot be used
		}
		m, err := spec.Measure(e.autoscaler, i, profiles[i])
		if err != nil {
			e.samples[i] = unmeasurable(profiles[i], err)
			continue
		}
		measures, measured = append(measures, m), append(measured, i)
	}
	var err error
	if e.policy, e.schedule, err = spec.Policy(e.autoscaler, profiles, e.now); err != nil {
		return true, err
	}
	samples, at, ready := r.newest(e, measures)
	if !ready {
		e.awaitSamples()
		return true, nil
	}
	for i, sample := range samples {
		sample.Ready = e.record.sawReady(measured[i], e.target, at[i])
		e.samples[measured[i]] = sample
	}
	r.Telemetry.sampled(e, profiles, newestOf(at))
	return false, nil
}

// newest subscribes to the measures and gives the newest sample of each; not ready
// where one has yet to be asked for the first time. The next evaluation comes with the
// next answer, and by itself where that is overdue.
func (r *Reconciler) newest(e *evaluation, measures []prometheus.Measure) (samples []scaling.Sample, at []prometheus.Arrival, ready bool) {
	id := subscriber(nameOf(e.autoscaler))
	if len(measures) == 0 {
		r.Sampler.Unsubscribe(id)
		return nil, nil, true
	}
	e.after = e.policy.PollInterval + patience(measures)
	r.Sampler.Subscribe(id, e.policy.PollInterval, measures)
	return r.Sampler.Samples(id, e.now)
}

// newestOf is the latest of arrivals, zero where there are none.
func newestOf(arrivals []prometheus.Arrival) time.Time {
	var newest time.Time
	for _, at := range arrivals {
		if at.Newest.After(newest) {
			newest = at.Newest
		}
	}
	return newest
}

// patience is how long the answers to measures may take.
func patience(measures []prometheus.Measure) time.Duration {
	var longest time.Duration
	for i := range measures {
		for _, q := range []*prometheus.Question{&measures[i].Load, &measures[i].Arrivals, &measures[i].Freshness.Question} {
			longest = max(longest, q.Timeout)
		}
	}
	return longest
}

// awaitSamples ends an evaluation that comes before the first answers. What a status
// says of the same spec and the same Deployment stands until then: after a restart of
// the operator, or a change of the leader, nothing is news.
func (e *evaluation) awaitSamples() {
	before := &e.before.Status
	if before.LastDecision != nil && before.ObservedGeneration == e.before.Generation && before.TargetUID == e.target.uid {
		e.autoscaler = e.before.DeepCopy()
		return
	}
	for _, c := range []string{
		v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionScalingLimited, v1alpha1.ConditionAbleToScale, v1alpha1.ConditionReady,
	} {
		e.set(c, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingSamples, "the metrics are asked for the first time")
	}
}

// describeSamples says which metrics cannot be trusted, all of them, in the order of
// the spec. The decision knows: a valid sample may still be of no use to it.
func (e *evaluation) describeSamples() {
	var first string
	var problems []string
	for i, s := range e.samples {
		validity, reason, message := s.Validity, s.Reason, s.Message
		if i < e.decision.TotalMetrics {
			validity, reason = e.decision.Metrics[i].Validity, e.decision.Metrics[i].Reason
		}
		switch {
		case validity == scaling.Valid:
			continue
		case reason == scaling.ReasonNoReadyReplicas:
			message = "no replica is Ready, so that there is nothing that its value is the average of"
		}
		if first == "" {
			first = reason
		}
		problems = append(problems, fmt.Sprintf("metric %q: %s (%s)", e.autoscaler.Spec.Metrics[i].Name, message, reason))
	}
	if len(problems) == 0 {
		e.setTrue(v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonSamplesValid, "every metric has a valid sample")
		return
	}
	e.setFalse(v1alpha1.ConditionMetricsAvailable, first, strings.Join(problems, "; "))
}
