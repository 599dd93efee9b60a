package load

// Line is a counter that grows by a whole number per second: a chain of straight
// lines, each begun where the last one ended. It has a value at whole seconds
// only, so what a scraper sees does not depend on the moment at which it asks,
// and rate() over any part of one line is exactly its slope.
type Line struct {
	// begun is the Unix second at which the current slope took over.
	begun int64
	// base is the value at that second.
	base uint64
	// slope is the growth per second.
	slope uint64
}

// StartLine is a counter that is 0 at a Unix second and does not grow.
func StartLine(second int64) Line { return Line{begun: second} }

// At is the last second up to the given one that the line has a value for, and
// the value. A second before the line's last bend, as after a clock that was set
// back, gives the bend: a counter never runs backwards.
func (l Line) At(second int64) (int64, uint64) {
	second = max(second, l.begun)
	return second, l.base + l.slope*uint64(second-l.begun) //nolint:gosec // not negative
}

// Bend gives the line another slope from a second on; the value at that second
// stays what it is.
func (l Line) Bend(second int64, slope uint64) Line {
	second, base := l.At(second)
	return Line{begun: second, base: base, slope: slope}
}

// Slope is the growth per second.
func (l Line) Slope() uint64 { return l.slope }
