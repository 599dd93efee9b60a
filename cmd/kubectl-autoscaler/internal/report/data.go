package report

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// commaSeparated is every decision, as CSV.
type commaSeparated struct {
	csv     *csv.Writer
	subject *Subject
	record  []string
}

// NewCSV has a line for each decision.
func NewCSV(w io.Writer, s *Subject) Writer {
	c := &commaSeparated{csv: csv.NewWriter(w), subject: s}
	header := []string{"time", "autoscaler", "seconds", "before", "replicas", "ready", "recommended", "desired", "needed", "underProvisionedSeconds", "loadUnknownSeconds", "min", "max", "rule", "schedules"}
	for _, m := range s.Metrics {
		header = append(header, m.Name, m.Name+":invalid")
		if m.Clearance > 0 {
			header = append(header, m.Name+":arrivals")
		}
	}
	_ = c.csv.Write(header) // an error stays, and the next write gives it
	return c
}

// Moment is summed up in the step.
func (c *commaSeparated) Moment(*simulate.Moment) {}

// Step writes a line.
func (c *commaSeparated) Step(s *simulate.Step) error {
	needed := ""
	if s.Known {
		needed = count(s.Needed)
	}
	c.record = append(c.record[:0], timestamp(s.At), c.subject.Autoscalers[s.Of], float(s.For.Seconds()),
		count(s.Before), count(s.Replicas), count(s.Ready), recommended(s), count(s.Desired), needed,
		float(s.Under.Seconds()), float(s.Unknown.Seconds()), count(s.Min), count(s.Max), s.Rule, strings.Join(s.Schedules, " "))
	for i := range s.Load {
		l, text, invalid := &s.Load[i], "", ""
		if !l.Absent {
			text = float(l.Value)
		}
		if i < len(s.Invalid) {
			invalid = s.Invalid[i]
		}
		c.record = append(c.record, text, invalid)
		if c.subject.Metrics[i].Clearance > 0 {
			c.record = append(c.record, float(l.Arrivals))
		}
	}
	return c.csv.Write(c.record)
}

// Close writes what is left.
func (c *commaSeparated) Close([]simulate.Summary) error {
	c.csv.Flush()
	return c.csv.Error()
}

func count(n int32) string { return strconv.Itoa(int(n)) }

