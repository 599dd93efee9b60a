package report

import (
	"cmp"
	_ "embed"
	"html/template"
	"io"
	"math"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// maxChanges bounds the changes that a page lists.
const maxChanges = 500

// page is the HTML report: one file that needs no network.
type page struct {
	w       io.Writer
	columns *columns
	changes []change
	// more changes than are listed.
	more int
}

// change is one change of the count.
type change struct {
	Time, Autoscaler, Recommended, Rule, Load string
	From, To, Ready                           int32
}

// NewHTML is a page with the chart, the summary and the changes.
func NewHTML(w io.Writer, s *Subject) Writer { return &page{w: w, columns: newColumns(s)} }

// Moment takes a moment.
func (p *page) Moment(m *simulate.Moment) { p.columns.measure(m) }

// Step takes a step.
func (p *page) Step(s *simulate.Step) error {
	p.columns.add(s)
	switch {
	case s.Before == s.Replicas:
	case len(p.changes) == maxChanges:
		p.more++
	default:
		p.changes = append(p.changes, change{
			Time: timestamp(s.At), Autoscaler: p.columns.subject.Autoscalers[s.Of], From: s.Before, To: s.Replicas,
			Ready: s.Ready, Recommended: cmp.Or(recommended(s), "-"), Rule: cmp.Or(s.Rule, "-"), Load: values(s),
		})
	}
	return nil
}

// pointer is what the page shows of the time under the pointer.
type pointer struct {
	Left    float64     `json:"left"`
	Right   float64     `json:"right"`
	Start   float64     `json:"start"`
	Width   float64     `json:"width"`
	End     float64     `json:"end"`
	Series  []namedData `json:"series"`
	Invalid []bool      `json:"invalid"`
}

type namedData struct {
	Name  string `json:"name"`
	Color string `json:"color"`
	// Values has the lowest and the highest of each column, null where there is none.
	Values [][]float64 `json:"values"`
}

// Close writes the page.
func (p *page) Close(summaries []simulate.Summary) error {
	c := &chart{columns: p.columns, summaries: summaries}
	if len(c.all) == 0 {
		return errNothing
	}
	svg, where, err := c.inline()
	if err != nil {
		return err
	}
	return pageTemplate.Execute(p.w, map[string]any{
		"Title": c.subject.Title, "Several": c.subject.several(),
		"From": timestamp(c.start), "To": timestamp(c.end),
		"Chart":   template.HTML(svg), //nolint:gosec // our own drawing, whose texts are escaped
		"Names":   c.subject.Autoscalers,
		"Summary": pageRows(c.subject, summaries), "Changes": p.changes, "More": p.more,
		"Pointer": c.pointer(where),
	})
}

type pageRow struct {
	Label, Why string
	Texts      []string
}

func pageRows(s *Subject, summaries []simulate.Summary) []pageRow {
	var rows []pageRow
	for _, r := range summaryRows(s, summaries)[1:] {
		rows = append(rows, pageRow{Label: r.label, Why: r.why, Texts: r.texts})
	}
	return rows
}

func (c *chart) pointer(where geometry) pointer {
	width := chartWidth.Points()
	p := pointer{
		Left: where.left / width, Right: where.right / width,
		Start: seconds(c.start), End: seconds(c.end), Width: c.width.Seconds(),
	}
	add := func(name, color string, pick func(*column) *extent) {
		d := namedData{Name: name, Color: color}
		for i := range c.all {
			e := pick(&c.all[i])
			if !e.known {
				d.Values = append(d.Values, nil)
				continue
			}
			d.Values = append(d.Values, []float64{rounded(e.low), rounded(e.high)})
		}
		p.Series = append(p.Series, d)
	}
	for i, m := range c.subject.Metrics {
		add("load "+m.Name, hex(ink), func(at *column) *extent { return &at.loads[i] })
	}
	for i := range c.subject.Autoscalers {
		of := c.whose(i)
		add("capacity"+of, hex(colorOf(i)), func(at *column) *extent { return &at.capacity[i] })
		add("replicas"+of, hex(colorOf(i)), func(at *column) *extent { return &at.replicas[i] })
		add("ready"+of, hex(lighter(colorOf(i))), func(at *column) *extent { return &at.ready[i] })
	}
	add("recommended", hex(demand), func(at *column) *extent { return &at.demand })
	add("desired", hex(demand), func(at *column) *extent { return &at.desired })
	add("minimum", hex(faint), func(at *column) *extent { return &at.low })
	add("maximum", hex(faint), func(at *column) *extent { return &at.high })
	for i := range c.all {
		p.Invalid = append(p.Invalid, c.all[i].invalid)
	}
	return p
}

// rounded has the digits that a person reads.
func rounded(v float64) float64 {
	if math.Abs(v) >= 1e12 {
		return v
	}
	return math.Round(v*1000) / 1000
}
