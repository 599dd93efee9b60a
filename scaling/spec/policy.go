// Package spec is the one translation between the API's objects and the pure
// policy: a spec into a Policy and its measures, the policy's memory and trace
// into status and back. Controller, webhook and command line all go through it.
package spec

import (
	"cmp"
	"fmt"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// PollInterval is the time between two evaluations of an AutoScaler.
func PollInterval(a *v1alpha1.AutoScaler) time.Duration {
	return seconds(cmp.Or(a.Spec.PollIntervalSeconds, v1alpha1.DefaultPollIntervalSeconds))
}

// Policy translates a validated AutoScaler as its schedules make it at a time.
// profiles[i] is the profile of metric i, nil where it is missing. The error names the
// first field that cannot be translated; ValidateAutoScaler would have refused it.
func Policy(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, now time.Time) (scaling.Policy, Schedule, error) {
	in, err := ScheduleAt(a, now)
	if err != nil {
		return scaling.Policy{}, Schedule{}, err
	}
	p := scaling.Policy{
		MinReplicas:  in.MinReplicas,
		MaxReplicas:  in.MaxReplicas,
		Freeze:       in.Freeze,
		PollInterval: PollInterval(a),
		Metrics:      make([]scaling.Metric, len(a.Spec.Metrics)),
	}
	if f := a.Spec.Fallback; f != nil {
		p.Fallback = scaling.Fallback{FloorReplicas: f.FloorReplicas, After: seconds(f.AfterSeconds)}
	}
	for i := range a.Spec.Metrics {
		var profile *v1alpha1.MetricProfile
		if i < len(profiles) {
			profile = profiles[i]
		}
		if p.Metrics[i], err = metric(a, i, profile); err != nil {
			return scaling.Policy{}, Schedule{}, err
		}
	}
	return p, in, nil
}

func metric(a *v1alpha1.AutoScaler, i int, profile *v1alpha1.MetricProfile) (scaling.Metric, error) {
	m := &a.Spec.Metrics[i]
	target, err := v1alpha1.ParsePositiveDecimal(m.TargetPerReplica)
	if err != nil {
		return scaling.Metric{}, fmt.Errorf("spec.metrics[%d].targetPerReplica: %w", i, err)
	}
	path, of := "spec.behavior", a.Spec.Behavior
	if m.Behavior != nil {
		path, of = fmt.Sprintf("spec.metrics[%d].behavior", i), m.Behavior
	}
	limits, err := behavior(of)
	if err != nil {
		return scaling.Metric{}, fmt.Errorf("%s.%w", path, err)
	}
	translated := scaling.Metric{
		Name:             m.Name,
		Key:              key(m, profile, limits.UpStabilization, limits.DownStabilization),
		TargetPerReplica: target,
		Behavior:         limits,
	}
	// A profile that was stored past admission can lack what its semantics need. That
	// makes the sample of its metric invalid, and must not make the policy so.
	if profile != nil && (profile.Spec.Semantics != v1alpha1.SemanticsBacklog || profile.Spec.ClearanceSeconds > 0) {
		translated.Semantics = semantics[profile.Spec.Semantics]
		translated.Clearance = seconds(profile.Spec.ClearanceSeconds)
	}
	return translated, nil
}

func behavior(b *v1alpha1.Behavior) (scaling.Behavior, error) {
	window := int32(v1alpha1.DefaultScaleDownStabilizationSeconds)
	if b == nil {
		return scaling.Behavior{DownStabilization: seconds(window)}, nil
	}
	if b.ScaleDownStabilizationSeconds != nil {
		window = *b.ScaleDownStabilizationSeconds
	}
	translated := scaling.Behavior{
		UpMaxStep:         value(b.ScaleUpMaxStep),
		DownMaxStep:       value(b.ScaleDownMaxStep),
		UpStabilization:   seconds(value(b.ScaleUpStabilizationSeconds)),
		DownStabilization: seconds(window),
		DownMinInterval:   seconds(value(b.ScaleDownMinIntervalSeconds)),
	}
	if r := b.ScaleUpRate; r != nil {
		translated.UpRate = scaling.Rate{MaxReplicas: r.MaxReplicas, Period: seconds(r.PeriodSeconds)}
	}
	var err error
	if translated.ToleranceUp, err = tolerance(b.ToleranceUp); err != nil {
		return scaling.Behavior{}, fmt.Errorf("toleranceUp: %w", err)
	}
	if translated.ToleranceDown, err = tolerance(b.ToleranceDown); err != nil {
		return scaling.Behavior{}, fmt.Errorf("toleranceDown: %w", err)
	}
	return translated, nil
}

func tolerance(share string) (float64, error) {
	if share == "" {
		return 0, nil
	}
	return v1alpha1.ParseShare(share)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// value of an optional field, 0 where it is not set: the policy's "no limit".
func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
