package prometheus

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"
)

// QueryLimits bound what a query template may ask for.
type QueryLimits struct {
	// MaxRange is how far a selector may look back: the sum of its range, its
	// offset, and the ranges and offsets of the subqueries around it. What the
	// server looks back by default, where no range is given, does not count. 0 is
	// no limit.
	MaxRange time.Duration
	// RequireNamespaceMatcher asks for namespace=$namespace in every selector. No
	// other label will do: exported_namespace and the like are what the scraped
	// program says of itself, and a literal is not the AutoScaler's namespace.
	RequireNamespaceMatcher bool
	// Parameters are the names of the placeholders beside $namespace and $target.
	Parameters []string
	// Series names the labels of an answer for many targets, the zero value none.
	// Such a query is asked once for all of them: it has no placeholders.
	Series SeriesLabels
}

// maxQueryErrors is how many faults of one query are told.
const maxQueryErrors = 8

// queries parses PromQL with everything that a server may have been told to
// accept: whether this one was is found out when it is asked.
var queries = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

// CheckQuery reports what is wrong with a query template: what ValidateTemplate
// finds, or else what Prometheus' own parser refuses, or else a result that is no
// number per series, and selectors beyond the limits. Errors come in the order of
// the query and name the position in the template, counted in bytes from 1.
func CheckQuery(template string, limits QueryLimits) []error {
	parts, err := splitTemplate(template, limits.Parameters)
	if err == nil {
		err = checkRepeats(parts)
	}
	if err == nil && limits.Series != (SeriesLabels{}) {
		err = checkNoPlaceholder(parts)
	}
	if err != nil {
		return []error{err}
	}
	s := renderSpecimen(template, parts)
	expr, err := queries.ParseExpr(s.query)
	if err != nil {
		return bounded(s.syntaxErrors(err))
	}
	c := queryCheck{specimen: s, limits: limits}
	c.resultType(expr)
	c.walk(expr, lookBack{})
	c.seriesLabels(expr)
	return bounded(c.errs)
}

func checkNoPlaceholder(parts []part) error {
	at := 0
	for _, p := range parts {
		if p.kind == placeholder {
			return fmt.Errorf("query: position %d: a query whose answer has a series per target is asked once for all of them, so %s has no value in it; select all and group by the two labels", at+1, p.text)
		}
		at += len(p.text)
	}
	return nil
}

// maxRepeats bounds the sum of the counts of repetitions in a template's strings. A
// matcher's regular expression is compiled to a program in which each repetition is
// written out: 4 KiB of x{1000} take a second and 200 MB.
const maxRepeats = 1000

var repeat = regexp.MustCompile(`\{(\d+)(?:,(\d*))?\}`)

// checkRepeats must pass before the parser, which compiles regular expressions,
// sees a query.
func checkRepeats(parts []part) error {
	total := 0
	for _, p := range parts {
		if p.kind != literal {
			continue
		}
		text, err := strutil.Unquote(p.text)
		if err != nil {
			continue // the parser says why
		}
		if sample, ok := addRepeats(text, &total); !ok {
			return fmt.Errorf("query: the repetitions in its strings, such as %s, add up to more than %d", sample, maxRepeats)
		}
	}
	return nil
}

// CheckPattern refuses a regular expression that would take long to compile. It does
// not compile it.
func CheckPattern(pattern string) error {
	total := 0
	if sample, ok := addRepeats(pattern, &total); !ok {
		return fmt.Errorf("its repetitions, such as %s, add up to more than %d", sample, maxRepeats)
	}
	return nil
}

// addRepeats adds up the repetitions of a text, until they are too many.
func addRepeats(text string, total *int) (last string, ok bool) {
	for _, found := range repeat.FindAllStringSubmatch(text, -1) {
		for _, digits := range found[1:] {
			n, err := strconv.Atoi(cmp.Or(digits, "0"))
			if err != nil || n > maxRepeats || *total+n > maxRepeats {
				return shorten(found[0], maxSelectorText), false
			}
			*total += n
		}
	}
	return "", true
}

// bounded keeps the answer to a hostile query short.
func bounded(errs []error) []error {
	if extra := len(errs) - maxQueryErrors; extra > 0 {
		errs = append(errs[:maxQueryErrors:maxQueryErrors], fmt.Errorf("query: and %d more errors", extra))
	}
	return errs
}

// maxSelectorText is how much of a selector a message quotes.
const maxSelectorText = 100

// shorten puts a text on one line of at most n bytes.
func shorten(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > n {
		return clip(text, n-len("…")) + "…"
	}
	return text
}
