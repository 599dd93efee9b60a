package replay

import (
	"context"
	"fmt"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/trace"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// ask has a Prometheus answer the queries of the profiles, rendered as the operator
// renders them, over a range of time.
func (o *options) ask(ctx context.Context, l *load, s *subject, from, to time.Time) error {
	if to.IsZero() {
		to = o.now().Truncate(time.Second)
	}
	step := o.step
	if step == 0 {
		step = spec.PollInterval(s.autoscaler)
	}
	if !from.Before(to) {
		return fmt.Errorf("--from %s is not in the past", o.from)
	}
	server, err := trace.NewServer(o.prometheus)
	if err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	for i := range l.wanted {
		w := &l.wanted[i]
		expr, err := s.query(w)
		if err != nil {
			return err
		}
		q := trace.Query{Expr: expr, From: from, To: to, Step: step, Series: s.series([]string{w.name})}
		cursor, err := trace.NewCursor(server.Range(ctx, q, o.warn), step)
		if err != nil {
			return fmt.Errorf("metric %s: %w", w.name, err)
		}
		w.cursor, w.cell = len(l.cursors), 0
		l.add(cursor)
	}
	l.done = func(at time.Time) float64 { return at.Sub(from).Seconds() / to.Sub(from).Seconds() }
	return nil
}

// query is what is asked for a column.
func (s *subject) query(w *wanted) (string, error) {
	name, p := s.autoscaler.Spec.Metrics[w.metric].Name, s.profiles[w.metric]
	switch {
	case p == nil:
		return "", fmt.Errorf("metric %s: its MetricProfile, which has the query, is not in the files; give it by -f", name)
	case p.Spec.Semantics == v1alpha1.SemanticsPerReplicaAverage:
		return "", fmt.Errorf("metric %s: the query of MetricProfile %q gives an average over the replicas that were there then, and not the load; record the total, and give it by --load", name, p.Name)
	}
	measure, err := spec.Measure(s.autoscaler, w.metric, p)
	if err != nil {
		return "", fmt.Errorf("metric %s: %w", name, err)
	}
	if w.arrivals {
		return measure.Arrivals.Expr, nil
	}
	return measure.Load.Expr, nil
}
