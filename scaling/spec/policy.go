// Package spec is the one translation between the API's objects and the pure
// policy: a spec into a Policy and its queries, the policy's memory and trace
// into status and back. Controller, webhook and command line all go through it.
package spec

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// PollInterval is the time between two evaluations of an AutoScaler.
func PollInterval(a *v1alpha1.AutoScaler) time.Duration {
	return seconds(cmp.Or(a.Spec.PollIntervalSeconds, v1alpha1.DefaultPollIntervalSeconds))
}

// Policy translates a validated AutoScaler. profiles[i] is the profile of metric
// i, nil where it is missing. The error names the first field that cannot be
// translated; ValidateAutoScaler would have refused it.
func Policy(a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile) (scaling.Policy, error) {
	p := scaling.Policy{
		MinReplicas:  a.Spec.MinReplicas,
		MaxReplicas:  a.Spec.MaxReplicas,
		PollInterval: PollInterval(a),
		Metrics:      make([]scaling.Metric, len(a.Spec.Metrics)),
	}
	for i := range a.Spec.Metrics {
		m := &a.Spec.Metrics[i]
		target, err := v1alpha1.ParsePositiveDecimal(m.TargetPerReplica)
		if err != nil {
			return scaling.Policy{}, fmt.Errorf("spec.metrics[%d].targetPerReplica: %w", i, err)
		}
		var profile *v1alpha1.MetricProfile
		if i < len(profiles) {
			profile = profiles[i]
		}
		limits := behavior(cmp.Or(m.Behavior, a.Spec.Behavior))
		p.Metrics[i] = scaling.Metric{
			Name:             m.Name,
			Key:              key(m, profile, limits.DownStabilization),
			TargetPerReplica: target,
			Behavior:         limits,
		}
	}
	return p, nil
}

// Query renders the query of metric i of an AutoScaler. Its deadline is the
// profile's, but never longer than the poll interval.
func Query(a *v1alpha1.AutoScaler, i int, profile *v1alpha1.MetricProfile) (prometheus.Query, error) {
	expr, err := prometheus.Render(profile.Spec.Query, prometheus.Vars{
		Namespace: a.Namespace,
		Target:    a.Spec.TargetRef.Name,
	})
	if err != nil {
		return prometheus.Query{}, err
	}
	timeout := seconds(cmp.Or(profile.Spec.TimeoutSeconds, v1alpha1.DefaultTimeoutSeconds))
	return prometheus.Query{
		Endpoint: profile.Spec.Endpoint,
		Expr:     expr,
		Timeout:  min(timeout, PollInterval(a)),
		MaxAge:   seconds(cmp.Or(a.Spec.Metrics[i].MaxAgeSeconds, v1alpha1.DefaultMaxAgeSeconds)),
	}, nil
}

func behavior(b *v1alpha1.Behavior) scaling.Behavior {
	window := int32(v1alpha1.DefaultScaleDownStabilizationSeconds)
	if b == nil {
		return scaling.Behavior{DownStabilization: seconds(window)}
	}
	if b.ScaleDownStabilizationSeconds != nil {
		window = *b.ScaleDownStabilizationSeconds
	}
	return scaling.Behavior{
		UpMaxStep:         value(b.ScaleUpMaxStep),
		DownMaxStep:       value(b.ScaleDownMaxStep),
		DownStabilization: seconds(window),
		DownMinInterval:   seconds(value(b.ScaleDownMinIntervalSeconds)),
	}
}

// key identifies what a metric measures and how. Steps and intervals are not part
// of it: changing them does not make past recommendations wrong.
func key(m *v1alpha1.MetricSpec, profile *v1alpha1.MetricProfile, window time.Duration) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %d", m.Name, m.MetricProfileRef, m.TargetPerReplica, window)
	if profile != nil {
		fmt.Fprintf(h, " %q %q %q", profile.Spec.Endpoint, profile.Spec.Query, profile.Spec.Semantics)
	}
	return h.Sum64()
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// value of an optional field, 0 where it is not set: the policy's "no limit".
func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}
