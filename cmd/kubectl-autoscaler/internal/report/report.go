// Package report writes what a simulation came to, for people, for programs and for pull
// requests. Whatever its form, a report takes one step after the other, and its memory
// does not grow with their number.
package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// Metric is what a report knows of a metric.
type Metric struct {
	// Name is the metric's.
	Name string
	// Target is the load that one replica bears.
	Target float64
	// Clearance is the time in which a backlog is to be worked off; 0 for other metrics.
	Clearance time.Duration
}

// Subject is what a report is about.
type Subject struct {
	// Title is one line.
	Title string
	// Autoscalers are the names of those that are compared; the first one's targets
	// measure all of them.
	Autoscalers []string
	// Metrics are those of the first one.
	Metrics []Metric
	// Interval is the shortest time between two steps, or values of the load.
	Interval time.Duration
}

func (s *Subject) several() bool { return len(s.Autoscalers) > 1 }

// Writer writes one form of a report.
type Writer interface {
	simulate.Recorder // which must not keep what it takes
	// Close ends the report with the summaries, one for each autoscaler.
	Close(summaries []simulate.Summary) error
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// number is a value with the digits that matter, and without an exponent.
func number(v float64) string {
	const large, small = 1e15, 1e-6
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return strconv.FormatFloat(v, 'f', -1, 64)
	case v >= large:
		return ">1000000000000000"
	case v <= -large:
		return "<-1000000000000000"
	case v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs < small && v > 0:
		return "<0.000001"
	case abs < small:
		return ">-0.000001"
	}
	digits := 3 - int(math.Floor(math.Log10(abs)))
	return trimmed(v, digits)
}

// trimmed has at most so many digits after the point, and no 0 at the end.
func trimmed(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// value is what a metric was, or why it is not valid, or both.
func value(step *simulate.Step, i int) string {
	l := &step.Load[i]
	text := "-"
	if !l.Absent {
		text = number(l.Value)
	}
	if l.Arrivals != 0 {
		text += "+" + number(l.Arrivals) + "/s"
	}
	if i < len(step.Invalid) && step.Invalid[i] != "" {
		text += " (" + step.Invalid[i] + ")"
	}
	return text
}

func values(step *simulate.Step) string {
	texts := make([]string, len(step.Load))
	for i := range texts {
		texts[i] = value(step, i)
	}
	return strings.Join(texts, ", ")
}
