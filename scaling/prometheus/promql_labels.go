package prometheus

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// seriesLabels refuses an answer for many targets whose series, as far as can be told
// from the query, never carry a label that says whom they are for.
func (c *queryCheck) seriesLabels(expr parser.Expr) {
	if c.limits.Series == (SeriesLabels{}) {
		return
	}
	for _, label := range []string{c.limits.Series.Namespace, c.limits.Series.Target} {
		if lacks(expr, label) {
			c.failf(expr.PositionRange(), "the result has no label %q, which says whom a series is for; group by it, as in sum by (%s, %s) (…)",
				label, c.limits.Series.Namespace, c.limits.Series.Target)
		}
	}
}

// lacks says that no series of the result can have the label. Where it cannot be
// told, as of a selector, it is false.
func lacks(expr parser.Expr, label string) bool {
	switch e := expr.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return true
	case *parser.AggregateExpr:
		return aggregateLacks(e, label)
	case *parser.BinaryExpr:
		return binaryLacks(e, label)
	case *parser.Call:
		return callLacks(e, label)
	case *parser.ParenExpr:
		return lacks(e.Expr, label)
	case *parser.UnaryExpr:
		return lacks(e.Expr, label)
	case *parser.StepInvariantExpr:
		return lacks(e.Expr, label)
	case *parser.SubqueryExpr:
		return lacks(e.Expr, label)
	}
	return false
}

func aggregateLacks(e *parser.AggregateExpr, label string) bool {
	switch e.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return lacks(e.Expr, label) // these choose series and leave them as they are
	case parser.COUNT_VALUES:
		if text, ok := e.Param.(*parser.StringLiteral); ok && text.Val == label {
			return false
		}
	}
	return slices.Contains(e.Grouping, label) == e.Without || lacks(e.Expr, label)
}

func binaryLacks(e *parser.BinaryExpr, label string) bool {
	left, right := lacks(e.LHS, label), lacks(e.RHS, label)
	m := e.VectorMatching
	switch {
	case e.LHS.Type() == parser.ValueTypeScalar:
		return right
	case e.RHS.Type() == parser.ValueTypeScalar || m == nil:
		return left
	case e.Op == parser.LOR:
		return left && right
	case e.Op == parser.LAND, e.Op == parser.LUNLESS:
		return left
	case m.Card == parser.CardOneToOne:
		return slices.Contains(m.MatchingLabels, label) != m.On || left
	}
	many, one := left, right
	if m.Card == parser.CardOneToMany {
		many, one = right, left
	}
	if slices.Contains(m.Include, label) {
		return one
	}
	return many
}

func callLacks(e *parser.Call, label string) bool {
	switch e.Func.Name {
	case "absent", "absent_over_time":
		return false // the labels that its selector asks for
	case "info":
		return false // adds the labels of others
	case "label_replace", "label_join":
		if text, ok := e.Args[1].(*parser.StringLiteral); !ok || text.Val == label {
			return false
		}
	}
	for _, arg := range e.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			return e.Type() == parser.ValueTypeScalar || lacks(arg, label)
		}
	}
	return true // of numbers alone, as vector(1)
}
