package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
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
}

// maxQueryErrors is how many faults of one query are told.
const maxQueryErrors = 8

// sampleVars gives values that stand for any. Quoted, each is as long as its
// placeholder, so that positions in the rendered query are those in the template. No
// string of the template has the namespace's value, and none can be the name of an
// object: wherever the parsed query has it, the template has $namespace.
func sampleVars(parts []part) Vars {
	taken := map[string]bool{}
	for _, p := range parts {
		if p.kind == literal {
			// What cannot be unquoted, the parser refuses.
			text, _ := strutil.Unquote(p.text)
			taken[text] = true
		}
	}
	vars := Vars{Namespace: "$namespa", Target: "$targ"}
	for i := 0; taken[vars.Namespace]; i++ {
		vars.Namespace = fmt.Sprintf("$%07d", i)
	}
	return vars
}

// queries parses PromQL with everything that a server may have been told to
// accept: whether this one was is found out when it is asked.
var queries = parser.NewParser(parser.Options{EnableExperimentalFunctions: true, EnableBinopFillModifiers: true})

// CheckQuery reports what is wrong with a query template: what ValidateTemplate
// finds, or else what Prometheus' own parser refuses, or else a result that is no
// number per series, and selectors beyond the limits. Errors come in the order of
// the query and name the position in the template, counted in bytes from 1.
func CheckQuery(template string, limits QueryLimits) []error {
	parts, err := splitTemplate(template)
	if err == nil {
		err = checkRepeats(parts)
	}
	if err != nil {
		return []error{err}
	}
	vars := sampleVars(parts)
	rendered, err := Render(template, vars)
	if err != nil {
		return []error{err}
	}
	expr, err := queries.ParseExpr(rendered)
	if err != nil {
		return bounded(syntaxErrors(template, vars, err))
	}
	c := queryCheck{template: template, limits: limits, namespace: vars.Namespace}
	c.resultType(expr)
	c.walk(expr, lookBack{})
	return bounded(c.errs)
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
		for _, found := range repeat.FindAllStringSubmatch(text, -1) {
			for _, digits := range found[1:] {
				n, err := strconv.Atoi(cmp.Or(digits, "0"))
				total += n
				if err != nil || total > maxRepeats {
					return fmt.Errorf("query: the repetitions in its strings, such as %s, add up to more than %d", shorten(found[0], maxSelectorText), maxRepeats)
				}
			}
		}
	}
	return nil
}

// bounded keeps the answer to a hostile query short.
func bounded(errs []error) []error {
	if extra := len(errs) - maxQueryErrors; extra > 0 {
		errs = append(errs[:maxQueryErrors:maxQueryErrors], fmt.Errorf("query: and %d more errors", extra))
	}
	return errs
}

// syntaxErrors translates the parser's errors, whose texts quote the sample values.
func syntaxErrors(template string, vars Vars, err error) []error {
	var all parser.ParseErrors
	if !errors.As(err, &all) {
		return []error{fmt.Errorf("query: is no PromQL expression: %w", err)}
	}
	placeholders := placeholdersOf(vars)
	errs := make([]error, 0, len(all))
	for i := range all {
		errs = append(errs, fmt.Errorf("query: %s: %s", position(template, all[i].PositionRange.Start), placeholders.Replace(shorten(all[i].Err.Error(), maxExcerpt))))
	}
	return errs
}

// placeholdersOf puts the placeholders back into texts that quote their values, once
// or twice.
func placeholdersOf(vars Vars) *strings.Replacer {
	return strings.NewReplacer(
		`"\"`+vars.Namespace+`\""`, "$namespace", `"`+vars.Namespace+`"`, "$namespace",
		`"\"`+vars.Target+`\""`, "$target", `"`+vars.Target+`"`, "$target",
	)
}

// position tells people where in a template something is.
func position(template string, at posrange.Pos) string {
	offset := min(max(int(at), 0), len(template))
	before := template[:offset]
	lines := strings.Count(before, "\n")
	if lines == 0 {
		return fmt.Sprintf("position %d", offset+1)
	}
	return fmt.Sprintf("position %d (line %d, column %d)", offset+1, lines+1, offset-strings.LastIndexByte(before, '\n'))
}

// maxSelectorText is how much of a selector a message quotes.
const maxSelectorText = 100

// written is a part of the template as its author wrote it, on one line.
func written(template string, r posrange.PositionRange) string {
	start := min(max(int(r.Start), 0), len(template))
	end := min(max(int(r.End), start), len(template))
	return shorten(template[start:end], maxSelectorText)
}

// shorten puts a text on one line of at most n bytes.
func shorten(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > n {
		return clip(text, n-len("…")) + "…"
	}
	return text
}
