package report

import (
	"bytes"
	"errors"
	"io"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

var errNothing = errors.New("the recording has no value in the range that was to be played")

// picture keeps the columns of a chart and draws it when all have come.
type picture struct {
	w       io.Writer
	columns *columns
	write   func(w io.Writer, c *chart) error
}

// Moment takes a moment.
func (p *picture) Moment(m *simulate.Moment) { p.columns.measure(m) }

// Step takes a step.
func (p *picture) Step(s *simulate.Step) error {
	p.columns.add(s)
	return nil
}

// Close draws the chart.
func (p *picture) Close(summaries []simulate.Summary) error {
	if len(p.columns.all) == 0 {
		return errNothing
	}
	return p.write(p.w, &chart{columns: p.columns, summaries: summaries})
}

// NewSVG is a chart that can be made larger.
func NewSVG(w io.Writer, s *Subject) Writer {
	return &picture{w: w, columns: newColumns(s), write: func(w io.Writer, c *chart) error {
		_, err := c.svg(w)
		return err
	}}
}

// NewPNG is a chart for a pull request.
func NewPNG(w io.Writer, s *Subject) Writer {
	return &picture{w: w, columns: newColumns(s), write: func(w io.Writer, c *chart) error {
		canvas := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight), vgimg.UseDPI(144))
		c.draw(draw.New(canvas))
		_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
		return err
	}}
}

func (c *chart) svg(w io.Writer) (geometry, error) {
	canvas := vgsvg.New(chartWidth, chartHeight)
	where := c.draw(draw.New(canvas))
	_, err := canvas.WriteTo(w)
	return where, err
}

// inline is the chart as a part of a page: an SVG without the head of a document.
func (c *chart) inline() (string, geometry, error) {
	var b bytes.Buffer
	where, err := c.svg(&b)
	if err != nil {
		return "", where, err
	}
	svg := b.Bytes()
	if begin := bytes.Index(svg, []byte("<svg")); begin > 0 {
		svg = svg[begin:]
	}
	return string(svg), where, nil
}
