package config

import (
	"cmp"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Defaults is the section `defaults`: what an AutoScaler gets where it leaves
// something open. What is not set here has the built-in default, or none.
type Defaults struct {
	// PollIntervalSeconds, 5 to 3600; built in: 15.
	PollIntervalSeconds *int32 `yaml:"poll_interval_seconds"`
	// MaxAgeSeconds of a metric, 1 to 3600; built in: 60.
	MaxAgeSeconds *int32 `yaml:"max_age_seconds"`
	// ClaimPolicy, Reject or Wait; built in: Reject.
	ClaimPolicy *v1alpha1.ClaimPolicy `yaml:"claim_policy"`
	// Behavior holds defaults of the common behavior's single fields.
	Behavior struct {
		// ScaleUpMaxStep, 1 to 100000; built in: no limit.
		ScaleUpMaxStep *int32 `yaml:"scale_up_max_step"`
		// ScaleUpRate, of 1 to 100000 in 1 to 3600 s; built in: no limit.
		ScaleUpRate *struct {
			MaxReplicas   int32 `yaml:"max_replicas"`
			PeriodSeconds int32 `yaml:"period_seconds"`
		} `yaml:"scale_up_rate"`
		// ScaleUpStabilizationSeconds, 0 to 3600; built in: none.
		ScaleUpStabilizationSeconds *int32 `yaml:"scale_up_stabilization_seconds"`
		// ScaleDownMaxStep, 1 to 100000; built in: no limit.
		ScaleDownMaxStep *int32 `yaml:"scale_down_max_step"`
		// ScaleDownStabilizationSeconds, 0 to 86400; built in: 300.
		ScaleDownStabilizationSeconds *int32 `yaml:"scale_down_stabilization_seconds"`
		// ScaleDownMinIntervalSeconds, 0 to 86400; built in: none.
		ScaleDownMinIntervalSeconds *int32 `yaml:"scale_down_min_interval_seconds"`
		// ToleranceUp and ToleranceDown, shares of 0 to 1 in quotes; built in: none.
		ToleranceUp   *string `yaml:"tolerance_up"`
		ToleranceDown *string `yaml:"tolerance_down"`
	} `yaml:"behavior"`
}

// outOfBounds stands for a 0 or "" that was written down, which must not pass for
// "not set".
const outOfBounds = -1

// Values are the section's values, within the bounds of an AutoScaler's fields.
// The error names each field that is not.
func (c *Defaults) Values() (v1alpha1.Defaults, error) {
	b := &c.Behavior
	d := v1alpha1.Defaults{
		PollIntervalSeconds: written(c.PollIntervalSeconds, outOfBounds),
		MaxAgeSeconds:       written(c.MaxAgeSeconds, outOfBounds),
		ClaimPolicy:         written(c.ClaimPolicy, `""`),
		Behavior: v1alpha1.Behavior{
			ScaleUpMaxStep:                b.ScaleUpMaxStep,
			ScaleUpRate:                   (*v1alpha1.ScaleRate)(b.ScaleUpRate),
			ScaleUpStabilizationSeconds:   b.ScaleUpStabilizationSeconds,
			ScaleDownMaxStep:              b.ScaleDownMaxStep,
			ScaleDownStabilizationSeconds: b.ScaleDownStabilizationSeconds,
			ScaleDownMinIntervalSeconds:   b.ScaleDownMinIntervalSeconds,
			ToleranceUp:                   written(b.ToleranceUp, `""`),
			ToleranceDown:                 written(b.ToleranceDown, `""`),
		},
	}
	if errs := v1alpha1.ValidateDefaults(field.NewPath("defaults"), d); len(errs) > 0 {
		for _, err := range errs {
			err.Field = snakeCase(err.Field)
		}
		return v1alpha1.Defaults{}, errs.ToAggregate()
	}
	return d, nil
}

// written is the value, the zero value where there is none, and instead where the
// zero value was written down.
func written[T comparable](value *T, instead T) T {
	var zero T
	if value == nil {
		return zero
	}
	return cmp.Or(*value, instead)
}

var upperCase = regexp.MustCompile("[A-Z]")

// snakeCase turns the path of an API field into that of the configuration.
func snakeCase(path string) string {
	return upperCase.ReplaceAllStringFunc(path, func(letter string) string { return "_" + strings.ToLower(letter) })
}

// Claims is the section `claims`.
type Claims struct {
	// RequirePermission: whoever takes over a replica count that another AutoScaler
	// holds or held needs the verb "claim" on the Deployment's ScaleBinding.
	RequirePermission bool `yaml:"require_permission"`
}
