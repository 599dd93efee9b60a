package report

import (
	"image/color"
	"math"
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

// points makes the line of a quantity of the columns: that of the highest values, and
// where columns hold several, that of the lowest too. areas are between the two.
func (c *columns) points(pick func(*column) *extent) (lines, areas []stretch) {
	upper := c.stretches(pick, func(e *extent) float64 { return e.high })
	lower := c.stretches(pick, func(e *extent) float64 { return e.low })
	if slices.EqualFunc(upper, lower, func(a, b stretch) bool { return slices.Equal(a.y, b.y) }) {
		return upper, nil
	}
	for i := range upper {
		area := stretch{slices.Clone(upper[i].x), slices.Clone(upper[i].y)}
		for j, x := range slices.Backward(lower[i].x) {
			area.add(x, lower[i].y[j])
		}
		areas = append(areas, area)
	}
	return append(upper, lower...), areas
}

// dense says whether most columns hold several values.
func (c *columns) dense(pick func(*column) *extent) bool {
	several := 0
	for i := range c.all {
		if e := pick(&c.all[i]); e.low != e.high {
			several++
		}
	}
	return several > len(c.all)/2
}

// stretches are those in which a quantity is known.
func (c *columns) stretches(pick func(*column) *extent, value func(*extent) float64) []stretch {
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
		s.add(seconds(from), value(e))
		s.add(seconds(to), value(e))
	}
	return all
}

// highest is the highest value of quantities of the columns.
func (c *columns) highest(pick func(*column) []extent) (highest float64) {
	for i := range c.all {
		for _, e := range pick(&c.all[i]) {
			highest = max(highest, e.high)
		}
	}
	return highest
}

// series is a quantity over time.
type series struct {
	lines []stretch
	style draw.LineStyle
	// areas are behind the lines, where they have a color.
	areas []stretch
	fill  color.Color
	// cap is how far the axes reach for it, whatever it is; 0 is no bound.
	cap float64
}

// Plot draws it. What lies beyond the axes is cut off.
func (s *series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	if s.fill != nil {
		for _, area := range s.areas {
			polygon := make([]vg.Point, len(area.x))
			for i := range polygon {
				polygon[i] = vg.Point{X: x(area.x[i]), Y: y(area.y[i])}
			}
			for _, piece := range areaPieces(polygon) {
				c.FillPolygon(s.fill, piece)
			}
		}
	}
	lines := make([][]vg.Point, 0, len(s.lines))
	for _, stretch := range s.lines {
		line := make([]vg.Point, 0, len(stretch.x))
		for i := range stretch.x {
			next := vg.Point{X: x(stretch.x[i]), Y: y(stretch.y[i])}
			if n := len(line); n > 1 && line[n-1].Y == next.Y && line[n-2].Y == next.Y {
				line[n-1] = next // one long line, for a small picture
				continue
			}
			line = append(line, next)
		}
		lines = append(lines, line)
	}
	for _, line := range c.ClipLinesXY(lines...) {
		dashes := s.style
		for _, piece := range pieces(line) {
			c.StrokeLines(dashes, piece)
			if len(dashes.Dashes) > 0 {
				dashes.DashOffs += length(piece)
			}
		}
	}
}

func length(line []vg.Point) (sum vg.Length) {
	for i := range line[1:] {
		sum += vg.Length(math.Hypot(float64(line[i+1].X-line[i].X), float64(line[i+1].Y-line[i].Y)))
	}
	return sum
}

// atOnce is how many points of a line are drawn at once: the time that a rasterizer takes
// for those that go up and down grows with their square.
const atOnce = 48

// pieces cuts a line in the middle between two points, where no corner is.
func pieces(line []vg.Point) [][]vg.Point {
	var all [][]vg.Point
	for len(line) > atOnce {
		last, next := line[atOnce-2], line[atOnce-1]
		middle := vg.Point{X: (last.X + next.X) / 2, Y: (last.Y + next.Y) / 2}
		all = append(all, append(slices.Clone(line[:atOnce-1]), middle))
		line = append([]vg.Point{middle}, line[atOnce-1:]...)
	}
	return append(all, line)
}

// areaPieces cuts an area, whose upper side goes there and whose lower side comes back.
// Two neighbors share a column, or a seam would be seen.
func areaPieces(area []vg.Point) [][]vg.Point {
	var all [][]vg.Point
	n := len(area) / 2
	for from := 0; from < n; from += atOnce {
		to := min(from+atOnce+2, n)
		all = append(all, append(slices.Clone(area[from:to]), area[2*n-to:2*n-from]...))
	}
	return all
}

// DataRange has the axes reach as far as the values.
func (s *series) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin = s.lines[0].x[0]
	last := s.lines[len(s.lines)-1].x
	xmax = last[len(last)-1]
	for _, stretch := range s.lines {
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
	for i := range b.spans {
		left, right := b.extent(i, &c, p)
		c.FillPolygon(b.color, []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
	}
}

// extent is where a span is drawn.
func (b *band) extent(i int, c *draw.Canvas, p *plot.Plot) (left, right vg.Length) {
	x, _ := p.Transforms(c)
	left, right = max(c.Min.X, x(b.spans[i][0])), min(c.Max.X, x(b.spans[i][1]))
	return left, max(right, left+0.5) // or a moment in a year would not be seen
}

// labels are those of bands, above all of them.
type labels []band

// Plot writes a label wherever there is room for it, and where there is none at the first
// of the spans.
func (l labels) Plot(c draw.Canvas, p *plot.Plot) {
	sty := style(8, faint)
	var taken []vg.Rectangle
	for i := range l {
		b := &l[i]
		width, found := sty.Width(b.label)+4, false
		for i := range b.spans {
			if left, right := b.extent(i, &c, p); right-left >= width {
				taken, found = write(&c, sty, left, b.label, taken), true
			}
		}
		if !found {
			left, _ := b.extent(0, &c, p)
			taken = write(&c, sty, min(left, c.Max.X-width), b.label, taken)
		}
	}
}

// write writes a label in the highest of a few rows in which none stands there.
func write(c *draw.Canvas, sty draw.TextStyle, left vg.Length, text string, taken []vg.Rectangle) []vg.Rectangle {
	const rows, height = 4, 10
	for row := range rows {
		y := c.Max.Y - height*vg.Length(row+1)
		box := vg.Rectangle{Min: vg.Point{X: left, Y: y}, Max: vg.Point{X: left + sty.Width(text) + 4, Y: y + height}}
		if !slices.ContainsFunc(taken, func(other vg.Rectangle) bool {
			return other.Min.Y == y && other.Min.X < box.Max.X && box.Min.X < other.Max.X
		}) {
			c.FillText(sty, vg.Point{X: left + 2, Y: y}, text)
			return append(taken, box)
		}
	}
	return taken
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
