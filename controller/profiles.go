package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// profile finds a MetricProfile, or says why it cannot be used.
func (r *Reconciler) profile(ctx context.Context, a *v1alpha1.AutoScaler, name string) (*v1alpha1.MetricProfile, scaling.Sample, error) {
	var p v1alpha1.MetricProfile
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &p)
	switch {
	case apierrors.IsNotFound(err):
		r.verdicts.forget(name)
		return nil, invalid(v1alpha1.ReasonProfileNotFound, fmt.Sprintf("there is no MetricProfile %q", name)), nil
	case err != nil:
		return nil, scaling.Sample{}, err
	}
	if wrong := r.verdicts.of(&p); wrong != "" {
		return &p, invalid(v1alpha1.ReasonProfileInvalid, fmt.Sprintf("MetricProfile %q: %s", name, wrong)), nil
	}
	if !p.Allows(a.Namespace) {
		return &p, invalid(v1alpha1.ReasonProfileForbidden, fmt.Sprintf("MetricProfile %q does not allow namespace %q", name, a.Namespace)), nil
	}
	return &p, scaling.Sample{}, nil
}

// unmeasurable says why a metric cannot be asked for, and whose fault that is.
func unmeasurable(p *v1alpha1.MetricProfile, err error) scaling.Sample {
	reason := v1alpha1.ReasonProfileInvalid
	if parameters := (*spec.ParameterError)(nil); errors.As(err, &parameters) {
		reason = v1alpha1.ReasonParametersInvalid
	}
	return invalid(reason, fmt.Sprintf("MetricProfile %q: %v", p.Name, err))
}

func invalid(reason, message string) scaling.Sample {
	return scaling.Sample{Validity: scaling.Invalid, Reason: reason, Message: message}
}

// verdicts remembers what is wrong with each MetricProfile: to parse the same query for
// each of a fleet's evaluations would be most of their work. The zero value is ready.
type verdicts struct {
	mu     sync.Mutex
	byName map[string]verdict
}

// verdict is what is wrong with one generation of a profile; empty: nothing.
type verdict struct {
	uid        types.UID
	generation int64
	wrong      string
}

func (v *verdicts) of(p *v1alpha1.MetricProfile) string {
	v.mu.Lock()
	known, ok := v.byName[p.Name]
	v.mu.Unlock()
	if ok && known.uid == p.UID && known.generation == p.Generation {
		return known.wrong
	}
	known = verdict{uid: p.UID, generation: p.Generation}
	if errs := spec.ValidateMetricProfile(p); len(errs) > 0 {
		known.wrong = errs.ToAggregate().Error()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byName == nil {
		v.byName = map[string]verdict{}
	}
	v.byName[p.Name] = known
	return known.wrong
}

func (v *verdicts) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byName, name)
}
