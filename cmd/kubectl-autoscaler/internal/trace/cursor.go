package trace

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

const (
	// lookAhead is how many rows are read to learn the recording's step.
	lookAhead = 64
	// alone is how long a single row stands, in microseconds.
	alone = int64(15 * time.Second / time.Microsecond)
	// maxUsual is more than a metric's step is; that of a recording with less must be said.
	maxUsual = int64(time.Hour / time.Microsecond)
)

// Cursor goes through rows in time: what was known at one moment after the other.
type Cursor struct {
	next func() (Row, error, bool)
	stop func()
	// ahead are rows that have been read and have yet to come.
	ahead []Row
	now   Row
	begun bool
	// holds is for how long after its time a row stands.
	holds int64
	ended bool
	err   error
}

// NewCursor starts before the first row. A row stands until the next one, but for no
// longer than a step: where the next one is missing, nothing is known. step 0 is the most
// frequent distance of the first rows; with distances that vary, a row stands for one and
// a half of it, and never for more than an hour. Close it after use.
func NewCursor(rows Rows, step time.Duration) (*Cursor, error) {
	c := &Cursor{holds: step.Microseconds()}
	c.next, c.stop = iter.Pull2(rows)
	for len(c.ahead) < lookAhead && c.read() {
		continue
	}
	switch {
	case c.err != nil:
		c.stop()
		return nil, c.err
	case len(c.ahead) == 0:
		c.stop()
		return nil, errors.New("no value is recorded")
	case c.holds == 0:
		c.holds = cmp.Or(usualStep(c.ahead), alone)
		if c.holds > maxUsual {
			c.stop()
			return nil, fmt.Errorf("its values are %s apart; say by --step for how long one of them stands, as in --step 1h", c.Step())
		}
	}
	return c, nil
}

// usualStep is the most frequent distance of rows, and half as much again where not all
// are multiples of it; 0 where there is only one row.
func usualStep(rows []Row) int64 {
	count := map[int64]int{}
	for i := 1; i < len(rows); i++ {
		count[rows[i].At-rows[i-1].At]++
	}
	var usual int64
	for step, n := range count {
		if best := count[usual]; n > best || n == best && step < usual {
			usual = step
		}
	}
	for step := range count {
		if step%usual != 0 {
			return usual + usual/2
		}
	}
	return usual
}

// read adds a row to those ahead.
func (c *Cursor) read() bool {
	if c.ended {
		return false
	}
	row, err, ok := c.next()
	if !ok || err != nil {
		c.ended, c.err = true, err
		return false
	}
	row.Cells = slices.Clone(row.Cells)
	c.ahead = append(c.ahead, row)
	return true
}

// Start is the time of the first row, before any was passed.
func (c *Cursor) Start() int64 { return c.ahead[0].At }

// At goes on to a time, which must not lie before the last one, and gives the row that
// stands then. ok is false where none does, and over is true where none will.
func (c *Cursor) At(at int64) (cells []Cell, ok, over bool, err error) {
	for (len(c.ahead) > 0 || c.read()) && c.ahead[0].At <= at {
		spare := c.now.Cells
		c.now, c.begun = c.ahead[0], true
		c.shift(spare)
	}
	if c.err != nil {
		return nil, false, true, c.err
	}
	stands := c.begun && at < c.now.At+c.holds
	return c.now.Cells, stands, c.ended && len(c.ahead) == 0 && !stands, nil
}

// Next is the first time after that one at which At gives something else; ok is false
// where there is none.
func (c *Cursor) Next(at int64) (next int64, ok bool) {
	if next = c.now.At + c.holds; c.begun && next > at {
		ok = true
	}
	if len(c.ahead) > 0 && (!ok || c.ahead[0].At < next) {
		return c.ahead[0].At, true
	}
	return next, ok
}

// Step is for how long a row stands.
func (c *Cursor) Step() time.Duration { return time.Duration(c.holds) * time.Microsecond }

// shift drops the first row ahead and, past the look-ahead, reads one in its place without
// taking new memory.
func (c *Cursor) shift(spare []Cell) {
	if len(c.ahead) > 1 || c.ended {
		c.ahead = c.ahead[1:]
		return
	}
	row, err, ok := c.next()
	if !ok || err != nil {
		c.ended, c.err = true, err
		c.ahead = c.ahead[:0]
		return
	}
	row.Cells = append(spare[:0], row.Cells...)
	c.ahead[0] = row
}

// Close ends the reading.
func (c *Cursor) Close() { c.stop() }

// Earliest is the start of the cursor that starts first.
func Earliest(cursors []*Cursor) int64 {
	return slices.MinFunc(cursors, func(a, b *Cursor) int { return cmp.Compare(a.Start(), b.Start()) }).Start()
}
