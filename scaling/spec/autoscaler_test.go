package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func TestTheTimesOfSchedulesArePartOfTheValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.AutoScaler)
		want   []string
	}{
		"usual ones":  {func(*v1alpha1.AutoScaler) {}, nil},
		"a zone":      {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules[0].TimeZone = "Europe/Berlin" }, nil},
		"a bad start": {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules[1].Start = "@daily" }, []string{`spec.schedules[1].start: Invalid value: "@daily": is a short form`}},
		"a day of no year": {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules[1].Start = "0 0 30 2 *" }, []string{
			`spec.schedules[1].start: Invalid value: "0 0 30 2 *": no year has such a day, so the schedule would never start`}},
		"a bad zone": {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules[0].TimeZone = "Berlin" }, []string{
			`spec.schedules[0].timeZone: Invalid value: "Berlin": is no time zone of the IANA database, as "Europe/Berlin" or "UTC"`}},
		"all of them, after what else is wrong": {func(a *v1alpha1.AutoScaler) {
			a.Spec.MinReplicas = 0
			a.Spec.Schedules[0].Start, a.Spec.Schedules[0].TimeZone, a.Spec.Schedules[1].Start = "x", "y", "z"
		}, []string{"spec.minReplicas", "spec.schedules[0].start", "spec.schedules[0].timeZone", "spec.schedules[1].start"}},
		"what has been said once": {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules[0].Start = "" }, []string{"spec.schedules[0].start: Required"}},
		"a long one, not repeated": {func(a *v1alpha1.AutoScaler) {
			a.Spec.Schedules[0].Start, a.Spec.Schedules[0].TimeZone = strings.Repeat("0 ", 5000), strings.Repeat("A", 5000)
		}, []string{"spec.schedules[0].start: ", "spec.schedules[0].timeZone: "}},
		"more than there may be": {func(a *v1alpha1.AutoScaler) { a.Spec.Schedules = make([]v1alpha1.Schedule, 5000) }, []string{"spec.schedules: Too many"}},
		"an undecodable object":  {func(a *v1alpha1.AutoScaler) { a.DecodeError = "maxReplicas is no number" }, []string{"spec: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := scheduled(daily("a", floorOf(3)), daily("b", capOf(30)))
			tc.change(a)

			errs := ValidateAutoScaler(a, v1alpha1.DefaultLimits)

			require.Len(t, errs, len(tc.want), "%v", errs)
			for i, err := range errs {
				assert.Contains(t, err.Error(), tc.want[i])
				assert.Less(t, len(err.Error()), 500)
			}
		})
	}
}
