package report

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// table prints the changes of the count, and then the summary.
type table struct {
	w       io.Writer
	subject *Subject
	name    int // the width of the names' column
	printed bool
	err     error
}

// NewTable is for a terminal.
func NewTable(w io.Writer, s *Subject) Writer {
	t := &table{w: w, subject: s}
	for _, name := range s.Autoscalers {
		t.name = max(t.name, len(name))
	}
	t.name = max(t.name, len("AUTOSCALER"))
	return t
}

func (t *table) printf(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// The columns are of a fixed width: all lines before one are not known when it is printed.
const changeFormat = "%-24s  %5v  %5v  %5v  %11v  %-22s  %s\n"

// Step writes a change.
func (t *table) Step(step *simulate.Step) error {
	if step.Before == step.Replicas {
		return nil
	}
	if !t.printed {
		t.printed = true
		t.named("AUTOSCALER")
		t.printf(changeFormat, "TIME", "FROM", "TO", "READY", "RECOMMENDED", "LIMITED BY", "LOAD")
	}
	t.named(t.subject.Autoscalers[step.Of])
	t.printf(changeFormat, timestamp(step.At), step.Before, step.Replicas, step.Ready, cmp.Or(recommended(step), "-"), cmp.Or(step.Rule, "-"), values(step))
	return t.err
}

func (t *table) named(name string) {
	if t.subject.several() {
		t.printf("%-*s  ", t.name, name)
	}
}

// Moment is in the summary.
func (t *table) Moment(*simulate.Moment) {}

// Close writes the summary.
func (t *table) Close(summaries []simulate.Summary) error {
	if !t.printed {
		t.printf("The count never changes.\n")
	}
	t.printf("\n")
	if t.err != nil {
		return t.err
	}
	w := tabwriter.NewWriter(t.w, 0, 0, 3, ' ', 0)
	for _, row := range summaryRows(t.subject, summaries) {
		fmt.Fprint(w, row.label)
		for _, text := range row.texts {
			fmt.Fprint(w, "\t", text)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
