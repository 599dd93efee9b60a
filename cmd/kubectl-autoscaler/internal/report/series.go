package report

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// stretch is a line without a gap: times and values, as a step function.
type stretch struct{ x, y []float64 }

// add goes to a value at a time: along, then up or down.
func (s *stretch) add(x, y float64) {
	s.x, s.y = append(s.x, x), append(s.y, y)
}

// points makes the line of a quantity of the columns. Within a column that holds many
// values it goes from the first over the lowest and the highest to the last.
func (c *columns) points(pick func(*column) *extent) []stretch {
	var all []stretch
	known := false
	for i := range c.all {
		e := pick(&c.all[i])
		if !e.known {
			known = false
			continue
		}
		from, to := c.span(i)
		if !known {
			all, known = append(all, stretch{}), true
		}
		s := &all[len(all)-1]
		s.add(seconds(from), e.first)
		if e.low != e.high {
			middle := (seconds(from) + seconds(to)) / 2
			s.add(middle, e.first)
			s.add(middle, e.low)
			s.add(middle, e.high)
			s.add(middle, e.last)
		}
		s.add(seconds(to), e.last)
	}
	return all
}

// series is a quantity over time.
type series struct {
	points []stretch
	style  draw.LineStyle
	// cap is what no value is drawn above; 0 is no bound.
	cap float64
}

func (s *series) empty() bool { return len(s.points) == 0 }

// Plot draws the line.
func (s *series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	lines := make([][]vg.Point, 0, len(s.points))
	for _, stretch := range s.points {
		line := make([]vg.Point, 0, len(stretch.x))
		for i := range stretch.x {
			v := stretch.y[i]
			if s.cap > 0 {
				v = min(v, s.cap)
			}
			next := vg.Point{X: x(stretch.x[i]), Y: y(v)}
			if n := len(line); n > 1 && line[n-1].Y == next.Y && line[n-2].Y == next.Y {
				line[n-1] = next // one long line, for a small picture
				continue
			}
			line = append(line, next)
		}
		lines = append(lines, line)
	}
	c.StrokeLines(s.style, c.ClipLinesXY(lines...)...)
}

// DataRange has the axes reach as far as the values.
func (s *series) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin = s.points[0].x[0]
	last := s.points[len(s.points)-1].x
	xmax = last[len(last)-1]
	for _, stretch := range s.points {
		ymax = max(ymax, slices.Max(stretch.y))
	}
	if s.cap > 0 {
		ymax = min(ymax, s.cap)
	}
	return xmin, xmax, 0, ymax
}

// Thumbnail draws the legend's.
func (s *series) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(s.style, c.Min.X, y, c.Max.X, y)
}

// band marks stretches of time behind the lines.
type band struct {
	name, label string
	color       color.RGBA
	spans       [][2]float64
}

// Plot draws the band from the bottom to the top.
func (b *band) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	labeled := vg.Length(-1)
	for _, span := range b.spans {
		left, right := max(c.Min.X, x(span[0])), min(c.Max.X, x(span[1]))
		if right-left < 0.5 {
			right = left + 0.5 // or a moment in a year would not be seen
		}
		c.FillPolygon(b.color, []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
		sty := style(8, faint)
		if b.label != "" && left > labeled && left+sty.Width(b.label) < c.Max.X {
			c.FillText(sty, vg.Point{X: left + 2, Y: c.Max.Y - 10}, b.label)
			labeled = left + sty.Width(b.label) + 6
		}
	}
}

// Thumbnail draws the legend's.
func (b *band) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
}

// gridLines are one for each number of the axis of values.
type gridLines struct{}

// Plot draws them.
func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if !tick.IsMinor() && tick.Value > p.Y.Min {
			c.StrokeLine2(draw.LineStyle{Color: grid, Width: 0.6}, c.Min.X, y(tick.Value), c.Max.X, y(tick.Value))
		}
	}
}