// float has an exponent only where the number would be written out very long, as in JSON.
func float(v float64) string {
	if abs := math.Abs(v); abs >= 1e21 || abs < 1e-6 && abs > 0 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// recommended is empty where nothing is.
func recommended(s *simulate.Step) string {
	if s.Blind {
		return ""
	}
	return count(s.Recommended)
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// document is every decision, and the summaries, as JSON.
type document struct {
	w       *bufio.Writer
	subject *Subject
	begun   bool
}

// NewJSON has an object for each decision, in one line each.
func NewJSON(w io.Writer, s *Subject) Writer { return &document{w: bufio.NewWriter(w), subject: s} }

// poll is a step as JSON has it.
type poll struct {
	Autoscaler  string              `json:"autoscaler"`
	Time        time.Time           `json:"time"`
	Seconds     float64             `json:"seconds"`
	Before      int32               `json:"before"`
	Replicas    int32               `json:"replicas"`
	Ready       int32               `json:"ready"`
	Recommended *int32              `json:"recommended"`
	Desired     int32               `json:"desired"`
	Needed      *int32              `json:"needed"`
	Under       float64             `json:"underProvisionedSeconds"`
	Unknown     float64             `json:"loadUnknownSeconds"`
	Min         int32               `json:"min"`
	Max         int32               `json:"max"`
	Rule        string              `json:"rule,omitempty"`
	Schedules   []string            `json:"schedules,omitempty"`
	Load        map[string]*float64 `json:"load"`
	Arrivals    map[string]*float64 `json:"arrivals,omitempty"`
	Invalid     map[string]string   `json:"invalid,omitempty"`
}

// Moment is summed up in the step.
func (d *document) Moment(*simulate.Moment) {}

// Step writes a step of the document.
func (d *document) Step(s *simulate.Step) error {
	p := poll{
		Autoscaler: d.subject.Autoscalers[s.Of], Time: s.At.UTC(), Seconds: s.For.Seconds(),
		Before: s.Before, Replicas: s.Replicas, Ready: s.Ready, Desired: s.Desired,
		Under: s.Under.Seconds(), Unknown: s.Unknown.Seconds(),
		Min: s.Min, Max: s.Max, Rule: s.Rule, Schedules: s.Schedules, Load: make(map[string]*float64, len(s.Load)),
	}
	if !s.Blind {
		p.Recommended = new(s.Recommended)
	}
	if s.Known {
		p.Needed = new(s.Needed)
	}
	for i, l := range s.Load {
		m := &d.subject.Metrics[i]
		p.Load[m.Name] = nil
		if !l.Absent {
			p.Load[m.Name] = finite(l.Value)
		}
		if m.Clearance > 0 {
			if p.Arrivals == nil {
				p.Arrivals = map[string]*float64{}
			}
			p.Arrivals[m.Name] = finite(l.Arrivals)
		}
		if i < len(s.Invalid) && s.Invalid[i] != "" {
			if p.Invalid == nil {
				p.Invalid = map[string]string{}
			}
			p.Invalid[m.Name] = s.Invalid[i]
		}
	}
	line, err := json.Marshal(&p)
	if err != nil {
		return err
	}
	separator := ",\n"
	if !d.begun {
		d.begun, separator = true, "{\"polls\":[\n"
	}
	_, _ = d.w.WriteString(separator) // an error stays, and the next write gives it
	_, err = d.w.Write(line)
	return err
}

// total is a summary as JSON has it.
type total struct {
	Autoscaler       string             `json:"autoscaler"`
	PlayedSeconds    float64            `json:"playedSeconds"`
	ReplicaHours     float64            `json:"replicaHours"`
	Mean             float64            `json:"meanReplicas"`
	Lowest           int32              `json:"lowestReplicas"`
	Highest          int32              `json:"highestReplicas"`
	UnderSeconds     float64            `json:"underProvisionedSeconds"`
	Worst            *shortfall         `json:"worstShortfall"`
	UnknownSeconds   float64            `json:"loadUnknownSeconds"`
	Ups              int                `json:"ups"`
	Downs            int                `json:"downs"`
	Flaps            int                `json:"flaps"`
	LimitedBySeconds map[string]float64 `json:"limitedBySeconds"`
}

type shortfall struct {
	Time    time.Time `json:"time"`
	Needed  int32     `json:"needed"`
	Ready   int32     `json:"ready"`
	Missing int32     `json:"missing"`
}

// Close writes the summaries, and ends the document.
func (d *document) Close(summaries []simulate.Summary) error {
	totals := make([]total, len(summaries))
	for i := range summaries {
		s := &summaries[i]
		totals[i] = total{
			Autoscaler: d.subject.Autoscalers[i], PlayedSeconds: s.Played.Seconds(), ReplicaHours: s.ReplicaHours(),
			Mean: s.Mean(), Lowest: s.Lowest, Highest: s.Highest, UnderSeconds: s.Under.Seconds(), UnknownSeconds: s.Unknown.Seconds(),
			Ups: s.Ups, Downs: s.Downs, Flaps: s.Flaps, LimitedBySeconds: map[string]float64{},
		}
		if missing := s.Worst.Missing(); missing > 0 {
			totals[i].Worst = &shortfall{Time: s.Worst.At.UTC(), Needed: s.Worst.Needed, Ready: s.Worst.Ready, Missing: missing}
		}
		for rule, limited := range s.Limited {
			totals[i].LimitedBySeconds[rule] = limited.Seconds()
		}
	}
	if !d.begun {
		_, _ = d.w.WriteString("{\"polls\":[") // as above
	}
	_, _ = d.w.WriteString("\n],\n\"summaries\":")
	text, err := json.Marshal(totals)
	if err != nil {
		return err
	}
	_, _ = d.w.Write(text)
	_, _ = d.w.WriteString("}\n")
	return d.w.Flush()
}
