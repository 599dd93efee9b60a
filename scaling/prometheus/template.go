package prometheus

import (
	"errors"
	"fmt"
	"regexp"
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
}

// Render replaces $namespace and $target in a query template, each by a quoted
// PromQL string, so that a value can never become part of the query's
// structure: it is written namespace=$namespace, without quotes. Placeholders
// in string literals are refused, in comments they are left alone. A
// placeholder whose value is empty is refused, since an empty matcher selects
// series that lack the label.
func Render(template string, vars Vars) (string, error) {
	parts, err := splitTemplate(template)
	if err != nil {
		return "", err
	}
	values := map[string]string{"$namespace": vars.Namespace, "$target": vars.Target}
	var query strings.Builder
	for _, part := range parts {
		if part.kind != placeholder {
			query.WriteString(part.text)
			continue
		}
		value := values[part.text]
		if value == "" {
			return "", fmt.Errorf("query: no value for %s", part.text)
		}
		query.WriteString(strconv.Quote(value))
	}
	return query.String(), nil
}

// ValidateTemplate reports what would make Render fail for any values: a
// length of 0 or above MaxTemplateBytes, an unknown or misplaced placeholder,
// or a string literal without an end. It does not parse PromQL.
func ValidateTemplate(template string) error {
	_, err := splitTemplate(template)
	return err
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
	// quotedPlaceholder finds a placeholder in a literal, where '$' otherwise
	// is an ordinary character, such as the end in a regular expression.
	quotedPlaceholder = regexp.MustCompile(`\$(?:\{\s*)?(namespace|target)\b`)
)

// splitTemplate divides a template by the lexical rules of PromQL: '…' and "…"
// with backslash escapes and no line breaks, `…` without escapes, and # up to
// the end of the line.
func splitTemplate(template string) ([]part, error) {
	if strings.TrimSpace(template) == "" {
		return nil, errors.New("query: is empty")
	}
	if len(template) > MaxTemplateBytes {
		return nil, fmt.Errorf("query: is %d bytes long, more than %d", len(template), MaxTemplateBytes)
	}
	var parts []part
	for pos := 0; pos < len(template); {
		p, err := nextPart(template[pos:])
		if err != nil {
			return nil, fmt.Errorf("query: position %d: %w", pos+1, err)
		}
		parts = append(parts, p)
		pos += len(p.text)
	}
	return parts, nil
}

func nextPart(rest string) (part, error) {
	switch rest[0] {
	case '\'', '"', '`':
		return nextLiteral(rest)
	case '#':
		if end := strings.IndexAny(rest, "\r\n"); end >= 0 {
			rest = rest[:end]
		}
		return part{comment, rest}, nil
	case '$':
		return nextPlaceholder(rest)
	}
	if end := strings.IndexAny(rest, "'\"`#$"); end >= 0 {
		rest = rest[:end]
	}
	return part{code, rest}, nil
}

func nextPlaceholder(rest string) (part, error) {
	switch found := name.FindString(rest); found {
	case "$namespace", "$target":
		return part{placeholder, found}, nil
	case "":
		return part{}, errors.New(`"$" stands outside a string and begins no placeholder; $namespace and $target are the placeholders`)
	default:
		return part{}, fmt.Errorf("unknown placeholder %s; $namespace and $target are the placeholders", excerpt(found))
	}
}

func nextLiteral(rest string) (part, error) {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			text := rest[:i+1]
			if found := quotedPlaceholder.FindStringSubmatch(text); found != nil {
				return part{}, fmt.Errorf("placeholder $%[1]s stands inside a string; drop the quotes, as in label=$%[1]s: the value is quoted when it is put in", found[1])
			}
			return part{literal, text}, nil
		case c == '\\' && quote != '`':
			i++
		case c == '\n' && quote != '`':
			return part{}, fmt.Errorf("string that begins with %c does not end on its line", quote)
		}
	}
	return part{}, fmt.Errorf("string that begins with %c has no end", quote)
}
