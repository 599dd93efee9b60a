package prometheus

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
)

// namespaceLabel is the label that tells the tenants of a Prometheus apart.
const namespaceLabel = "namespace"

// queryCheck collects what is wrong with a parsed template.
type queryCheck struct {
	specimen
	limits QueryLimits
	errs   []error
}

func (c *queryCheck) failf(at posrange.PositionRange, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("query: %s: %s", c.position(at.Start), fmt.Sprintf(format, args...)))
}

// resultType accepts what a sample can be taken from: one number, or one per series, of
// which there must be one.
func (c *queryCheck) resultType(expr parser.Expr) {
	switch expr.Type() {
	case parser.ValueTypeVector, parser.ValueTypeScalar:
	case parser.ValueTypeMatrix:
		c.errs = append(c.errs, errors.New("query: the result is a range of samples, not one number; put a function around it, such as rate() or max_over_time()"))
	case parser.ValueTypeString:
		c.errs = append(c.errs, errors.New("query: the result is a string, not a number"))
	default:
		c.errs = append(c.errs, fmt.Errorf("query: the result is a %s, not a number", expr.Type()))
	}
}

// lookBack sums seconds: in a float64 no sum of durations overflows.
type lookBack struct{ seconds float64 }

func (l lookBack) plus(durations ...time.Duration) lookBack {
	for _, d := range durations {
		l.seconds += d.Seconds()
	}
	return l
}

// walk visits the expression; around is what the subqueries around it look back.
// Its depth is bounded by the length of the template. A fault in a duration is told
// once, and the rest of the expression is checked all the same.
func (c *queryCheck) walk(node parser.Node, around lookBack) {
	switch n := node.(type) {
	case *parser.SubqueryExpr:
		at := n.PositionRange()
		if c.durations(at, n.Range, n.OriginalOffset, n.RangeExpr, n.StepExpr, n.OriginalOffsetExpr) && c.movingTime(at, n.Timestamp) {
			around = around.plus(n.Range, n.OriginalOffset)
			c.steps(n)
		}
	case *parser.MatrixSelector:
		at := n.PositionRange()
		if c.durations(at, n.Range, 0, n.RangeExpr) {
			around = around.plus(n.Range)
		}
		if vector, ok := n.VectorSelector.(*parser.VectorSelector); ok {
			c.selector(vector, at, around)
		}
		return
	case *parser.VectorSelector:
		c.selector(n, n.PositionRange(), around)
		return
	}
	for child := range parser.ChildrenIter(node) {
		c.walk(child, around)
	}
}

// maxSteps is how often a subquery may evaluate what is in it. Prometheus has the
// same limit for the points of a range query (queryRange in web/api/v1/api.go), and
// none for subqueries.
const maxSteps = 11_000

// steps bounds those of a subquery. One without a step of its own has the server's
// evaluation interval, which is not known here and, with a minute or so, harmless.
func (c *queryCheck) steps(n *parser.SubqueryExpr) {
	if n.Step > 0 && n.Range/n.Step > maxSteps {
		at := n.PositionRange()
		c.failf(at, "subquery %s has %d steps; at most %d are evaluated, as in a range query of Prometheus: make the step longer or the range shorter",
			c.written(at), n.Range/n.Step, maxSteps)
	}
}

// noRange stands for the range of a selector that has none.
const noRange = time.Nanosecond

func (c *queryCheck) selector(s *parser.VectorSelector, at posrange.PositionRange, back lookBack) {
	if c.durations(at, noRange, s.OriginalOffset, s.OriginalOffsetExpr) && c.movingTime(at, s.Timestamp) {
		back = back.plus(s.OriginalOffset)
	}
	if limit := c.limits.MaxRange.Seconds(); limit > 0 && back.seconds > limit {
		c.failf(at, "selector %s looks back %s s in all, range, offset and subqueries together; maxRangeSeconds allows %s s",
			c.written(at), decimalOf(back.seconds), decimalOf(limit))
	}
	if c.limits.RequireNamespaceMatcher && !slices.ContainsFunc(s.LabelMatchers, c.isNamespaceMatcher) {
		c.failf(at, "selector %s lacks namespace=$namespace, which requireNamespaceMatcher asks of every selector", c.written(at))
	}
}

func (c *queryCheck) isNamespaceMatcher(m *labels.Matcher) bool {
	return m.Type == labels.MatchEqual && m.Name == namespaceLabel && m.Value == c.namespace
}

// durations says whether the durations of a selector or subquery can be counted.
// Computed ones cannot: with step() and range() in them they have no value of their
// own, and most servers do not know them. Nor can what the parser lets through
// although no time.Duration holds it, such as NaN, and a range that rounds to nothing.
// A negative offset looks into the future, where there are no samples.
func (c *queryCheck) durations(at posrange.PositionRange, length, offset time.Duration, computed ...*parser.DurationExpr) bool {
	switch {
	case slices.ContainsFunc(computed, func(d *parser.DurationExpr) bool { return d != nil }):
		c.failf(at, "%s has a computed duration; write it out, as in [5m] or offset 1h", c.written(at))
	case length <= 0, offset == math.MinInt64:
		c.failf(at, "%s has a range or offset that is no usable duration", c.written(at))
	case offset < 0:
		c.failf(at, "%s has a negative offset and looks into the future, where there are no samples; leave the offset out, or write offset 5m for the past", c.written(at))
	default:
		return true
	}
	return false
}

// movingTime refuses "@ <time>": it says nothing of the load now. "@ start()" and
// "@ end()" are the time of the evaluation.
func (c *queryCheck) movingTime(at posrange.PositionRange, timestamp *int64) bool {
	if timestamp != nil {
		c.failf(at, "%s is fixed to one time by @, so it never shows the load now; use offset", c.written(at))
	}
	return timestamp == nil
}

func decimalOf(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }
