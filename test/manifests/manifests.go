// Package manifests is a corpus of objects that the operator must accept or refuse:
// one case a file, named by what it shows, as a user would write it. The comment
// that a file begins with says why, and what is expected:
//
//	# given: deployment, profile         files of the folder given, created before
//	# as: operator                       who sends it; an administrator otherwise
//	# expect: spec.maxReplicas: message  a cause of the refusal, by field; one line each
//	# refused: message                   the whole answer, where it names no causes
//	# warn: message                      a warning that comes with an admission
//
// In a message, … stands for any text. A file's last document is what the case is
// about; those before it are created first. The corpus is for everything that claims
// to know what is valid: the API server with the operator's webhooks, and the command
// line.
package manifests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed valid invalid given
var files embed.FS

// Namespace is the one that the manifests are written for. Who wants to try each case
// in a namespace of its own replaces this name in Raw and in the expectations.
const Namespace = "production"

// Case is one file.
type Case struct {
	// Name of the file without its extension, such as "invalid/min-replicas-of-zero".
	Name string
	// Valid says whether the object is to be accepted.
	Valid bool
	// Given are the objects that are there before, in order.
	Given []Document
	// Object is what the case is about.
	Object Document
	// AsOperator says that the operator sends the object, not an administrator.
	AsOperator bool
	// Causes are all that a refusal must name, in any order.
	Causes []Cause
	// Refused is the whole answer where it has no causes.
	Refused Text
	// Warnings are all that must come with an admission.
	Warnings []Text
}

// Document is one YAML document.
type Document struct {
	// Raw is the document as it is written.
	Raw []byte
	// Object is the document decoded; keys that stand twice are not told.
	Object *unstructured.Unstructured
}

// Cause is one reason of a refusal.
type Cause struct {
	// Field is the path of the field, as in spec.metrics[0].name.
	Field string
	// Message is what is said of it.
	Message Text
}

// Text is what a message must be; … stands for any text.
type Text string

// Matches says whether a message is as expected.
func (t Text) Matches(message string) bool {
	parts := strings.Split(string(t), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^(?s:" + strings.Join(parts, ".*") + ")$").MatchString(message)
}

// Load reads the corpus. The error tells every file that is not a proper case, such
// as an invalid one that expects nothing.
func Load() ([]Case, error) {
	var cases []Case
	var errs []error
	for _, folder := range []string{"invalid", "valid"} {
		entries, err := files.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			c, err := read(folder, entry.Name())
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path.Join(folder, entry.Name()), err))
				continue
			}
			cases = append(cases, *c)
		}
	}
	return cases, errors.Join(errs...)
}

func read(folder, name string) (*Case, error) {
	base, isYAML := strings.CutSuffix(name, ".yaml")
	if !isYAML {
		return nil, errors.New("is no .yaml file")
	}
	data, err := files.ReadFile(path.Join(folder, name))
	if err != nil {
		return nil, err
	}
	return parse(folder, base, data)
}

func parse(folder, base string, data []byte) (*Case, error) {
	c := &Case{Name: folder + "/" + base, Valid: folder == "valid"}
	if err := c.readComment(data); err != nil {
		return nil, err
	}
	documents, err := split(data)
	if err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		return nil, errors.New("has no object")
	}
	c.Given = append(c.Given, documents[:len(documents)-1]...)
	c.Object = documents[len(documents)-1]
	if err := c.complete(); err != nil {
		return nil, err
	}
	return c, nil
}

// complete refuses a case that could not fail.
func (c *Case) complete() error {
	expected := len(c.Causes)
	if c.Refused != "" {
		expected++
	}
	switch {
	case c.Valid && expected > 0:
		return errors.New("is valid and expects a refusal")
	case !c.Valid && expected == 0:
		return errors.New("is invalid and expects nothing; add # expect: field: message")
	case !c.Valid && len(c.Warnings) > 0:
		return errors.New("is invalid and expects a warning")
	case c.Refused != "" && len(c.Causes) > 0:
		return errors.New("expects causes, and an answer without causes")
	}
	return nil
}

// directive is a line of a comment that is meant for the machine. What looks like
// one and is none is a typing mistake, not prose.
var directive = regexp.MustCompile(`^# ?([a-z-]+): ?(.*)$`)

func (c *Case) readComment(data []byte) error {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "#") {
			return nil
		}
		found := directive.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if err := c.direct(found[1], found[2]); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

func (c *Case) direct(word, text string) error {
	if text == "" {
		return errors.New("says nothing")
	}
	switch word {
	case "given":
		return c.give(strings.Split(text, ", "))
	case "as":
		c.AsOperator = true
		if text != "operator" {
			return errors.New("only the operator is known beside an administrator")
		}
	case "expect":
		field, message, found := strings.Cut(text, ": ")
		if !found {
			return errors.New("write field: message")
		}
		c.Causes = append(c.Causes, Cause{Field: field, Message: Text(message)})
	case "refused":
		c.Refused = Text(text)
	case "warn":
		c.Warnings = append(c.Warnings, Text(text))
	default:
		return errors.New("is no directive; given, as, expect, refused and warn are")
	}
	return nil
}

// give adds files of the folder given.
func (c *Case) give(names []string) error {
	for _, name := range names {
		data, err := files.ReadFile(path.Join("given", name+".yaml"))
		if err != nil {
			return err
		}
		documents, err := split(data)
		if err != nil {
			return err
		}
		c.Given = append(c.Given, documents...)
	}
	return nil
}

var separator = regexp.MustCompile(`(?m)^---$`)

func split(data []byte) ([]Document, error) {
	var documents []Document
	for _, raw := range separator.Split(string(data), -1) {
		d := Document{Raw: []byte(raw), Object: &unstructured.Unstructured{}}
		if err := yaml.Unmarshal(d.Raw, &d.Object.Object); err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(d.Raw)) == 0 || d.Object.Object == nil {
			continue // nothing, or comments only
		}
		if d.Object.GetKind() == "" || d.Object.GetAPIVersion() == "" {
			return nil, errors.New("a document has no apiVersion or kind")
		}
		documents = append(documents, d)
	}
	return documents, nil
}
