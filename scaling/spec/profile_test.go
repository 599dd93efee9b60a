package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAProfilesQueryIsPartOfItsValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.MetricProfileSpec)
		want   []string
	}{
		"the usual profile":                     {func(*v1alpha1.MetricProfileSpec) {}, nil},
		"an hour is allowed where nothing is":   {func(s *v1alpha1.MetricProfileSpec) { s.Query, s.MaxRangeSeconds = "rate(up[1h])", 0 }, nil},
		"and no more":                           {func(s *v1alpha1.MetricProfileSpec) { s.Query, s.MaxRangeSeconds = "rate(up[3601])", 0 }, []string{"spec.query: maxRangeSeconds allows 3600 s"}},
		"the profile's own bound":               {func(s *v1alpha1.MetricProfileSpec) { s.Query, s.MaxRangeSeconds = "rate(up[2m])", 60 }, []string{"spec.query: maxRangeSeconds allows 60 s"}},
		"a namespace matcher where it is asked": {func(s *v1alpha1.MetricProfileSpec) { s.Query, s.RequireNamespaceMatcher = "up", true }, []string{"spec.query: lacks namespace=$namespace"}},
		"all errors, in the order of the fields": {func(s *v1alpha1.MetricProfileSpec) {
			s.Endpoint, s.AllowedNamespaces, s.TimeoutSeconds, s.Query = "Main", nil, 61, "up[1m]"
		}, []string{"spec.endpoint: ", "spec.allowedNamespaces: ", "spec.timeoutSeconds: ", "spec.query: the result is a range"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := builders.MakeMetricProfile("total").Obj()
			tc.change(&p.Spec)

			errs := ValidateMetricProfile(p)

			require.Len(t, errs, len(tc.want), "%v", errs)
			for i, err := range errs {
				assert.Contains(t, tc.want[i], err.Field+": ")
				assert.Contains(t, err.Field+": "+err.Detail, tc.want[i][len(err.Field)+2:])
			}
		})
	}
}

func TestAnUndecodableProfileHasThatOneError(t *testing.T) {
	p := builders.MakeMetricProfile("total").Obj()
	p.Spec, p.DecodeError = v1alpha1.MetricProfileSpec{}, "timeoutSeconds is no number"
	assert.Len(t, ValidateMetricProfile(p), 1)
}
