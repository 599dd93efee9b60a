package prometheus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/util/strutil"
)

// specimen is a template with values that stand for any, as it is given to the parser.
// It leads from what the parser says back to what the author wrote.
type specimen struct {
	template, query string
	// namespace is the value of $namespace. Nothing else in the query has it.
	namespace string
	// ends are where the parts of the template end in the template and in the query.
	ends []offsets
	// back puts the placeholders back into texts that quote their values, once or
	// twice.
	back *strings.Replacer
}

type offsets struct{ template, query int }

// renderSpecimen gives each placeholder a value of its own, which no string of the
// template has and no object can be called: wherever the parsed query has that of
// $namespace, the template has $namespace. The values are short, as the parser cuts
// what it quotes after ten characters.
func renderSpecimen(template string, parts []part) specimen {
	taken := map[string]bool{}
	for _, p := range parts {
		if p.kind == literal {
			// What cannot be unquoted, the parser refuses.
			text, _ := strutil.Unquote(p.text)
			taken[text] = true
		}
	}
	next := 0
	unused := func() string {
		for {
			value := fmt.Sprintf("$%d", next)
			next++
			if !taken[value] {
				return value
			}
		}
	}
	s := specimen{template: template, namespace: unused()}
	values := map[string]string{"$namespace": s.namespace}
	var query strings.Builder
	var back []string
	at := 0
	for _, p := range parts {
		text := p.text
		if p.kind == placeholder {
			if values[text] == "" {
				values[text] = unused()
			}
			text = strconv.Quote(values[text])
			back = append(back, strconv.Quote(text), p.text, text, p.text)
		}
		query.WriteString(text)
		at += len(p.text)
		s.ends = append(s.ends, offsets{at, query.Len()})
	}
	s.query, s.back = query.String(), strings.NewReplacer(back...)
	return s
}

// offset is where in the template the parser's position is; within a value, the
// placeholder's end at most.
func (s specimen) offset(at posrange.Pos) int {
	var begin offsets
	for _, end := range s.ends {
		if int(at) < end.query {
			return begin.template + min(max(int(at)-begin.query, 0), end.template-begin.template)
		}
		begin = end
	}
	return len(s.template)
}

// position tells people where in a template something is.
func (s specimen) position(at posrange.Pos) string {
	offset := s.offset(at)
	before := s.template[:offset]
	lines := strings.Count(before, "\n")
	if lines == 0 {
		return fmt.Sprintf("position %d", offset+1)
	}
	return fmt.Sprintf("position %d (line %d, column %d)", offset+1, lines+1, offset-strings.LastIndexByte(before, '\n'))
}

// written is a part of the template as its author wrote it, on one line.
func (s specimen) written(r posrange.PositionRange) string {
	start := s.offset(r.Start)
	return shorten(s.template[start:max(s.offset(r.End), start)], maxSelectorText)
}

// syntaxErrors translates the parser's errors, whose texts quote the values that stand for any.
func (s specimen) syntaxErrors(err error) []error {
	var all parser.ParseErrors
	if !errors.As(err, &all) {
		return []error{fmt.Errorf("query: is no PromQL expression: %w", err)}
	}
	errs := make([]error, 0, len(all))
	for i := range all {
		errs = append(errs, fmt.Errorf("query: %s: %s", s.position(all[i].PositionRange.Start), s.back.Replace(shorten(all[i].Err.Error(), maxExcerpt))))
	}
	return errs
}
