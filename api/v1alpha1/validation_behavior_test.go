package v1alpha1

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// assertErrors expects these errors, each as "field: part of the message", in order.
func assertErrors(t *testing.T, want []string, errs field.ErrorList) {
	t.Helper()
	require.Len(t, errs, len(want), "%v", errs)
	for i := range want {
		assert.Contains(t, errs[i].Field+": "+errs[i].Detail, want[i])
	}
}

func TestABehaviorIsHeldToItsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		behavior Behavior
		want     []string
	}{
		"all at the lower ends": {Behavior{
			ScaleUpMaxStep: number(1), ScaleUpRate: &ScaleRate{1, 1}, ScaleUpStabilizationSeconds: number(0), ScaleDownMaxStep: number(1),
			ScaleDownStabilizationSeconds: number(0), ScaleDownMinIntervalSeconds: number(0), ToleranceUp: "0", ToleranceDown: "0m",
		}, nil},
		"all at the upper ends": {Behavior{
			ScaleUpMaxStep: number(100000), ScaleUpRate: &ScaleRate{100000, 3600}, ScaleUpStabilizationSeconds: number(3600), ScaleDownMaxStep: number(100000),
			ScaleDownStabilizationSeconds: number(86400), ScaleDownMinIntervalSeconds: number(86400), ToleranceUp: "1", ToleranceDown: "1.000000",
		}, nil},
		"a rate needs both numbers": {Behavior{ScaleUpRate: &ScaleRate{}}, []string{
			"spec.behavior.scaleUpRate.maxReplicas: must be from 1 to 100000", "spec.behavior.scaleUpRate.periodSeconds: must be from 1 to 3600",
		}},
		"FC-15 an up-window is at most an hour": {Behavior{ScaleUpStabilizationSeconds: number(3601)}, []string{"spec.behavior.scaleUpStabilizationSeconds: must be from 0 to 3600"}},
		"FC-15 an up-window is not negative":    {Behavior{ScaleUpStabilizationSeconds: number(-1)}, []string{"spec.behavior.scaleUpStabilizationSeconds: must be from 0 to 3600"}},
		"FC-15 a period is at most an hour":     {Behavior{ScaleUpRate: &ScaleRate{1, 3601}}, []string{"spec.behavior.scaleUpRate.periodSeconds: must be from 1 to 3600"}},
		"FC-14 a tolerance is a share":          {Behavior{ToleranceUp: "10%"}, []string{"spec.behavior.toleranceUp: must be a share from 0 to 1"}},
		"FC-14 a tolerance is at most 1":        {Behavior{ToleranceDown: "1.1"}, []string{"spec.behavior.toleranceDown: must be a share from 0 to 1"}},
		"FC-13 a tolerance is short":            {Behavior{ToleranceDown: "1e-2147483648"}, []string{"spec.behavior.toleranceDown: may not be more than 8 bytes"}},
		"all in the order of the fields": {Behavior{
			ScaleUpMaxStep: number(0), ScaleUpRate: &ScaleRate{1, 0}, ScaleUpStabilizationSeconds: number(-1), ScaleDownMaxStep: number(0),
			ScaleDownStabilizationSeconds: number(-1), ScaleDownMinIntervalSeconds: number(-1), ToleranceUp: "x", ToleranceDown: "x",
		}, []string{"scaleUpMaxStep", "scaleUpRate.periodSeconds", "scaleUpStabilizationSeconds", "scaleDownMaxStep", "scaleDownStabilizationSeconds", "scaleDownMinIntervalSeconds", "toleranceUp", "toleranceDown"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := validAutoScaler()
			a.Spec.Behavior = &tc.behavior
			assertErrors(t, tc.want, ValidateAutoScaler(a, DefaultLimits))
		})
	}
}

func TestAFallbackIsHeldToItsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		fallback Fallback
		want     []string
	}{
		"within the bounds":        {Fallback{20, 15}, nil},
		"below minReplicas":        {Fallback{1, 86400}, nil},
		"above maxReplicas":        {Fallback{21, 60}, []string{"spec.fallback.floorReplicas: must be at most maxReplicas (20)"}},
		"no floor and no time":     {Fallback{}, []string{"spec.fallback.floorReplicas: must be from 1", "spec.fallback.afterSeconds: must be from 15 to 86400"}},
		"FC-15 at once":            {Fallback{5, 14}, []string{"spec.fallback.afterSeconds: must be from 15"}},
		"FC-15 later than a day":   {Fallback{5, 86401}, []string{"spec.fallback.afterSeconds: must be from 15"}},
		"past every bound at once": {Fallback{100001, -1}, []string{"spec.fallback.floorReplicas: must be from 1 to 100000", "spec.fallback.afterSeconds: "}},
	} {
		t.Run(name, func(t *testing.T) {
			a := validAutoScaler()
			a.Spec.Fallback = &tc.fallback
			assertErrors(t, tc.want, ValidateAutoScaler(a, DefaultLimits))
		})
	}
}

