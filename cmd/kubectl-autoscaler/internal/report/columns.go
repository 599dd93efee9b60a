package report

import (
	"math"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

// maxColumns is how many columns a chart has at most: about one for each of its pixels.
const maxColumns = 1200

// extent is what a quantity was within a column.
type extent struct {
	low, high float64
	known     bool
}

func (e *extent) add(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	if !e.known {
		*e = extent{v, v, true}
		return
	}
	e.low, e.high = min(e.low, v), max(e.high, v)
}

// join adds those of another column.
func (e *extent) join(next extent) {
	switch {
	case !next.known:
	case !e.known:
		*e = next
	default:
		e.low, e.high = min(e.low, next.low), max(e.high, next.high)
	}
}

// column is a stretch of time.
type column struct {
	loads    []extent // by metric
	capacity []extent // by autoscaler, as the next two
	replicas []extent
	ready    []extent
	demand   extent // of the first autoscaler: Recommended, its bounds
	desired  extent
	low      extent
	high     extent
	// invalid, short: it was so at some time in it.
	invalid, short bool
	// schedules that were in force, as bits by columns.names.
	schedules uint64
}

func newColumn(metrics, autoscalers int) column {
	all := make([]extent, metrics+3*autoscalers)
	rest := all[metrics:]
	return column{
		loads:    all[:metrics:metrics],
		capacity: rest[:autoscalers:autoscalers],
		replicas: rest[autoscalers : 2*autoscalers : 2*autoscalers],
		ready:    rest[2*autoscalers:],
	}
}

func (c *column) join(next *column) {
	for _, pair := range [][2][]extent{{c.loads, next.loads}, {c.capacity, next.capacity}, {c.replicas, next.replicas}, {c.ready, next.ready}} {
		for i := range pair[0] {
			pair[0][i].join(pair[1][i])
		}
	}
	c.demand.join(next.demand)
	c.desired.join(next.desired)
	c.low.join(next.low)
	c.high.join(next.high)
	c.invalid, c.short = c.invalid || next.invalid, c.short || next.short
	c.schedules |= next.schedules
}

// columns hold a recording of any length: where it does not fit, two columns become one.
type columns struct {
	subject *Subject
	start   time.Time
	width   time.Duration
	all     []column
	// end is that of the newest step.
	end time.Time
	// names of schedules.
	names []string
}

func newColumns(s *Subject) *columns { return &columns{subject: s, width: s.Interval} }

func (c *columns) add(s *simulate.Step) {
	c.during(s.At, s.For, func(column *column) { c.fill(column, s) })
}

func (c *columns) measure(m *simulate.Moment) {
	c.during(m.At, m.For, func(column *column) { c.fillMeasured(column, m) })
}

// during has the columns of a time filled.
func (c *columns) during(at time.Time, lasts time.Duration, fill func(*column)) {
	if c.start.IsZero() {
		c.start = at
	}
	end := at.Add(lasts)
	if end.After(c.end) {
		c.end = end
	}
	for c.index(end.Add(-1)) >= maxColumns {
		c.halve()
	}
	for i := c.index(at); i <= c.index(end.Add(-1)); i++ {
		for len(c.all) <= i {
			c.all = append(c.all, newColumn(len(c.subject.Metrics), len(c.subject.Autoscalers)))
		}
		fill(&c.all[i])
	}
}

func (c *columns) index(t time.Time) int { return int(max(0, t.Sub(c.start)) / c.width) }

func (c *columns) halve() {
	for i := range c.all {
		if i%2 == 1 {
			c.all[i/2].join(&c.all[i])
		} else {
			c.all[i/2] = c.all[i]
		}
	}
	c.all = c.all[:(len(c.all)+1)/2]
	c.width *= 2
}

// fill takes what was decided.
func (c *columns) fill(column *column, s *simulate.Step) {
	column.replicas[s.Of].add(float64(s.Replicas))
	if s.Of > 0 {
		return
	}
	if !s.Blind {
		column.demand.add(float64(s.Recommended))
	}
	column.desired.add(float64(s.Desired))
	column.low.add(float64(s.Min))
	column.high.add(float64(s.Max))
	for _, name := range s.Schedules {
		column.schedules |= c.bit(name)
	}
}

// fillMeasured takes what there was.
func (c *columns) fillMeasured(column *column, m *simulate.Moment) {
	for i, ready := range m.Ready {
		column.ready[i].add(float64(ready))
		column.capacity[i].add(float64(ready) * c.unit())
	}
	for i := range m.Load {
		if !m.Load[i].Absent && (i >= len(m.Invalid) || m.Invalid[i] == "") {
			column.loads[i].add(c.load(i, &m.Load[i]))
		}
	}
	column.invalid = column.invalid || m.Invalid != nil
	column.short = column.short || m.Short(0) > 0
}

// unit is what one replica bears: in the metric's unit where there is one metric, and one
// otherwise.
func (c *columns) unit() float64 {
	if len(c.subject.Metrics) == 1 {
		return c.subject.Metrics[0].Target
	}
	return 1
}

// load is a load in that unit.
func (c *columns) load(i int, l *simulate.Load) float64 {
	m := &c.subject.Metrics[i]
	v := l.Value
	if m.Clearance > 0 {
		v = l.Arrivals + l.Value/m.Clearance.Seconds()
	}
	if len(c.subject.Metrics) > 1 {
		v /= m.Target
	}
	return v
}

func (c *columns) bit(name string) uint64 {
	for i, known := range c.names {
		if known == name {
			return 1 << i
		}
	}
	if len(c.names) == 64 {
		return 0
	}
	c.names = append(c.names, name)
	return 1 << (len(c.names) - 1)
}

// span of column i.
func (c *columns) span(i int) (from, to time.Time) {
	from = c.start.Add(time.Duration(i) * c.width)
	if to = from.Add(c.width); to.After(c.end) {
		to = c.end
	}
	return from, to
}

// runs are the stretches of columns of which something is true.
func (c *columns) runs(is func(*column) bool, f func(from, to time.Time)) {
	for i := 0; i < len(c.all); i++ {
		if !is(&c.all[i]) {
			continue
		}
		from, to := c.span(i)
		for i+1 < len(c.all) && is(&c.all[i+1]) {
			i++
			_, to = c.span(i)
		}
		f(from, to)
	}
}
