package report

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// The size of a chart, and of the strips above its two panels.
const (
	chartWidth  vg.Length = 900
	chartHeight vg.Length = 500
	headHeight  vg.Length = 34
	lineHeight  vg.Length = 15
	margin      vg.Length = 10
)

// The colors. Those of the autoscalers can be told apart by people who do not see red or
// green, and in gray.
var (
	ink     = color.RGBA{R: 0x22, G: 0x2b, B: 0x36, A: 0xff}
	faint   = color.RGBA{R: 0x8a, G: 0x94, B: 0xa0, A: 0xff}
	grid    = color.RGBA{R: 0xe8, G: 0xeb, B: 0xef, A: 0xff}
	demand  = color.RGBA{R: 0x9b, G: 0x59, B: 0xb6, A: 0xff}
	invalid = color.RGBA{R: 0xd5, G: 0xd8, B: 0xdc, A: 0xff}
	short   = color.RGBA{R: 0xfb, G: 0xd9, B: 0xd3, A: 0xff}
	planned = color.RGBA{R: 0xdd, G: 0xf0, B: 0xe4, A: 0xff}
	colors  = []color.RGBA{
		{R: 0x1f, G: 0x5f, B: 0xbf, A: 0xff}, {R: 0xe0, G: 0x7b, B: 0x00, A: 0xff},
		{R: 0x00, G: 0x8b, B: 0x74, A: 0xff}, {R: 0xb0, G: 0x2a, B: 0x6b, A: 0xff},
	}
)

// colorOf an autoscaler.
func colorOf(i int) color.RGBA { return colors[i%len(colors)] }

// lighter is a color halfway to white.
func lighter(of color.Color) color.RGBA {
	c := color.RGBAModel.Convert(of).(color.RGBA)
	half := func(v uint8) uint8 { return v/2 + 128 }
	return color.RGBA{R: half(c.R), G: half(c.G), B: half(c.B), A: 0xff}
}

// translucent is a color through which others are seen.
func translucent(of color.Color) color.Color {
	c := color.NRGBAModel.Convert(of).(color.NRGBA)
	c.A = 0xa0
	return c
}

var dashed = []vg.Length{4, 2}

// chart is drawn from columns.
type chart struct {
	*columns
	summaries []simulate.Summary
	entries   []entry
}

// entry of the legend.
type entry struct {
	name  string
	thumb plot.Thumbnailer
}

// geometry says where in the picture the time axis is, in points from the left.
type geometry struct{ left, right float64 }

// draw draws the whole picture.
func (c *chart) draw(canvas draw.Canvas) geometry {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Path())
	canvas = draw.Crop(canvas, margin, -margin, margin, -margin)
	loads, replicas := c.loads(), c.counts()
	rows := c.legendRows(canvas)
	c.head(canvas)
	c.legend(draw.Crop(canvas, 0, 0, 0, -headHeight-lineHeight*vg.Length(len(c.summaries)-1)), rows)
	above := headHeight + lineHeight*vg.Length(len(c.summaries)-1+len(rows)) + lineHeight/2
	panels := [][]*plot.Plot{{loads}, {replicas}}
	canvases := plot.Align(panels, draw.Tiles{Rows: 2, Cols: 1, PadY: lineHeight}, draw.Crop(canvas, 0, 0, 0, -above))
	for i := range panels {
		panels[i][0].Draw(canvases[i][0])
	}
	data := replicas.DataCanvas(canvases[1][0])
	return geometry{left: data.Min.X.Points(), right: data.Max.X.Points()}
}

func style(size float64, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Length(size)), Handler: plot.DefaultTextHandler,
		XAlign: text.XLeft, YAlign: text.YBottom,
	}
}

// head is the title and what came of each autoscaler.
func (c *chart) head(canvas draw.Canvas) {
	title := style(13, ink)
	canvas.FillText(title, vg.Point{X: canvas.Min.X, Y: canvas.Max.Y - lineHeight}, c.subject.Title)
	for i := range c.summaries {
		line := style(9.5, colorOf(i))
		canvas.FillText(line, vg.Point{X: canvas.Min.X, Y: canvas.Max.Y - lineHeight*vg.Length(i+2)}, sentence(c.subject.Autoscalers[i], &c.summaries[i]))
	}
}

const thumbWidth vg.Length = 22

