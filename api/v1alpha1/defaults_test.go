package v1alpha1_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// bare is an AutoScaler that leaves open what can be left open.
func bare() *v1alpha1.AutoScaler {
	return &v1alpha1.AutoScaler{Spec: v1alpha1.AutoScalerSpec{
		TargetRef: v1alpha1.TargetReference{Name: "web"}, MinReplicas: 1, MaxReplicas: 5,
		Metrics: []v1alpha1.MetricSpec{
			{Name: "load", Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: "total", TargetPerReplica: "1"},
		},
	}}
}

func TestWhatIsLeftOpenGetsThePlatformsValueElseTheBuiltInOne(t *testing.T) {
	platform := v1alpha1.Defaults{
		PollIntervalSeconds: 30, MaxAgeSeconds: 90, ClaimPolicy: v1alpha1.ClaimWait,
		Behavior: v1alpha1.Behavior{
			ScaleUpMaxStep: new(int32(8)), ScaleDownMaxStep: new(int32(1)),
			ScaleUpRate:                   &v1alpha1.ScaleRate{MaxReplicas: 20, PeriodSeconds: 60},
			ScaleUpStabilizationSeconds:   new(int32(30)),
			ScaleDownStabilizationSeconds: new(int32(600)), ScaleDownMinIntervalSeconds: new(int32(60)),
			ToleranceUp: "0.1", ToleranceDown: "50m",
		},
	}
	window := func(s int32) *v1alpha1.Behavior {
		return &v1alpha1.Behavior{ScaleDownStabilizationSeconds: &s}
	}
	for name, tc := range map[string]struct {
		defaults v1alpha1.Defaults
		change   func(*v1alpha1.AutoScalerSpec)
		want     func(*v1alpha1.AutoScalerSpec)
	}{
		"nothing is configured": {
			want: func(s *v1alpha1.AutoScalerSpec) {
				s.PollIntervalSeconds, s.ClaimPolicy, s.Metrics[0].MaxAgeSeconds, s.Behavior = 15, "Reject", 60, window(300)
			},
		},
		"everything is configured": {
			defaults: platform,
			want: func(s *v1alpha1.AutoScalerSpec) {
				s.PollIntervalSeconds, s.ClaimPolicy, s.Metrics[0].MaxAgeSeconds, s.Behavior = 30, "Wait", 90, &platform.Behavior
			},
		},
		"a metric's own behavior gets the window and no other limit": {
			defaults: platform,
			change: func(s *v1alpha1.AutoScalerSpec) {
				s.Metrics[0].Behavior = &v1alpha1.Behavior{ScaleUpMaxStep: new(int32(2))}
			},
			want: func(s *v1alpha1.AutoScalerSpec) {
				s.PollIntervalSeconds, s.ClaimPolicy, s.Metrics[0].MaxAgeSeconds, s.Behavior = 30, "Wait", 90, &platform.Behavior
				s.Metrics[0].Behavior = window(600)
				s.Metrics[0].Behavior.ScaleUpMaxStep = new(int32(2))
			},
		},
		"a window of 0 is a value": {
			defaults: v1alpha1.Defaults{Behavior: *window(0)},
			want: func(s *v1alpha1.AutoScalerSpec) {
				s.PollIntervalSeconds, s.ClaimPolicy, s.Metrics[0].MaxAgeSeconds, s.Behavior = 15, "Reject", 60, window(0)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := bare()
			if tc.change != nil {
				tc.change(&a.Spec)
			}
			want := a.DeepCopy()
			tc.want(&want.Spec)

			v1alpha1.Default(a, tc.defaults)

			assert.Equal(t, want.Spec, a.Spec)
		})
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	d := v1alpha1.Defaults{Behavior: v1alpha1.Behavior{
		ScaleUpMaxStep: new(int32(8)), ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 20, PeriodSeconds: 60},
	}}
	a := bare()
	v1alpha1.Default(a, d)
	*a.Spec.Behavior.ScaleUpMaxStep, a.Spec.Behavior.ScaleUpRate.MaxReplicas = 1, 1
	assert.Equal(t, int32(8), *d.Behavior.ScaleUpMaxStep)
	assert.Equal(t, int32(20), d.Behavior.ScaleUpRate.MaxReplicas)
}

func TestAnObjectThatIsGoingOrCannotBeReadIsLeftAlone(t *testing.T) {
	going, unreadable := bare(), &v1alpha1.AutoScaler{DecodeError: "spec.minReplicas is no number"}
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, a := range map[string]*v1alpha1.AutoScaler{"going": going, "unreadable": unreadable} {
		t.Run(name, func(t *testing.T) {
			before := a.DeepCopy()
			v1alpha1.Default(a, v1alpha1.Defaults{})
			assert.Equal(t, before, a)
		})
	}
}

func optional(t *rapid.T, name string, low, high int32) *int32 {
	if !rapid.Bool().Draw(t, name+" is set") {
		return nil
	}
	return new(rapid.Int32Range(low, high).Draw(t, name))
}

func drawRate(t *rapid.T, name string) *v1alpha1.ScaleRate {
	if !rapid.Bool().Draw(t, name+" is set") {
		return nil
	}
	return &v1alpha1.ScaleRate{
		MaxReplicas:   rapid.Int32Range(1, 100000).Draw(t, name),
		PeriodSeconds: rapid.Int32Range(1, 3600).Draw(t, name+" period"),
	}
}

var tolerances = []string{"", "0", "0.1", "100m", "1"}