func TestASchedulesTextsAndNumbersAreHeldToTheirBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Schedule)
		want   []string
	}{
		"a plain one":                          {func(*Schedule) {}, nil},
		"a freeze alone":                       {func(s *Schedule) { s.MinReplicas, s.Freeze = nil, FreezeAll }, nil},
		"a cap above the spec's":               {func(s *Schedule) { s.MaxReplicas = number(1000) }, nil},
		"a floor above the spec's cap":         {func(s *Schedule) { s.MinReplicas = number(30) }, nil},
		"nothing that it does":                 {func(s *Schedule) { s.MinReplicas = nil }, []string{"spec.schedules[0]: set minReplicas, maxReplicas or freeze"}},
		"a cap below its floor":                {func(s *Schedule) { s.MaxReplicas = number(4) }, []string{"spec.schedules[0].maxReplicas: must be at least the schedule's minReplicas (5)"}},
		"a cap above the platform's bound":     {func(s *Schedule) { s.MaxReplicas = number(1001) }, []string{"spec.schedules[0].maxReplicas: the platform allows at most 1000"}},
		"a floor above the platform's bound":   {func(s *Schedule) { s.MinReplicas = number(1001) }, []string{"spec.schedules[0].minReplicas: the platform allows at most 1000"}},
		"a floor of 0":                         {func(s *Schedule) { s.MinReplicas = number(0) }, []string{"spec.schedules[0].minReplicas: must be from 1 to 100000"}},
		"a freeze of another kind":             {func(s *Schedule) { s.Freeze = "ScaleUp" }, []string{"spec.schedules[0].freeze: "}},
		"no name":                              {func(s *Schedule) { s.Name = "" }, []string{"spec.schedules[0].name: "}},
		"a name that is no label":              {func(s *Schedule) { s.Name = "Black Friday" }, []string{"spec.schedules[0].name: "}},
		"no start":                             {func(s *Schedule) { s.Start = "" }, []string{"spec.schedules[0].start: say when it begins"}},
		"a start of many characters":           {func(s *Schedule) { s.Start = strings.Repeat("1", 101) }, []string{"spec.schedules[0].start: must have at most 100 characters"}},
		"a zone of many characters":            {func(s *Schedule) { s.TimeZone = strings.Repeat("a", 65) }, []string{"spec.schedules[0].timeZone: must have at most 64 characters"}},
		"FC-15 a duration below a minute":      {func(s *Schedule) { s.DurationSeconds = 59 }, []string{"spec.schedules[0].durationSeconds: must be from 60 to 604800"}},
		"FC-15 a duration of more than a week": {func(s *Schedule) { s.DurationSeconds = 604801 }, []string{"spec.schedules[0].durationSeconds: must be from 60 to 604800"}},
		"FC-15 a negative duration":            {func(s *Schedule) { s.DurationSeconds = -3600 }, []string{"spec.schedules[0].durationSeconds: must be from 60 to 604800"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := validAutoScaler()
			a.Spec.Schedules = []Schedule{{Name: "morning", Start: "0 8 * * *", DurationSeconds: 3600, MinReplicas: number(5)}}
			tc.change(&a.Spec.Schedules[0])
			assertErrors(t, tc.want, ValidateAutoScaler(a, DefaultLimits))
		})
	}
}

func TestSchedulesHaveNamesOfTheirOwnAndAreFew(t *testing.T) {
	a := validAutoScaler()
	s := Schedule{Name: "morning", Start: "0 8 * * *", DurationSeconds: 3600, Freeze: FreezeAll}
	a.Spec.Schedules = []Schedule{s, s}
	assertErrors(t, []string{"spec.schedules[1].name: "}, ValidateAutoScaler(a, DefaultLimits))
	a.Spec.Schedules = make([]Schedule, MaxSchedules+1)
	assertErrors(t, []string{"spec.schedules: "}, ValidateAutoScaler(a, DefaultLimits))
}

func TestParametersHaveNamesAndValues(t *testing.T) {
	many := map[string]string{}
	for i := range MaxParameters + 1 {
		many["p"+strings.Repeat("x", i)] = "v"
	}
	for name, tc := range map[string]struct {
		parameters map[string]string
		want       []string
	}{
		"plain ones":               {map[string]string{"queue_name": "orders", "q2": "ä"}, nil},
		"as long as can be":        {map[string]string{strings.Repeat("a", 63): strings.Repeat("ä", 253)}, nil},
		"too many":                 {many, []string{"spec.metrics[0].parameters: must have at most 16 items"}},
		"no value":                 {map[string]string{"queue": ""}, []string{"spec.metrics[0].parameters[queue]: must have 1 to 253 characters"}},
		"too long a value":         {map[string]string{"queue": strings.Repeat("a", 254)}, []string{"spec.metrics[0].parameters[queue]: must have 1 to 253 characters"}},
		"too long a name":          {map[string]string{strings.Repeat("a", 64): "v"}, []string{"spec.metrics[0].parameters: "}},
		"names that are none":      {map[string]string{"Queue": "v", "1st": "v", "": "v", "a-b": "v"}, []string{`parameters: "" is no name`, `parameters: "1st" is`, `parameters: "Queue" is`, `parameters: "a-b" is`}},
		"a name that never ends":   {map[string]string{strings.Repeat("A", 1<<20): "v"}, []string{"is no name of a parameter"}},
		"FC-10 a name with quotes": {map[string]string{`"} or vector(1e9) #`: "v"}, []string{"is no name of a parameter"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := validAutoScaler()
			a.Spec.Metrics[0].Parameters = tc.parameters
			errs := ValidateAutoScaler(a, DefaultLimits)
			assertErrors(t, tc.want, errs)
			for _, err := range errs {
				assert.Less(t, len(err.Error()), 512, "an error does not repeat what a user made long")
			}
		})
	}
}

func TestAPauseReasonIsShort(t *testing.T) {
	a := validAutoScaler()
	a.Spec.PauseReason = strings.Repeat("ä", MaxPauseReasonLength)
	assert.Empty(t, ValidateAutoScaler(a, DefaultLimits))
	a.Spec.PauseReason += "ä"
	assertErrors(t, []string{"spec.pauseReason: must have at most 256 characters"}, ValidateAutoScaler(a, DefaultLimits))
}