// width leaves room for a viewer that has another font.
func (e *entry) width() vg.Length { return thumbWidth + 1.15*style(9, ink).Width(e.name) + 20 }

// legendRows breaks the legend into rows.
func (c *chart) legendRows(canvas draw.Canvas) [][]entry {
	var rows [][]entry
	width := canvas.Size().X
	used := width
	for _, e := range c.entries {
		need := e.width()
		if used+need > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += need
	}
	return rows
}

func (c *chart) legend(canvas draw.Canvas, rows [][]entry) {
	sty := style(9, ink)
	for i, row := range rows {
		x, y := canvas.Min.X, canvas.Max.Y-lineHeight*vg.Length(i+1)
		for _, e := range row {
			thumb := canvas
			thumb.Rectangle = vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + thumbWidth, Y: y + 9}}
			e.thumb.Thumbnail(&thumb)
			canvas.FillText(sty, vg.Point{X: x + thumbWidth + 5, Y: y}, e.name)
			x += e.width()
		}
	}
}

// panel is an empty one over the whole time.
func (c *chart) panel(label string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Padding = faint, faint, 0
		axis.Tick.Label.Font, axis.Tick.Label.Color = style(8.5, ink).Font, ink
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = style(9.5, ink).Font, ink
	}
	p.X.Min, p.X.Max = seconds(c.start), seconds(c.end)
	p.X.Tick.Marker = timeTicks{}
	p.Y.Tick.Marker = valueTicks{}
	p.Y.Label.Text, p.Y.Min, p.Y.Max = label, 0, 1
	return p
}

// finish leaves room above the highest value.
func finish(p *plot.Plot) *plot.Plot {
	p.Y.Max *= 1.08
	return p
}

// add draws a quantity; without a name it is not in the legend.
func (c *chart) add(p *plot.Plot, name string, pick func(*column) *extent, s series) {
	s.lines, s.areas = c.points(pick)
	if len(s.lines) == 0 {
		return
	}
	legend := s
	if c.dense(pick) { // its lines fill the picture, and must not hide those behind them
		s.style.Width, s.style.Color = s.style.Width/2, translucent(s.style.Color)
	}
	p.Add(&s)
	p.X.Min, p.X.Max = seconds(c.start), seconds(c.end)
	if name != "" {
		c.entries = append(c.entries, entry{name, &legend})
	}
}

// bands are what happened, behind the lines; names are in the first panel's legend.
func (c *chart) bands(p *plot.Plot, what []band) {
	var labeled labels
	for i := range what {
		b := &what[i]
		if len(b.spans) == 0 {
			continue
		}
		p.Add(b)
		if b.name != "" {
			c.entries = append(c.entries, entry{b.name, b})
		}
		if b.label != "" {
			labeled = append(labeled, *b)
		}
	}
	p.Add(labeled)
	p.Add(gridLines{})
}

func (c *chart) band(name string, of color.RGBA, is func(*column) bool) band {
	b := band{name: name, color: of}
	c.runs(is, func(from, to time.Time) { b.spans = append(b.spans, [2]float64{seconds(from), seconds(to)}) })
	return b
}

// loads is the upper panel: the load, and what the ready replicas can bear.
func (c *chart) loads() *plot.Plot {
	p := c.panel("load (replicas)")
	if len(c.subject.Metrics) == 1 {
		p.Y.Label.Text = "load (" + c.subject.Metrics[0].Name + ")"
	}
	c.bands(p, []band{
		c.band("sample not valid", invalid, func(at *column) bool { return at.invalid }),
		c.band("too few ready"+c.whose(0), short, func(at *column) bool { return at.short }),
	})
	// The load is behind the capacities, which a year of it would paint over.
	for i, m := range c.subject.Metrics {
		name := "load"
		if len(c.subject.Metrics) > 1 {
			name = m.Name
		}
		s := draw.LineStyle{Color: ink, Width: 1.1}
		for range i {
			s.Dashes = append(s.Dashes, dashed...)
			s.Color = lighter(ink)
		}
		c.add(p, name, func(at *column) *extent { return &at.loads[i] }, series{style: s, fill: lighter(lighter(s.Color))})
	}
	for i := range c.subject.Autoscalers {
		c.add(p, "capacity"+c.whose(i), func(at *column) *extent { return &at.capacity[i] }, series{style: draw.LineStyle{Color: colorOf(i), Width: 1.2}})
	}
	return finish(p)
}

