package spec

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// ParameterError says that the parameters of a metric are not what its profile
// declares: a fault of the AutoScaler, or of a profile that was changed under it.
type ParameterError struct{ Errs field.ErrorList }

// Error is all that is wrong with them.
func (e *ParameterError) Error() string { return e.Errs.ToAggregate().Error() }

// Measure translates metric i of a validated AutoScaler: what is asked for it, and
// which part of the answer is its own. The deadline of a query is the profile's, but
// never longer than the poll interval. The error is a *ParameterError, or names the
// field of the profile that ValidateMetricProfile would have refused.
func Measure(a *v1alpha1.AutoScaler, i int, profile *v1alpha1.MetricProfile) (prometheus.Measure, error) {
	if errs := CheckParameters(a, i, profile); len(errs) > 0 {
		return prometheus.Measure{}, &ParameterError{errs}
	}
	m, s := &a.Spec.Metrics[i], &profile.Spec
	q := questions{
		vars: prometheus.Vars{Namespace: a.Namespace, Target: a.Spec.TargetRef.Name, Parameters: parameterValues(m, profile)},
		common: prometheus.Question{
			Profile:          profile.Name,
			Endpoint:         s.Endpoint,
			Timeout:          min(seconds(cmp.Or(s.TimeoutSeconds, v1alpha1.DefaultTimeoutSeconds)), PollInterval(a)),
			MaxResponseBytes: s.MaxResponseBytes,
			MaxSeries:        int(s.MaxSeries),
			EveryAnswer:      s.Semantics == v1alpha1.SemanticsPerReplicaAverage,
			OnEmptyZero:      s.OnEmpty == v1alpha1.EmptyZero,
			BudgetPerMinute:  int(s.Budget),
		},
	}
	if s.Series == v1alpha1.SeriesPerTarget {
		// Values of its own would make it a query of its own.
		q.vars, q.common.Series = prometheus.Vars{}, seriesLabels(s)
	}
	measure := prometheus.Measure{
		Namespace: a.Namespace,
		Target:    a.Spec.TargetRef.Name,
		Load:      q.ask("query", s.Query),
		MaxAge:    seconds(cmp.Or(m.MaxAgeSeconds, v1alpha1.DefaultMaxAgeSeconds)),
	}
	if s.Semantics == v1alpha1.SemanticsBacklog {
		measure.Arrivals = q.ask("arrivalRateQuery", s.ArrivalRateQuery)
	}
	if s.Freshness != nil {
		measure.Freshness = q.freshness(s.Freshness)
	}
	return measure, q.err
}

// questions renders the queries of one profile and keeps the first error.
type questions struct {
	vars   prometheus.Vars
	common prometheus.Question
	err    error
}

func (q *questions) ask(name, template string) prometheus.Question {
	expr, err := prometheus.Render(template, q.vars)
	if err != nil && q.err == nil {
		q.err = fmt.Errorf("spec.%s: %w", name, err)
	}
	asked := q.common
	asked.Expr = expr
	return asked
}

func (q *questions) freshness(f *v1alpha1.Freshness) prometheus.Freshness {
	bound := prometheus.Freshness{Question: q.ask("freshness.query", f.Query), MaxAge: seconds(value(f.MaxAgeSeconds))}
	// That nothing answers is never freshness.
	bound.OnEmptyZero = false
	if f.MinHealthyShare != "" {
		share, err := v1alpha1.ParseShare(f.MinHealthyShare)
		if err != nil && q.err == nil {
			q.err = fmt.Errorf("spec.freshness.minHealthyShare: %w", err)
		}
		bound.MinHealthyShare = share
	}
	return bound
}

// seriesLabels are those of a PerTarget profile.
func seriesLabels(s *v1alpha1.MetricProfileSpec) prometheus.SeriesLabels {
	labels := prometheus.SeriesLabels{Namespace: v1alpha1.DefaultNamespaceLabel, Target: v1alpha1.DefaultTargetLabel}
	if s.SeriesLabels != nil {
		labels.Namespace = cmp.Or(string(s.SeriesLabels.Namespace), labels.Namespace)
		labels.Target = cmp.Or(string(s.SeriesLabels.Target), labels.Target)
	}
	return labels
}

var semantics = map[v1alpha1.MetricSemantics]scaling.Semantics{
	v1alpha1.SemanticsTotal:             scaling.Total,
	v1alpha1.SemanticsPerReplicaAverage: scaling.PerReplicaAverage,
	v1alpha1.SemanticsBacklog:           scaling.Backlog,
}

// key identifies what a metric measures and how. Steps and intervals are not part
// of it: changing them does not make past recommendations wrong.
func key(m *v1alpha1.MetricSpec, profile *v1alpha1.MetricProfile, up, down time.Duration) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %d %d", m.Name, m.MetricProfileRef, m.TargetPerReplica, up, down)
	if profile != nil {
		s := &profile.Spec
		fmt.Fprintf(h, " %q %q %q %q %d %q %q", s.Endpoint, s.Query, s.Semantics, s.ArrivalRateQuery, s.ClearanceSeconds, s.Series, s.OnEmpty)
		if s.Series == v1alpha1.SeriesPerTarget {
			fmt.Fprintf(h, " %q", seriesLabels(s))
		}
		values := parameterValues(m, profile)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(h, " %q=%q", name, values[name])
		}
	}
	return h.Sum64()
}
