package spec

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

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
		"an arrival rate of its own": {func(s *v1alpha1.MetricProfileSpec) {
			s.Semantics, s.ArrivalRateQuery, s.ClearanceSeconds = v1alpha1.SemanticsBacklog, "up[1m]", 60
		}, []string{"spec.arrivalRateQuery: the result is a range"}},
		"the bound of the range holds for it": {func(s *v1alpha1.MetricProfileSpec) {
			s.Semantics, s.ArrivalRateQuery, s.ClearanceSeconds = v1alpha1.SemanticsBacklog, "rate(up[2h])", 60
		}, []string{"spec.arrivalRateQuery: maxRangeSeconds allows 3600 s"}},
		"a freshness query of its own": {func(s *v1alpha1.MetricProfileSpec) {
			s.Freshness = &v1alpha1.Freshness{Query: "up[1m]", MinHealthyShare: "0.8"}
		}, []string{"spec.freshness.query: the result is a range"}},
		"an undeclared parameter": {func(s *v1alpha1.MetricProfileSpec) { s.Query = "sum(up{queue=$queue})" }, []string{"spec.query: unknown placeholder $queue"}},
		"a declared one": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Parameters = "sum(up{queue=$queue})", []v1alpha1.ProfileParameter{{Name: "queue", Pattern: "[a-z]+", Default: "orders"}}
		}, nil},
		"a pattern that is none": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Parameters = "sum(up{queue=$queue})", []v1alpha1.ProfileParameter{{Name: "queue", Pattern: "a)|(b"}}
		}, []string{"spec.parameters[0].pattern: unexpected ): `a)|(b`"}},
		"a pattern that would fill the memory": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Parameters = "sum(up{queue=$queue})", []v1alpha1.ProfileParameter{{Name: "queue", Pattern: strings.Repeat("x{1000}", 36)}}
		}, []string{"spec.parameters[0].pattern: add up to more than 1000"}},
		"a default that does not match": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Parameters = "sum(up{queue=$queue})", []v1alpha1.ProfileParameter{{Name: "queue", Pattern: "[a-z]+", Default: "Orders"}}
		}, []string{"spec.parameters[0].default: the whole value must match [a-z]+"}},
		"parameters that no query has": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query = "sum(up{queue=$queue}) # $shard"
			s.Parameters = []v1alpha1.ProfileParameter{{Name: "tier", Pattern: "a"}, {Name: "queue", Pattern: "a"}, {Name: "shard", Pattern: "a"}}
		}, []string{"spec.parameters[0].name: no query has $tier", "spec.parameters[2].name: no query has $shard"}},
		"parameters of one query each": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Semantics, s.ClearanceSeconds = "sum(up{queue=$queue})", v1alpha1.SemanticsBacklog, 60
			s.ArrivalRateQuery = "sum(in{tier=$tier})"
			s.Freshness = &v1alpha1.Freshness{Query: "avg(up{shard=$shard})", MinHealthyShare: "0.8"}
			s.Parameters = []v1alpha1.ProfileParameter{{Name: "tier", Pattern: "a"}, {Name: "queue", Pattern: "a"}, {Name: "shard", Pattern: "a"}}
		}, nil},
		"a parameter whose query cannot be read": {func(s *v1alpha1.MetricProfileSpec) {
			s.Query, s.Parameters = `sum(up{queue="$queue"})`, []v1alpha1.ProfileParameter{{Name: "queue", Pattern: "a"}}
		}, []string{"spec.query: placeholder $queue stands inside a string"}},
		"a bound of series where one is asked for": {func(s *v1alpha1.MetricProfileSpec) { s.MaxSeries = 5 }, []string{"spec.maxSeries: leave it out"}},
		"the same, in as many words":               {func(s *v1alpha1.MetricProfileSpec) { s.Series, s.MaxSeries = v1alpha1.SeriesSingle, 5 }, []string{"spec.maxSeries: leave it out"}},
		"a bound of series where many are": {func(s *v1alpha1.MetricProfileSpec) {
			s.Series, s.Query, s.MaxSeries = v1alpha1.SeriesPerTarget, "sum by (namespace, deployment) (up)", 5
		}, nil},
		"a series per target": {func(s *v1alpha1.MetricProfileSpec) {
			s.Series, s.Query = v1alpha1.SeriesPerTarget, "sum by (namespace, deployment) (up)"
		}, nil},
		"a series per target, by labels of its own": {func(s *v1alpha1.MetricProfileSpec) {
			s.Series, s.SeriesLabels, s.Query = v1alpha1.SeriesPerTarget, &v1alpha1.SeriesLabels{Target: "app"}, "sum by (namespace, deployment) (up)"
		}, []string{`spec.query: the result has no label "app"`}},
		"a placeholder in a series per target": {func(s *v1alpha1.MetricProfileSpec) { s.Series = v1alpha1.SeriesPerTarget }, []string{"spec.query: so $namespace has no value in it"}},
		"and in its freshness": {func(s *v1alpha1.MetricProfileSpec) {
			s.Series, s.Query = v1alpha1.SeriesPerTarget, "sum by (namespace, deployment) (up)"
			s.Freshness = &v1alpha1.Freshness{Query: "avg(up{namespace=$namespace})", MinHealthyShare: "0.8"}
		}, []string{"spec.freshness.query: so $namespace has no value in it"}},
		"a namespace matcher where none can be": {func(s *v1alpha1.MetricProfileSpec) {
			s.Series, s.Query, s.RequireNamespaceMatcher = v1alpha1.SeriesPerTarget, "sum by (namespace, deployment) (up)", true
		}, []string{"spec.requireNamespaceMatcher: can have no namespace=$namespace; leave this out"}},
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

func TestAStoredProfileIsValidatedOncePerVersion(t *testing.T) {
	var v ProfileValidator
	p := builders.MakeMetricProfile("total").Query("up[1m]").Obj()
	require.Len(t, v.Validate(p), 1)
	p.Spec.Query = "sum(up)"
	require.Empty(t, v.Validate(p), "an object that was never stored is validated each time")

	p.UID, p.ResourceVersion = "a", "1"
	require.Empty(t, v.Validate(p))
	changed := p.DeepCopy()
	changed.Spec.Query, changed.ResourceVersion = "up[1m]", "2"
	assert.Len(t, v.Validate(changed), 1, "another version")
	recreated := changed.DeepCopy()
	recreated.UID, recreated.Spec.Query = "b", "sum(up)"
	assert.Empty(t, v.Validate(recreated), "another object of the name")
	assert.Len(t, v.Validate(changed), 1)

	parsed := testing.AllocsPerRun(10, func() { ValidateMetricProfile(recreated) })
	assert.Zero(t, testing.AllocsPerRun(10, func() { v.Validate(recreated) }))
	assert.NotZero(t, parsed)
}

func TestVerdictsOnProfilesThatAreGoneDoNotPileUp(t *testing.T) {
	var v ProfileValidator
	p := builders.MakeMetricProfile("total").Query("up").Obj()
	p.ResourceVersion = "1"
	for i := range 2*maxVerdicts + 1 {
		p.UID = types.UID(strconv.Itoa(i))
		v.Validate(p)
		require.LessOrEqual(t, len(v.said), maxVerdicts)
	}
}
