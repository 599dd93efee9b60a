package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// What the YAML package says of a mistake is for who wrote the program: it names types
// of Go, and takes a line for each.
var (
	fieldUnknown = regexp.MustCompile(`^(line \d+): field (.+) not found in type .+$`)
	fieldTwice   = regexp.MustCompile(`^(line \d+): (?:field|key) (.+) already set in .+$`)
	wrongKind    = regexp.MustCompile("(?s)^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)$")
)

// kinds are what YAML calls what is written.
var kinds = map[string]string{
	"seq": "a list", "map": "a field with others below it", "str": "a text", "int": "a number", "float": "a number",
	"bool": "true or false", "null": "nothing", "timestamp": "a time", "binary": "binary data",
}

// expected is what may be written, by the type that it is for. A type that is not here
// is one with fields.
var expected = map[string]string{
	"int32": "a whole number below 2147483648", "bool": "true or false", "string": "a text",
	reflect.TypeFor[Managers]().String(): "a list",
	reflect.TypeFor[Rules]().String():    "a list",
}

// maxMistakes is how many one answer tells.
const maxMistakes = 10

// oneLine is an error of the YAML package as who writes a configuration can use it: all
// mistakes with their lines of the file, in one line.
func oneLine(err error) error {
	var mistakes *yaml.TypeError
	if !errors.As(err, &mistakes) {
		return errors.New(strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
	}
	var said []string
	for _, mistake := range mistakes.Errors {
		said = append(said, plain(mistake))
	}
	said = slices.Compact(said)
	if more := len(said) - maxMistakes; more > 0 {
		said = append(said[:maxMistakes], fmt.Sprintf("and %d more mistakes", more))
	}
	return errors.New(strings.Join(said, "; "))
}

func plain(mistake string) string {
	if m := fieldUnknown.FindStringSubmatch(mistake); m != nil {
		return fmt.Sprintf("%s: there is no field %s here", m[1], m[2])
	}
	if m := fieldTwice.FindStringSubmatch(mistake); m != nil {
		return fmt.Sprintf("%s: %s is there twice", m[1], m[2])
	}
	m := wrongKind.FindStringSubmatch(mistake)
	if m == nil {
		return mistake
	}
	found := kinds[m[2]]
	if m[3] != "" {
		found = fmt.Sprintf("%q", m[3])
	}
	want, known := expected[strings.TrimPrefix(m[4], "*")]
	switch {
	case known:
	case strings.HasPrefix(m[4], "[]"):
		want = "a list"
	default:
		want = "a field with others below it"
	}
	return fmt.Sprintf("%s: %s is not %s", m[1], found, want)
}
