package v1alpha1

import (
	"strings"
	"testing"
)

func TestWhatAProfileSaysIsOfOnePiece(t *testing.T) {
	parameter := func(d ProfileParameter) func(*MetricProfileSpec) {
		return func(s *MetricProfileSpec) { s.Parameters = []ProfileParameter{d} }
	}
	labels := func(l SeriesLabels) func(*MetricProfileSpec) {
		return func(s *MetricProfileSpec) { s.Series, s.SeriesLabels = SeriesPerTarget, &l }
	}
	freshness := func(f Freshness) func(*MetricProfileSpec) {
		return func(s *MetricProfileSpec) { f.Query = "up"; s.Freshness = &f }
	}
	backlog := func(s *MetricProfileSpec) {
		s.Semantics, s.ArrivalRateQuery, s.ClearanceSeconds = SemanticsBacklog, "rate(arrived[1m])", 60
	}
	for name, tc := range map[string]struct {
		change func(*MetricProfileSpec)
		want   []string
	}{
		"an average":                        {func(s *MetricProfileSpec) { s.Semantics = SemanticsPerReplicaAverage }, nil},
		"a backlog":                         {backlog, nil},
		"a backlog without its two numbers": {func(s *MetricProfileSpec) { s.Semantics = SemanticsBacklog }, []string{"spec.arrivalRateQuery: is needed for", "spec.clearanceSeconds: is needed for"}},
		"a backlog cleared in no time":      {func(s *MetricProfileSpec) { backlog(s); s.ClearanceSeconds = -1 }, []string{"spec.clearanceSeconds: must be from 1 to 86400"}},
		"FC-15 a backlog cleared late":      {func(s *MetricProfileSpec) { backlog(s); s.ClearanceSeconds = 86401 }, []string{"spec.clearanceSeconds: must be from 1 to 86400"}},
		"a total with a backlog's numbers":  {func(s *MetricProfileSpec) { backlog(s); s.Semantics = SemanticsTotal }, []string{"spec.arrivalRateQuery: is for semantics Backlog only", "spec.clearanceSeconds: is for semantics Backlog only"}},
		"unknown semantics":                 {func(s *MetricProfileSpec) { s.Semantics = "Average" }, []string{"spec.semantics: "}},
		"one answer for all targets":        {labels(SeriesLabels{"ns", "app"}), nil},
		"labels by default":                 {labels(SeriesLabels{}), nil},
		"one label by default":              {labels(SeriesLabels{Target: "app"}), nil},
		"one label for both":                {labels(SeriesLabels{"app", "app"}), []string{"spec.seriesLabels: namespace and target must be different labels"}},
		"a label that is the other's":       {labels(SeriesLabels{Target: "namespace"}), []string{"spec.seriesLabels: namespace and target must be different labels"}},
		"labels that are none":              {labels(SeriesLabels{"a-b", "1"}), []string{"spec.seriesLabels.namespace: ", "spec.seriesLabels.target: "}},
		"labels where there is one number":  {func(s *MetricProfileSpec) { s.SeriesLabels = &SeriesLabels{} }, []string{"spec.seriesLabels: is for series PerTarget only"}},
		"unknown series":                    {func(s *MetricProfileSpec) { s.Series = "Many" }, []string{"spec.series: "}},
		"an unknown meaning of nothing":     {func(s *MetricProfileSpec) { s.OnEmpty = "Hold" }, []string{"spec.onEmpty: "}},
		"no series means no load":           {func(s *MetricProfileSpec) { s.OnEmpty = EmptyZero }, nil},
		"a parameter with values":           {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{"a", "b"}, Default: "b"}), nil},
		"a parameter with a pattern":        {parameter(ProfileParameter{Name: "queue", Pattern: "[a-z]+"}), nil},
		"a parameter with neither":          {parameter(ProfileParameter{Name: "queue"}), []string{"spec.parameters[0]: set either values or pattern"}},
		"a parameter with both":             {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{"a"}, Pattern: "a"}), []string{"spec.parameters[0]: set either values or pattern"}},
		"a default that is not allowed":     {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{"a"}, Default: "c"}), []string{"spec.parameters[0].default: must be one of values"}},
		"a value twice":                     {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{"a", "a"}}), []string{"spec.parameters[0].values[1]: "}},
		"an empty value":                    {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{""}}), []string{"spec.parameters[0].values[0]: an empty value"}},
		"a value that is too long":          {parameter(ProfileParameter{Name: "queue", Values: []ParameterValue{ParameterValue(strings.Repeat("a", 254))}}), []string{"spec.parameters[0].values[0]: must have at most 253"}},
		"too many values":                   {parameter(ProfileParameter{Name: "queue", Values: manyValues(65)}), []string{"spec.parameters[0].values: "}},
		"a pattern that is too long":        {parameter(ProfileParameter{Name: "queue", Pattern: strings.Repeat("a", 257)}), []string{"spec.parameters[0].pattern: may not be more than 256 bytes"}},
		"a default that is too long":        {parameter(ProfileParameter{Name: "queue", Pattern: "a+", Default: ParameterValue(strings.Repeat("a", 254))}), []string{"spec.parameters[0].default: must have at most 253"}},
		"a placeholder of the operator's":   {parameter(ProfileParameter{Name: "target", Pattern: "a"}), []string{"spec.parameters[0].name: $namespace and $target are set by the operator"}},
		"a name that is no placeholder":     {parameter(ProfileParameter{Name: "queue-name", Pattern: "a"}), []string{"spec.parameters[0].name: must begin with a letter"}},
		"a parameter twice": {func(s *MetricProfileSpec) {
			s.Parameters = []ProfileParameter{{Name: "queue", Pattern: "a"}, {Name: "queue", Pattern: "a"}}
		}, []string{"spec.parameters[1].name: "}},
		"too many parameters": {func(s *MetricProfileSpec) { s.Parameters = make([]ProfileParameter, 17) }, []string{"spec.parameters: "}},
		"parameters of an answer for all": {func(s *MetricProfileSpec) {
			s.Series, s.Parameters = SeriesPerTarget, []ProfileParameter{{Name: "queue", Pattern: "a"}}
		}, []string{"spec.parameters: a query of series PerTarget is the same for all"}},
		"an age":                        {freshness(Freshness{MaxAgeSeconds: number(1)}), nil},
		"a share":                       {freshness(Freshness{MinHealthyShare: "800m"}), nil},
		"an age and a share":            {freshness(Freshness{MaxAgeSeconds: number(60), MinHealthyShare: "0.8"}), []string{"spec.freshness: set exactly one bound"}},
		"neither an age nor a share":    {freshness(Freshness{}), []string{"spec.freshness: set exactly one bound"}},
		"FC-15 an age of more than day": {freshness(Freshness{MaxAgeSeconds: number(86401)}), []string{"spec.freshness.maxAgeSeconds: must be from 1 to 86400"}},
		"an age of 0":                   {freshness(Freshness{MaxAgeSeconds: number(0)}), []string{"spec.freshness.maxAgeSeconds: must be from 1 to 86400"}},
		"FC-14 a share of 80 %":         {freshness(Freshness{MinHealthyShare: "80%"}), []string{"spec.freshness.minHealthyShare: must be a share"}},
		"bounds at their upper ends":    {func(s *MetricProfileSpec) { s.MaxSeries, s.MaxResponseBytes, s.Budget = 100000, 67108864, 60000 }, nil},
		"bounds at their lower ends":    {func(s *MetricProfileSpec) { s.MaxSeries, s.MaxResponseBytes, s.Budget = 1, 1024, 1 }, nil},
		"bounds past their upper ends":  {func(s *MetricProfileSpec) { s.MaxSeries, s.MaxResponseBytes, s.Budget = 100001, 67108865, 60001 }, []string{"spec.maxSeries: ", "spec.maxResponseBytes: must be from 1024 to 67108864", "spec.budget: must be from 1 to 60000"}},
		"bounds past their lower ends":  {func(s *MetricProfileSpec) { s.MaxSeries, s.MaxResponseBytes, s.Budget = -1, 1023, -1 }, []string{"spec.maxSeries: ", "spec.maxResponseBytes: ", "spec.budget: "}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &MetricProfile{Spec: MetricProfileSpec{
				Endpoint: "main", Query: "up", Semantics: SemanticsTotal, AllowedNamespaces: []NamespaceName{"production"},
			}}
			tc.change(&p.Spec)
			assertErrors(t, tc.want, ValidateMetricProfile(p))
		})
	}
}

func manyValues(n int) []ParameterValue {
	values := make([]ParameterValue, n)
	for i := range values {
		values[i] = ParameterValue(strings.Repeat("a", i+1))
	}
	return values
}
