package validate

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// writers by the format's name.
var writers = map[string]func(io.Writer, *Report) error{
	"text": writeText, "json": writeJSON, "github": writeGitHub, "sarif": writeSARIF,
}

func formats() []string { return slices.Sorted(maps.Keys(writers)) }

// summary is the last line.
func (r *Report) summary() string {
	return fmt.Sprintf("%s checked in %s, %d of other kinds: %s, %s, %s",
		counted(r.Checked, "object"), counted(r.Files, "file"), r.Ignored,
		counted(r.count(LevelError), "error"), counted(r.count(LevelWarning), "warning"), counted(r.count(LevelNote), "note"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func writeText(out io.Writer, r *Report) error {
	color := cli.NewColor(out)
	levels := map[Level]func(string) string{LevelError: color.Bad, LevelWarning: color.Note, LevelNote: color.Faint}
	var b strings.Builder
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&b, "%s: %s ", cli.Plain(f.Place.String()), levels[f.Level](string(f.Level)+":"))
		if f.Object != "" {
			fmt.Fprintf(&b, "%s: ", f.Object)
		}
		b.WriteString(f.Text())
		if f.See != nil {
			b.WriteString(color.Faint(" (see " + cli.Plain(f.See.String()) + ")"))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, r.summary())
	_, err := io.WriteString(out, b.String())
	return err
}

// jsonReport is the form of -o json. Fields are added to it, and never taken away.
type jsonReport struct {
	Findings []jsonFinding `json:"findings"`
	Summary  jsonSummary   `json:"summary"`
}

type jsonFinding struct {
	Level   Level      `json:"level"`
	Rule    Rule       `json:"rule"`
	File    string     `json:"file"`
	Line    int        `json:"line,omitempty"`
	Column  int        `json:"column,omitempty"`
	Object  string     `json:"object,omitempty"`
	Field   string     `json:"field,omitempty"`
	Message string     `json:"message"`
	See     *jsonPlace `json:"see,omitempty"`
}

type jsonPlace struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

type jsonSummary struct {
	Files    int `json:"files"`
	Checked  int `json:"checked"`
	Ignored  int `json:"ignored"`
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
}

func writeJSON(out io.Writer, r *Report) error {
	report := jsonReport{Findings: []jsonFinding{}, Summary: jsonSummary{
		Files: r.Files, Checked: r.Checked, Ignored: r.Ignored,
		Errors: r.count(LevelError), Warnings: r.count(LevelWarning), Notes: r.count(LevelNote),
	}}
	for i := range r.Findings {
		f := &r.Findings[i]
		one := jsonFinding{
			Level: f.Level, Rule: f.Rule, File: f.Place.File, Line: f.Place.Line, Column: f.Place.Column,
			Object: f.Object, Field: f.Field, Message: f.Message,
		}
		if f.See != nil {
			one.See = &jsonPlace{f.See.File, f.See.Line, f.See.Column}
		}
		report.Findings = append(report.Findings, one)
	}
	return indented(out, report)
}

func indented(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// Commands of GitHub Actions end at a line's end, and their properties at a comma.
var (
	commandText     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func writeGitHub(out io.Writer, r *Report) error {
	var b strings.Builder
	commands := map[Level]string{LevelError: "error", LevelWarning: "warning", LevelNote: "notice"}
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(&b, "::%s file=%s", commands[f.Level], commandProperty.Replace(f.Place.File))
		if f.Place.Line > 0 {
			fmt.Fprintf(&b, ",line=%d,col=%d", f.Place.Line, f.Place.Column)
		}
		if f.Object != "" {
			fmt.Fprintf(&b, ",title=%s", commandProperty.Replace(f.Object))
		}
		fmt.Fprintf(&b, "::%s\n", commandText.Replace(f.Text()))
	}
	fmt.Fprintln(&b, r.summary())
	_, err := io.WriteString(out, b.String())
	return err
}
