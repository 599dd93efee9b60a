package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// The bounds are 2 and 20, and the poll interval is 15 s.
func TestWhatASpecHardlyMeansIsSaid(t *testing.T) {
	n := func(v int32) *int32 { return &v }
	behavior := func(b v1alpha1.Behavior) func(*v1alpha1.AutoScalerSpec) {
		return func(s *v1alpha1.AutoScalerSpec) { s.Behavior = &b }
	}
	schedule := func(s v1alpha1.Schedule) func(*v1alpha1.AutoScalerSpec) {
		return func(spec *v1alpha1.AutoScalerSpec) { spec.Schedules = []v1alpha1.Schedule{s} }
	}
	fallback := func(floor int32) func(*v1alpha1.AutoScalerSpec) {
		return func(s *v1alpha1.AutoScalerSpec) {
			s.Fallback = &v1alpha1.Fallback{FloorReplicas: floor, AfterSeconds: 60}
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.AutoScalerSpec)
		want   string // "": nothing is said
	}{
		"an end without a pause":              {func(s *v1alpha1.AutoScalerSpec) { s.PausedUntil = &metav1.Time{Time: now} }, "spec.pausedUntil: it has no effect unless"},
		"a reason without a pause":            {func(s *v1alpha1.AutoScalerSpec) { s.PauseReason = "migration" }, "spec.pauseReason: it has no effect unless"},
		"a reason with a pause":               {func(s *v1alpha1.AutoScalerSpec) { s.Paused, s.PauseReason = true, "migration" }, ""},
		"bounds that allow one count":         {func(s *v1alpha1.AutoScalerSpec) { s.MaxReplicas = 2 }, "spec.maxReplicas: it equals minReplicas"},
		"a schedule that moves such bounds":   {func(s *v1alpha1.AutoScalerSpec) { s.MaxReplicas = 2; schedule(v1alpha1.Schedule{MaxReplicas: n(9)})(s) }, ""},
		"an up-window shorter than a poll":    {behavior(v1alpha1.Behavior{ScaleUpStabilizationSeconds: n(14)}), "spec.behavior.scaleUpStabilizationSeconds: 14 s is shorter than the poll interval of 15 s, so a single high sample scales up"},
		"an up-window of a poll":              {behavior(v1alpha1.Behavior{ScaleUpStabilizationSeconds: n(15)}), ""},
		"no up-window":                        {behavior(v1alpha1.Behavior{ScaleUpStabilizationSeconds: n(0)}), ""},
		"a tolerance of half the load":        {behavior(v1alpha1.Behavior{ToleranceUp: "500m"}), "spec.behavior.toleranceUp: 500m lets the load grow to 1.5 times what the replicas carry"},
		"a tolerance below that":              {behavior(v1alpha1.Behavior{ToleranceUp: "0.499", ToleranceDown: "0.9"}), ""},
		"a tolerance of the loss of all load": {behavior(v1alpha1.Behavior{ToleranceDown: "1.0"}), "spec.behavior.toleranceDown: 1.0 tolerates the loss of all load"},
		"a metric's own tolerance":            {func(s *v1alpha1.AutoScalerSpec) { s.Metrics[0].Behavior = &v1alpha1.Behavior{ToleranceUp: "1"} }, "spec.metrics[0].behavior.toleranceUp: 1 lets the load grow to 2 times"},
		"a fallback to the minimum":           {fallback(2), "spec.fallback.floorReplicas: it is not above minReplicas (2)"},
		"a fallback above it":                 {fallback(3), ""},
		"a floor that is there already":       {schedule(v1alpha1.Schedule{MinReplicas: n(2)}), "spec.schedules[0].minReplicas: it is not above spec.minReplicas (2)"},
		"a floor above it":                    {schedule(v1alpha1.Schedule{MinReplicas: n(3)}), ""},
		"a floor that lifts the cap":          {schedule(v1alpha1.Schedule{MinReplicas: n(21)}), "spec.schedules[0].minReplicas: it is above spec.maxReplicas (20), which is lifted"},
		"a floor with a cap of its own":       {schedule(v1alpha1.Schedule{MinReplicas: n(21), MaxReplicas: n(40)}), ""},
		"a floor that a freeze forbids":       {schedule(v1alpha1.Schedule{MinReplicas: n(9), Freeze: v1alpha1.FreezeAll}), "spec.schedules[0].minReplicas: the freeze forbids"},
		"a floor and no scale-down":           {schedule(v1alpha1.Schedule{MinReplicas: n(9), Freeze: v1alpha1.FreezeScaleDown}), ""},
		"a cap that is there already":         {schedule(v1alpha1.Schedule{MaxReplicas: n(20)}), "spec.schedules[0].maxReplicas: it equals spec.maxReplicas"},
		"a cap below the minimum":             {schedule(v1alpha1.Schedule{MaxReplicas: n(1)}), "spec.schedules[0].maxReplicas: it is below spec.minReplicas; the count stays at 2"},
		"a cap that a freeze forbids":         {schedule(v1alpha1.Schedule{MaxReplicas: n(9), Freeze: v1alpha1.FreezeScaleDown}), "spec.schedules[0].maxReplicas: the freeze forbids the move down"},
		"a cap":                               {schedule(v1alpha1.Schedule{MaxReplicas: n(9)}), ""},
		"a freeze":                            {schedule(v1alpha1.Schedule{Freeze: v1alpha1.FreezeAll}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := builders.MakeAutoScaler("ns", "web").Obj()
			tc.change(&a.Spec)

			said := specWarnings(a, now)

			if tc.want == "" {
				assert.Empty(t, said)
				return
			}
			require.Len(t, said, 1, "%q", said)
			assert.Contains(t, said[0], tc.want)
			assert.LessOrEqual(t, len(said[0]), maxWarningLength, "it is not cut")
		})
	}
}

func TestAProfileThatTakesLostSeriesForAnIdleServiceIsWarnedOf(t *testing.T) {
	v := &MetricProfileValidator{Endpoints: []string{"main"}}
	p := builders.MakeMetricProfile("total").Obj()

	warnings, err := v.ValidateCreate(t.Context(), p)
	require.NoError(t, err)
	assert.Empty(t, warnings)

	zero := p.DeepCopy()
	zero.Spec.OnEmpty = v1alpha1.EmptyZero
	warnings, err = v.ValidateUpdate(t.Context(), p, zero)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "spec.onEmpty: with Zero")

	zero.Spec.Freshness = &v1alpha1.Freshness{Query: "avg(up{namespace=$namespace})", MinHealthyShare: "0.8"}
	warnings, err = v.ValidateCreate(t.Context(), zero)
	require.NoError(t, err)
	assert.Empty(t, warnings)
}
