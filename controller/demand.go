package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// sample asks every metric at once, each within its own deadline. A metric whose
// profile cannot be used is an invalid sample like any other: it is no reason to
// ignore the metrics beside it.
func (r *Reconciler) sample(ctx context.Context, e *evaluation) (bool, error) {
	metrics := e.autoscaler.Spec.Metrics
	profiles := make([]*v1alpha1.MetricProfile, len(metrics))
	e.samples = make([]scaling.Sample, len(metrics))
	for i := range metrics {
		var err error
		if profiles[i], e.samples[i], err = r.profile(ctx, e.autoscaler, metrics[i].MetricProfileRef); err != nil {
			return true, err
		}
	}
	var pending sync.WaitGroup
	for i, profile := range profiles {
		if e.samples[i].Reason != "" {
			continue // the profile cannot be used
		}
		q, err := spec.Query(e.autoscaler, i, profile)
		if err != nil {
			e.samples[i] = invalid(v1alpha1.ReasonProfileInvalid, fmt.Sprintf("MetricProfile %q: %v", profile.Name, err))
			continue
		}
		pending.Go(func() { e.samples[i] = r.Sampler.Sample(ctx, q) })
	}
	pending.Wait()
	if err := ctx.Err(); err != nil {
		return true, err // shutting down: half an answer is no observation
	}
	for i := range e.samples {
		countSample(profiles[i], e.samples[i])
	}
	e.describeSamples()
	policy, err := spec.Policy(e.autoscaler, profiles)
	if err != nil {
		return true, err
	}
	e.policy = policy
	return false, nil
}

// profile finds a MetricProfile, or says why it cannot be used.
func (r *Reconciler) profile(ctx context.Context, a *v1alpha1.AutoScaler, name string) (*v1alpha1.MetricProfile, scaling.Sample, error) {
	var p v1alpha1.MetricProfile
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, invalid(v1alpha1.ReasonProfileNotFound, fmt.Sprintf("there is no MetricProfile %q", name)), nil
	case err != nil:
		return nil, scaling.Sample{}, err
	}
	if errs := spec.ValidateMetricProfile(&p); len(errs) > 0 {
		return &p, invalid(v1alpha1.ReasonProfileInvalid, fmt.Sprintf("MetricProfile %q: %v", name, errs.ToAggregate())), nil
	}
	if !p.Allows(a.Namespace) {
		return &p, invalid(v1alpha1.ReasonProfileForbidden, fmt.Sprintf("MetricProfile %q does not allow namespace %q", name, a.Namespace)), nil
	}
	return &p, scaling.Sample{}, nil
}

func invalid(reason, message string) scaling.Sample {
	return scaling.Sample{Validity: scaling.Invalid, Reason: reason, Message: message}
}

// describeSamples says which metrics have no valid sample, all of them, in the
// order of the spec.
func (e *evaluation) describeSamples() {
	var reason string
	var problems []string
	for i, s := range e.samples {
		if s.Validity == scaling.Valid {
			continue
		}
		if reason == "" {
			reason = s.Reason
		}
		problems = append(problems, fmt.Sprintf("metric %q: %s (%s)", e.autoscaler.Spec.Metrics[i].Name, s.Message, s.Reason))
	}
	if len(problems) == 0 {
		e.setTrue(v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonSamplesValid, "every metric has a valid sample")
		return
	}
	e.setFalse(v1alpha1.ConditionMetricsAvailable, reason, strings.Join(problems, "; "))
}
