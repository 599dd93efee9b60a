package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// row is one fact about each autoscaler.
type row struct {
	label string
	texts []string
	// why explains the fact, where its name does not.
	why string
}

var facts = []struct {
	label, why string
	text       func(s *simulate.Summary) string
}{
	{"played", "the recorded time", func(s *simulate.Summary) string { return s.Played.String() }},
	{"replica-hours", "what was asked for, over time", func(s *simulate.Summary) string { return fmt.Sprintf("%.1f", s.ReplicaHours()) }},
	{"replicas", "on average, and from the lowest to the highest", func(s *simulate.Summary) string {
		return fmt.Sprintf("%.1f (%d to %d)", s.Mean(), s.Lowest, s.Highest)
	}},
	{"under-provisioned", "the time with fewer ready replicas than the load needed", func(s *simulate.Summary) string { return share(s.Under, s.Played) }},
	{"worst shortfall", "when most were missing", worst},
	{"load unknown", "the time in which a metric was not valid", func(s *simulate.Summary) string { return share(s.Unknown, s.Played) }},
	{"changes", "of the count", func(s *simulate.Summary) string {
		return fmt.Sprintf("%d (%d up, %d down)", s.Ups+s.Downs, s.Ups, s.Downs)
	}},
	{"flaps", "changes that turned back within " + simulate.FlapsWithin.String(), func(s *simulate.Summary) string { return fmt.Sprint(s.Flaps) }},
}

func worst(s *simulate.Summary) string {
	if s.Worst.Missing() <= 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%d of %d ready at %s)", s.Worst.Missing(), s.Worst.Ready, s.Worst.Needed, timestamp(s.Worst.At))
}

func share(part, of time.Duration) string {
	if part == 0 {
		return "0s"
	}
	return fmt.Sprintf("%s (%s)", part, percent(100*part.Seconds()/of.Seconds()))
}

// percent has two digits that matter, and is 100 % or 0 % only where it is.
func percent(v float64) string {
	digits := 0
	switch {
	case v < 0.01:
		return "<0.01%"
	case v < 0.1:
		digits = 3
	case v < 1:
		digits = 2
	case v < 9.95 || v >= 99 && v < 99.9:
		digits = 1
	case v >= 99.9 && v < 100:
		return ">99.9%"
	}
	return trimmed(v, digits) + "%"
}

// summaryRows are the names, the facts, and the time for which each rule kept the count
// from the raw demand.
func summaryRows(s *Subject, summaries []simulate.Summary) []row {
	rows := []row{{label: "SUMMARY", texts: s.Autoscalers}}
	for _, f := range facts {
		r := row{label: f.label, why: f.why}
		for i := range summaries {
			r.texts = append(r.texts, f.text(&summaries[i]))
		}
		rows = append(rows, r)
	}
	rules := map[string]bool{}
	for i := range summaries {
		for rule := range summaries[i].Limited {
			rules[rule] = true
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		r := row{label: "limited by " + rule}
		for i := range summaries {
			r.texts = append(r.texts, share(summaries[i].Limited[rule], summaries[i].Played))
		}
		rows = append(rows, r)
	}
	return rows
}

// sentence is what matters most of a summary, in one line.
func sentence(name string, s *simulate.Summary) string {
	parts := []string{
		fmt.Sprintf("%.1f replica-hours", s.ReplicaHours()),
		counted(s.Ups+s.Downs, "change"),
		"short of replicas for " + share(s.Under, s.Played),
	}
	if s.Flaps > 0 {
		parts = append(parts, counted(s.Flaps, "flap"))
	}
	return name + ": " + strings.Join(parts, ", ")
}

func counted(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprintf("%d %s", n, of)
}
