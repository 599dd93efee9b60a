package prometheus

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxTemplateBytes is the greatest length of a query template.
const MaxTemplateBytes = 4096

// Vars are the values of a template's placeholders.
type Vars struct {
	// Namespace replaces $namespace.
	Namespace string
	// Target, the name of the Deployment, replaces $target.
	Target string
	// Parameters replace the placeholders of their names. One that is called
	// namespace or target has no say: those two are the AutoScaler's own.
	Parameters map[string]string
}

func (v Vars) value(placeholder string) string {
	switch placeholder {
	case "$namespace":
		return v.Namespace
	case "$target":
		return v.Target
	}
	return v.Parameters[placeholder[1:]]
}

// Render replaces $namespace, $target and the placeholders of parameters in a query
// template, each by a quoted PromQL string, so that a value can never become part of
// the query's structure: it is written namespace=$namespace, without quotes.
// Placeholders in string literals are refused, in comments they are left alone. A
// placeholder whose value is empty is refused, since an empty matcher selects
// series that lack the label.
func Render(template string, vars Vars) (string, error) {
	parts, err := splitTemplate(template, slices.Sorted(maps.Keys(vars.Parameters)))
	if err != nil {
		return "", err
	}
	var query strings.Builder
	for _, part := range parts {
		if part.kind != placeholder {
			query.WriteString(part.text)
			continue
		}
		value := vars.value(part.text)
		if value == "" {
			return "", fmt.Errorf("query: no value for %s", part.text)
		}
		// In ASCII, since PromQL's lexer takes a U+FFFD for a broken one.
		query.WriteString(strconv.QuoteToASCII(value))
	}
	return query.String(), nil
}

// ValidateTemplate reports what would make Render fail for any values of the
// parameters with these names: a length of 0 or above MaxTemplateBytes, an unknown or
// misplaced placeholder, or a string literal without an end. It does not parse PromQL.
func ValidateTemplate(template string, parameters ...string) error {
	_, err := splitTemplate(template, parameters)
	return err
}

// Uses tells which of the parameters' placeholders a template has, or why it is no
// template. Comments do not count.
func Uses(template string, parameters ...string) (map[string]bool, error) {
	parts, err := splitTemplate(template, parameters)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, p := range parts {
		if p.kind == placeholder {
			used[p.text[1:]] = true
		}
	}
	return used, nil
}

type partKind uint8

const (
	code partKind = iota
	literal
	comment
	placeholder
)

// part is a piece of a template; the pieces' texts add up to the template.
type part struct {
	kind partKind
	text string
}

var (
	// name is what follows a '$' outside literals; it takes as much as it can,
	// so that $targets is not $target.
	name = regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*`)
	// quotedName finds what may be a placeholder in a literal, where '$' otherwise
	// is an ordinary character, such as the end in a regular expression.
	quotedName = regexp.MustCompile(`\$(?:\{\s*)?([A-Za-z_][A-Za-z0-9_]*)`)
)

// placeholders are the names of the parameters beside $namespace and $target.
type placeholders []string

func (p placeholders) has(name string) bool {
	return name == "namespace" || name == "target" || slices.Contains(p, name)
}

// String names them all, as the end of an error.
func (p placeholders) String() string {
	if len(p) == 0 {
		return "$namespace and $target are the placeholders; declare others as parameters"
	}
	return "$namespace, $target and the declared parameters are the placeholders: $" + strings.Join(p, ", $")
}

// splitTemplate divides a template by the lexical rules of PromQL: '…' and "…"
// with backslash escapes and no line breaks, `…` without escapes, and # up to
// the end of the line.
func splitTemplate(template string, parameters placeholders) ([]part, error) {
	if strings.TrimSpace(template) == "" {
		return nil, errors.New("query: is empty")
	}
	if len(template) > MaxTemplateBytes {
		return nil, fmt.Errorf("query: is %d bytes long, more than %d", len(template), MaxTemplateBytes)
	}
	var parts []part
	var before string // the code before, without the space and comments at its end
	for pos := 0; pos < len(template); {
		p, err := parameters.nextPart(template[pos:])
		if err == nil && p.kind == placeholder && (strings.HasSuffix(before, "=~") || strings.HasSuffix(before, "!~")) {
			err = fmt.Errorf("placeholder %s is matched as a regular expression, so that a value such as .* would match everything; match the value itself, with = or !=", p.text)
		}
		if err != nil {
			return nil, fmt.Errorf("query: position %d: %w", pos+1, err)
		}
		if code := strings.TrimSpace(p.text); p.kind != comment && code != "" {
			before = code
		}
		parts = append(parts, p)
		pos += len(p.text)
	}
	return parts, nil
}

func (p placeholders) nextPart(rest string) (part, error) {
	switch rest[0] {
	case '\'', '"', '`':
		return p.nextLiteral(rest)
	case '#':
		if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
			rest = rest[:end]
		}
		return part{comment, rest}, nil
	case '$':
		return p.nextPlaceholder(rest)
	}
	if end := strings.IndexAny(rest, "'\"`#$"); end >= 0 {
		rest = rest[:end]
	}
	return part{code, rest}, nil
}

func (p placeholders) nextPlaceholder(rest string) (part, error) {
	found := name.FindString(rest)
	switch {
	case found == "":
		return part{}, fmt.Errorf(`"$" stands outside a string and begins no placeholder; %s`, p)
	case !p.has(found[1:]):
		return part{}, fmt.Errorf("unknown placeholder %s; %s", excerpt(found), p)
	}
	return part{placeholder, found}, nil
}

func (p placeholders) nextLiteral(rest string) (part, error) {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			return p.literal(rest[:i+1])
		case c == '\\' && quote != '`':
			i++
		case c == '\n' && quote != '`':
			return part{}, fmt.Errorf("string that begins with %c does not end on its line", quote)
		}
	}
	return part{}, fmt.Errorf("string that begins with %c has no end", quote)
}

// literal refuses a placeholder in a string: it would be put in without quotes of its
// own, or not at all.
func (p placeholders) literal(text string) (part, error) {
	if strings.IndexByte(text, '$') >= 0 {
		for _, found := range quotedName.FindAllStringSubmatch(text, -1) {
			if p.has(found[1]) {
				return part{}, fmt.Errorf("placeholder $%[1]s stands inside a string; drop the quotes, as in label=$%[1]s: the value is quoted when it is put in", found[1])
			}
		}
	}
	return part{literal, text}, nil
}