func drawBehavior(t *rapid.T, name string) *v1alpha1.Behavior {
	if !rapid.Bool().Draw(t, name) {
		return nil
	}
	return &v1alpha1.Behavior{
		ScaleUpMaxStep:                optional(t, name+".up", 1, 100000),
		ScaleUpRate:                   drawRate(t, name+".rate"),
		ScaleUpStabilizationSeconds:   optional(t, name+".up window", 0, 3600),
		ScaleDownMaxStep:              optional(t, name+".down", 1, 100000),
		ScaleDownStabilizationSeconds: optional(t, name+".window", 0, 86400),
		ScaleDownMinIntervalSeconds:   optional(t, name+".interval", 0, 86400),
		ToleranceUp:                   rapid.SampledFrom(tolerances).Draw(t, name+".tolerance up"),
		ToleranceDown:                 rapid.SampledFrom(tolerances).Draw(t, name+".tolerance down"),
	}
}

func zeroOr(p *int32) int32 {
	if p == nil {
		return 0
	}
	return *p
}

func TestDefaultingIsIdempotentKeepsWhatIsSetAndStaysValid(t *testing.T) {
	policies := []v1alpha1.ClaimPolicy{"", v1alpha1.ClaimReject, v1alpha1.ClaimWait}
	rapid.Check(t, func(t *rapid.T) {
		d := v1alpha1.Defaults{
			PollIntervalSeconds: zeroOr(optional(t, "platform poll", 5, 3600)),
			MaxAgeSeconds:       zeroOr(optional(t, "platform age", 1, 3600)),
			ClaimPolicy:         rapid.SampledFrom(policies).Draw(t, "platform policy"),
		}
		if b := drawBehavior(t, "platform behavior"); b != nil {
			d.Behavior = *b
		}
		require.Empty(t, v1alpha1.ValidateDefaults(field.NewPath("defaults"), d))
		a := bare()
		a.Spec.PollIntervalSeconds = zeroOr(optional(t, "poll", 5, 3600))
		a.Spec.ClaimPolicy = rapid.SampledFrom(policies).Draw(t, "policy")
		a.Spec.Behavior = drawBehavior(t, "behavior")
		a.Spec.Metrics[0].MaxAgeSeconds = zeroOr(optional(t, "age", 1, 3600))
		a.Spec.Metrics[0].Behavior = drawBehavior(t, "own behavior")
		before := a.DeepCopy()

		v1alpha1.Default(a, d)

		assert.Empty(t, v1alpha1.ValidateAutoScaler(a, v1alpha1.DefaultLimits))
		assert.NotZero(t, a.Spec.PollIntervalSeconds)
		assert.NotEmpty(t, a.Spec.ClaimPolicy)
		if before.Spec.PollIntervalSeconds != 0 {
			assert.Equal(t, before.Spec.PollIntervalSeconds, a.Spec.PollIntervalSeconds)
		}
		if before.Spec.ClaimPolicy != "" {
			assert.Equal(t, before.Spec.ClaimPolicy, a.Spec.ClaimPolicy)
		}
		assertKept(t, before.Spec.Behavior, a.Spec.Behavior)
		assert.Equal(t, before.Spec.Metrics[0].Behavior == nil, a.Spec.Metrics[0].Behavior == nil)
		again := a.DeepCopy()
		v1alpha1.Default(again, d)
		assert.Equal(t, a, again)
	})
}

// assertKept expects that whatever a behavior had set is what it was.
func assertKept(t assert.TestingT, before, after *v1alpha1.Behavior) {
	if before == nil {
		return
	}
	was, is := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for i := range was.NumField() {
		if !was.Field(i).IsZero() {
			assert.Equal(t, was.Field(i).Interface(), is.Field(i).Interface(), was.Type().Field(i).Name)
		}
	}
}

// Each field that a platform may give a default for has one, so that a field that is
// added later cannot be forgotten here.
func TestEveryFieldOfABehaviorHasAPlatformDefault(t *testing.T) {
	d := v1alpha1.Behavior{
		ScaleUpMaxStep: new(int32(8)), ScaleDownMaxStep: new(int32(1)),
		ScaleUpRate:                   &v1alpha1.ScaleRate{MaxReplicas: 20, PeriodSeconds: 60},
		ScaleUpStabilizationSeconds:   new(int32(30)),
		ScaleDownStabilizationSeconds: new(int32(600)), ScaleDownMinIntervalSeconds: new(int32(60)),
		ToleranceUp: "0.1", ToleranceDown: "50m",
	}
	a := bare()
	v1alpha1.Default(a, v1alpha1.Defaults{Behavior: d})
	for f, v := range reflect.ValueOf(*a.Spec.Behavior).Fields() {
		assert.False(t, v.IsZero(), f.Name)
	}
}

func TestDefaultsOutOfBoundsAreNamed(t *testing.T) {
	errs := v1alpha1.ValidateDefaults(field.NewPath("defaults"), v1alpha1.Defaults{
		PollIntervalSeconds: 4, MaxAgeSeconds: 3601, ClaimPolicy: "Perhaps",
		Behavior: v1alpha1.Behavior{
			ScaleUpMaxStep: new(int32(0)), ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 1},
			ScaleDownStabilizationSeconds: new(int32(86401)), ToleranceDown: "10%",
		},
	})
	var fields []string
	for _, err := range errs {
		fields = append(fields, err.Field)
	}
	assert.Equal(t, []string{
		"defaults.pollIntervalSeconds", "defaults.maxAgeSeconds", "defaults.claimPolicy",
		"defaults.behavior.scaleUpMaxStep", "defaults.behavior.scaleUpRate.periodSeconds",
		"defaults.behavior.scaleDownStabilizationSeconds", "defaults.behavior.toleranceDown",
	}, fields)
}
