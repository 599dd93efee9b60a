package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

// Level is how much a finding matters.
type Level string

// Levels, the gravest first.
const (
	// LevelError: it would be refused, or cannot be read.
	LevelError Level = "error"
	// LevelWarning: legal, and hardly meant.
	LevelWarning Level = "warning"
	// LevelNote: it cannot be told from the given files.
	LevelNote Level = "note"
)

// Rule is who finds it.
type Rule string

// Rules, in the order in which an object meets them.
const (
	// RuleReadable: the file cannot be read as manifests.
	RuleReadable Rule = "readable"
	// RuleFields: unknown fields, and fields that stand twice.
	RuleFields Rule = "fields"
	// RuleSchema: types, bounds and rules of the CRDs.
	RuleSchema Rule = "schema"
	// RuleAdmission: the operator's webhooks.
	RuleAdmission Rule = "admission"
	// RuleSet: how the given objects go together.
	RuleSet Rule = "set"
	// RuleServer: the answer of the cluster.
	RuleServer Rule = "server"
)

// ruleTexts say what a rule is about.
var ruleTexts = map[Rule]string{
	RuleReadable:  "The file is not readable as Kubernetes manifests",
	RuleFields:    "Fields that the API does not know, or that stand twice",
	RuleSchema:    "The schema and the rules of the CustomResourceDefinitions",
	RuleAdmission: "The admission webhooks of the autoscale-operator",
	RuleSet:       "How the given objects go together",
	RuleServer:    "A dry run on the API server",
}

// Finding is one thing that was found.
type Finding struct {
	Level Level
	Rule  Rule
	Place manifest.Place
	// Object is kind and name, as in "AutoScaler production/web"; empty for a file.
	Object string
	// Field is the path of the field, or empty.
	Field   string
	Message string
	// See is another place that has to do with it.
	See *manifest.Place
}

// Text is what the finding says, with its field.
func (f *Finding) Text() string {
	if f.Field == "" || strings.Contains(f.Message, `"`+f.Field+`"`) {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// Report is all that one run found.
type Report struct {
	Findings []Finding
	// Files that were opened, and Checked and Ignored objects in them.
	Files, Checked, Ignored int
}

// Bounds of a report: what is wrong with the first hundred fields of an object is wrong
// with the others.
const (
	maxPerObject = 100
	maxMessage   = 1024
)

// add takes the findings of one object.
func (r *Report) add(all []Finding) {
	more := len(all) - maxPerObject
	if more > 0 {
		last := all[maxPerObject]
		last.Field, last.Message, last.See = "", fmt.Sprintf("and %d more findings for this object", more), nil
		all = append(all[:maxPerObject:maxPerObject], last)
	}
	for _, f := range all {
		f.Object, f.Field, f.Message = bounded(f.Object), bounded(f.Field), bounded(f.Message)
		r.Findings = append(r.Findings, f)
	}
}

// bounded is a text that neither moves a terminal's cursor nor fills its screen.
func bounded(s string) string {
	if len(s) <= maxMessage {
		return cli.Plain(s)
	}
	end := maxMessage
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return cli.Plain(s[:end]) + "..."
}

// sort puts findings in the order of the files, as they were read.
func (r *Report) sort(order map[string]int) {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(order[a.Place.File], order[b.Place.File]),
			cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column),
		)
	})
}

// count of a level.
func (r *Report) count(level Level) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Level == level {
			n++
		}
	}
	return n
}

// unread counts what could not be read.
func (r *Report) unread() int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Rule == RuleReadable {
			n++
		}
	}
	return n
}
