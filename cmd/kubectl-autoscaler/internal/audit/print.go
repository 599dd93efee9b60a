package audit

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// formats of the output, by their names.
var formats = map[string]func(w io.Writer, entries []Entry, now time.Time, headers bool) error{
	"": func(w io.Writer, entries []Entry, now time.Time, headers bool) error {
		return table(w, entries, now, headers, false)
	},
	"wide": func(w io.Writer, entries []Entry, now time.Time, headers bool) error {
		return table(w, entries, now, headers, true)
	},
	"json": func(w io.Writer, entries []Entry, _ time.Time, _ bool) error { return toJSON(w, entries) },
	"csv":  func(w io.Writer, entries []Entry, _ time.Time, headers bool) error { return toCSV(w, entries, headers) },
}

// table is for people. Wide adds who claimed it, and all writers.
func table(out io.Writer, entries []Entry, now time.Time, headers, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	line := func(cells, more []string, last string) {
		if wide {
			cells = append(cells, more...)
		}
		for i := range cells {
			cells[i] = cli.Plain(cells[i])
		}
		fmt.Fprintln(w, strings.Join(append(cells, cli.Plain(last)), "\t"))
	}
	if headers {
		line([]string{"NAMESPACE", "DEPLOYMENT", "REPLICAS", "STATE", "OWNER", "EPOCH", "GUARD", "LAST FOREIGN WRITE"}, []string{"CLAIMED BY", "WRITERS"}, "WHY")
	}
	for i := range entries {
		e := &entries[i]
		epoch, guard, claimed := "-", "-", "-"
		if b := e.Binding; b != nil {
			epoch, guard, claimed = strconv.FormatInt(b.Epoch, 10), string(b.Guard), cmp.Or(b.ClaimedBy, "-")
		}
		line([]string{e.Namespace, e.Deployment, strconv.Itoa(int(e.Replicas)), string(e.State), cmp.Or(e.Owner(), "-"), epoch, guard, written(e.LastForeignWrite, now)},
			[]string{claimed, cmp.Or(allWriters(e.Writers, now), "-")}, cmp.Or(strings.Join(e.Why, "; "), "-"))
	}
	return w.Flush()
}

// Owner is who has the count, or would have it if they were alone; empty for nobody.
func (e *Entry) Owner() string {
	var all []Manager
	if e.Binding != nil && e.State != Managed {
		all = append(all, Manager{Kind: "AutoScaler", Name: e.Binding.AutoScaler})
	}
	return named(append(all, independent(e.Managers)...))
}

func named(managers []Manager) string {
	names := make([]string, len(managers))
	for i, m := range managers {
		names[i] = m.String()
	}
	return strings.Join(names, " and ")
}

func written(w *Writer, now time.Time) string {
	if w == nil {
		return "-"
	}
	if w.Time.IsZero() {
		return cmp.Or(w.Manager, "-")
	}
	return fmt.Sprintf("%s, %s ago", cmp.Or(w.Manager, "-"), duration.HumanDuration(now.Sub(w.Time)))
}

func allWriters(writers []Writer, now time.Time) string {
	texts := make([]string, len(writers))
	for i := range writers {
		texts[i] = written(&writers[i], now)
	}
	return strings.Join(texts, "; ")
}

func toJSON(w io.Writer, entries []Entry) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if entries == nil {
		entries = []Entry{}
	}
	return encoder.Encode(map[string]any{"deployments": entries})
}

// toCSV is for spreadsheets: one line a Deployment, times in RFC 3339.
func toCSV(out io.Writer, entries []Entry, headers bool) error {
	w := csv.NewWriter(out)
	if headers {
		_ = w.Write([]string{ // Flush tells of an error
			"namespace", "deployment", "replicas", "ready_replicas", "state", "owner", "phase", "epoch", "guard", "claimed_by", "claimed_at",
			"managers", "writers", "last_foreign_writer", "last_foreign_write", "why",
		})
	}
	for i := range entries {
		e := &entries[i]
		binding := make([]string, 5)
		if b := e.Binding; b != nil {
			binding = []string{string(b.Phase), strconv.FormatInt(b.Epoch, 10), string(b.Guard), b.ClaimedBy, ""}
			if b.ClaimedAt != nil {
				binding[4] = b.ClaimedAt.UTC().Format(time.RFC3339)
			}
		}
		foreign, at := "", ""
		if f := e.LastForeignWrite; f != nil {
			foreign = f.Manager
			if !f.Time.IsZero() {
				at = f.Time.Format(time.RFC3339)
			}
		}
		names := make([]string, len(e.Writers))
		for i, w := range e.Writers {
			names[i] = w.Manager
		}
		line := []string{e.Namespace, e.Deployment, strconv.Itoa(int(e.Replicas)), strconv.Itoa(int(e.Ready)), string(e.State), e.Owner()}
		line = append(line, binding...)
		line = append(line, named(e.Managers), strings.Join(names, " "), foreign, at, strings.Join(e.Why, "; "))
		_ = w.Write(harmless(line))
	}
	w.Flush()
	return w.Error()
}

// harmless keeps a spreadsheet from taking a text for a formula, and a terminal for orders.
func harmless(line []string) []string {
	for i, s := range line {
		s = cli.Plain(s)
		if line[i] = s; s != "" && strings.ContainsAny(s[:1], "=+-@") {
			line[i] = "'" + s
		}
	}
	return line
}

// summary says how many Deployments are in each state.
func summary(entries []Entry, color cli.Color) string {
	counts := map[State]int{}
	for i := range entries {
		counts[entries[i].State]++
	}
	parts := make([]string, 0, len(states))
	for _, s := range states {
		if n := counts[s]; n > 0 {
			text := fmt.Sprintf("%d %s", n, s)
			if s == Contested {
				text = color.Bad(text)
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "no Deployments"
	}
	things := "Deployments"
	if len(entries) == 1 {
		things = "Deployment"
	}
	return fmt.Sprintf("%d %s: %s", len(entries), things, strings.Join(parts, ", "))
}
