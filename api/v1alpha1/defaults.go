package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Defaults are the platform's values, from the operator's configuration, for what an
// AutoScaler leaves open. What is not set here either has the built-in default, or
// none.
//
// +kubebuilder:object:generate=false
type Defaults struct {
	// PollIntervalSeconds is for spec.pollIntervalSeconds, 5 to 3600; 0: the built-in
	// default.
	PollIntervalSeconds int32
	// MaxAgeSeconds is for maxAgeSeconds of every metric, 1 to 3600; 0: the built-in
	// default.
	MaxAgeSeconds int32
	// ClaimPolicy is for spec.claimPolicy; empty: Reject.
	ClaimPolicy ClaimPolicy
	// Behavior is for the single fields of the common behavior.
	Behavior Behavior
}

// Default sets what an AutoScaler leaves open. It changes nothing that is set, so a
// second call changes nothing; and nothing of an object that could not be decoded or
// is being deleted.
//
// A metric's own behavior replaces the common one as a whole. Of the platform's
// limits it therefore gets the scale-down window alone, without which there is no
// behavior, and keeps the freedom that whoever wrote it chose.
func Default(a *AutoScaler, d Defaults) {
	if a.DecodeError != "" || a.DeletionTimestamp != nil {
		return
	}
	s, window := &a.Spec, d.window()
	s.PollIntervalSeconds = cmp.Or(s.PollIntervalSeconds, d.PollIntervalSeconds, DefaultPollIntervalSeconds)
	s.ClaimPolicy = cmp.Or(s.ClaimPolicy, d.ClaimPolicy, ClaimReject)
	for i := range s.Metrics {
		m := &s.Metrics[i]
		m.MaxAgeSeconds = cmp.Or(m.MaxAgeSeconds, d.MaxAgeSeconds, DefaultMaxAgeSeconds)
		if m.Behavior != nil {
			setIfNil(&m.Behavior.ScaleDownStabilizationSeconds, &window)
		}
	}
	if s.Behavior == nil {
		s.Behavior = &Behavior{}
	}
	defaultBehavior(s.Behavior, &d.Behavior, window)
}

func defaultBehavior(b, d *Behavior, window int32) {
	setIfNil(&b.ScaleUpMaxStep, d.ScaleUpMaxStep)
	setIfNil(&b.ScaleUpRate, d.ScaleUpRate)
	setIfNil(&b.ScaleUpStabilizationSeconds, d.ScaleUpStabilizationSeconds)
	setIfNil(&b.ScaleDownMaxStep, d.ScaleDownMaxStep)
	setIfNil(&b.ScaleDownStabilizationSeconds, &window)
	setIfNil(&b.ScaleDownMinIntervalSeconds, d.ScaleDownMinIntervalSeconds)
	b.ToleranceUp = cmp.Or(b.ToleranceUp, d.ToleranceUp)
	b.ToleranceDown = cmp.Or(b.ToleranceDown, d.ToleranceDown)
}

// window is the length of the scale-down window. 0 is a value: no window.
func (d Defaults) window() int32 {
	if w := d.Behavior.ScaleDownStabilizationSeconds; w != nil {
		return *w
	}
	return DefaultScaleDownStabilizationSeconds
}

// setIfNil copies the value, so that no two objects share it.
func setIfNil[T any](to **T, value *T) {
	if *to == nil && value != nil {
		*to = new(*value)
	}
}

// ValidateDefaults holds the platform's values to the bounds of the fields that they
// are for. The paths are those of an AutoScaler's spec, below path.
func ValidateDefaults(path *field.Path, d Defaults) field.ErrorList {
	errs := inRangeIfSet(path.Child("pollIntervalSeconds"), d.PollIntervalSeconds, 5, 3600)
	errs = append(errs, inRangeIfSet(path.Child("maxAgeSeconds"), d.MaxAgeSeconds, 1, 3600)...)
	errs = append(errs, validateClaimPolicy(path.Child("claimPolicy"), d.ClaimPolicy)...)
	return append(errs, validateBehavior(path.Child("behavior"), &d.Behavior)...)
}