// whose names an autoscaler where there are several.
func (c *chart) whose(i int) string {
	if !c.subject.several() {
		return ""
	}
	return " of " + c.subject.Autoscalers[i]
}

// counts is the lower panel: replicas.
func (c *chart) counts() *plot.Plot {
	p := c.panel("replicas")
	var planning []band
	for i, name := range c.names {
		b := c.band("", planned, func(at *column) bool { return at.schedules&(1<<i) != 0 })
		b.label = name
		planning = append(planning, b)
	}
	c.bands(p, planning)
	dotted := series{style: draw.LineStyle{Color: faint, Width: 0.8, Dashes: []vg.Length{1, 2}}}
	c.add(p, "bounds", func(at *column) *extent { return &at.low }, dotted)
	c.add(p, "", func(at *column) *extent { return &at.high }, dotted)
	// Demand far beyond all the rest is cut, and must not flatten it.
	name, top, cut := "recommended", math.Ceil(1.6*c.highest(func(at *column) []extent { return append([]extent{at.high}, at.replicas...) })), false
	if c.highest(func(at *column) []extent { return []extent{at.demand} }) > top {
		name, cut = fmt.Sprintf("recommended (cut at %.0f)", top), true
	}
	c.add(p, name, func(at *column) *extent { return &at.demand }, series{style: draw.LineStyle{Color: demand, Width: 0.8}, cap: top})
	c.add(p, "desired", func(at *column) *extent { return &at.desired }, series{style: draw.LineStyle{Color: demand, Width: 0.9, Dashes: dashed}})
	for i := range c.subject.Autoscalers {
		c.add(p, "ready"+c.whose(i), func(at *column) *extent { return &at.ready[i] }, series{style: draw.LineStyle{Color: lighter(colorOf(i)), Width: 1.1, Dashes: dashed}})
		c.add(p, "replicas"+c.whose(i), func(at *column) *extent { return &at.replicas[i] }, series{style: draw.LineStyle{Color: colorOf(i), Width: 1.6}})
	}
	finish(p)
	if cut {
		p.Y.Max = top // where the line leaves the picture
	}
	return p
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// valueTicks are the usual ones, without exponents.
type valueTicks struct{ plot.DefaultTicks }

// Ticks writes them as the tables do.
func (t valueTicks) Ticks(low, high float64) []plot.Tick {
	ticks := t.DefaultTicks.Ticks(low, high)
	for i := range ticks {
		if !ticks[i].IsMinor() {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}

// timeTicks are at whole steps of the clock, in UTC.
type timeTicks struct{}

var timeSteps = []struct {
	step   time.Duration
	format string
}{
	{15 * time.Second, "15:04:05"}, {time.Minute, "15:04"}, {5 * time.Minute, "15:04"}, {10 * time.Minute, "15:04"}, {30 * time.Minute, "15:04"},
	{time.Hour, "15:04"}, {2 * time.Hour, "15:04"}, {6 * time.Hour, "Jan 2 15:04"}, {12 * time.Hour, "Jan 2 15:04"},
	{24 * time.Hour, "Jan 2"}, {2 * 24 * time.Hour, "Jan 2"}, {7 * 24 * time.Hour, "Jan 2"}, {14 * 24 * time.Hour, "Jan 2"},
	{28 * 24 * time.Hour, "Jan 2 2006"}, {91 * 24 * time.Hour, "Jan 2 2006"}, {365 * 24 * time.Hour, "2006"}, {3650 * 24 * time.Hour, "2006"},
}

// Ticks gives at most a dozen.
func (timeTicks) Ticks(low, high float64) []plot.Tick {
	const most = 13
	chosen := timeSteps[len(timeSteps)-1]
	for _, s := range timeSteps {
		if (high-low)/s.step.Seconds() <= most {
			chosen = s
			break
		}
	}
	step := int64(chosen.step / time.Second)
	var ticks []plot.Tick
	for at := (int64(low) + step - 1) / step * step; float64(at) <= high; at += step {
		t := time.Unix(at, 0).UTC()
		label := t.Format(chosen.format)
		if !strings.Contains(chosen.format, "Jan") && (len(ticks) == 0 || t.Hour() == 0 && t.Minute() == 0 && t.Second() == 0) {
			label = fmt.Sprintf("%s\n%s", label, t.Format("Jan 2 2006"))
		}
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: label})
	}
	return ticks
}

// hex is a color as CSS writes it.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
