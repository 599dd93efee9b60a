// Package trace reads recorded load, point by point: Prometheus' range answers, CSV, and
// a Prometheus that is asked for a range. However long a recording is, only a few rows of
// it are held, and no input makes a reader hold more.
package trace

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// Row is what was recorded at one moment.
type Row struct {
	// At is the time in Unix microseconds.
	At int64
	// Cells has a value for each column. It is the reader's: the next row is written
	// over it.
	Cells []Cell
}

// Cell is one value. It may be NaN, infinite or negative: what that means is the
// policy's to say.
type Cell struct {
	Value float64
	// Absent says that there was no value at that time.
	Absent bool
}

// Rows are what a recording holds, in ascending order of time. An error ends them.
type Rows = iter.Seq2[Row, error]

const (
	// maxValueBytes bounds what is read for one row, or for what stands before the
	// first.
	maxValueBytes = 1 << 20
	day           = 24 * int64(time.Hour/time.Microsecond)
	// maxGap is a year, after which nothing that is recorded goes on.
	maxGap = 366 * day
	// maxTime is the end of the year 9999, the last that RFC 3339 can write.
	maxTime = 253402300799 * int64(time.Second/time.Microsecond)
)

var errTooLong = errors.New("is longer than 1 MiB for one value; is this a recording of a metric?")

// bounded ends reading where a decoder asks for more and more without giving a row.
type bounded struct {
	r io.Reader
	// read is how far the decoder has read, mark how far it had read with the last row.
	read, mark int64
	// failed is why reading ended.
	failed error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read-b.mark > maxValueBytes {
		b.failed = errTooLong
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), 64<<10)])
	b.read += int64(n)
	return n, err
}

// PlaceError is what is wrong with a recording, and where.
type PlaceError struct {
	// Name is the file's, or what stands for it.
	Name string
	// Line and Column are where, from 1; 0 where that is not known.
	Line, Column int
	Err          error
}

func (e *PlaceError) Error() string {
	name := cli.Plain(e.Name)
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", name, e.Err)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %v", name, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", name, e.Line, e.Column, e.Err)
}

// Unwrap is the error without its place.
func (e *PlaceError) Unwrap() error { return e.Err }

// offsetError is an error at a byte of the input, from 0.
type offsetError struct {
	offset int64
	err    error
}

func (e *offsetError) Error() string { return fmt.Sprintf("byte %d: %v", e.offset, e.err) }
func (e *offsetError) Unwrap() error { return e.err }

// ordered refuses rows that do not follow one another in time.
type ordered struct {
	last  int64
	begun bool
}

func (o *ordered) check(at int64) error {
	if o.begun && at <= o.last {
		return fmt.Errorf("the time %s is not after the one before, %s; sort the recording by time", Time(at), Time(o.last))
	}
	if gap := at - o.last; o.begun && gap > maxGap {
		return fmt.Errorf("the time %s is %d days after the one before; is it in another unit?", Time(at), gap/day)
	}
	o.last, o.begun = at, true
	return nil
}

// Time is a row's time in UTC, as it is printed.
func Time(at int64) string { return time.UnixMicro(at).UTC().Format(time.RFC3339Nano) }

// Between keeps the rows from a time, and before another; zero times bound nothing. Where
// all lie outside, that is an error.
func Between(rows Rows, from, to time.Time) Rows {
	return func(yield func(Row, error) bool) {
		kept := false
		var early span // what lies before the range
		for row, err := range rows {
			late := err == nil && !to.IsZero() && row.At >= to.UnixMicro()
			switch {
			case late && !kept:
				yield(Row{}, outside(from, to, append(early.recorded(), "from "+Time(row.At)+" on")))
				return
			case late:
				return
			case err == nil && !from.IsZero() && row.At < from.UnixMicro():
				early.add(row.At)
				continue
			}
			kept = true
			if !yield(row, err) {
				return
			}
		}
		if !kept && early.begun {
			yield(Row{}, outside(from, to, early.recorded()))
		}
	}
}

// span is from the first to the last of some times.
type span struct {
	first, last int64
	begun       bool
}

func (s *span) add(at int64) {
	if !s.begun {
		s.first, s.begun = at, true
	}
	s.last = at
}

func (s *span) recorded() []string {
	if !s.begun {
		return nil
	}
	return []string{"from " + Time(s.first) + " to " + Time(s.last)}
}

// outside says that nothing is recorded in a range, and what is, as far as that is known.
func outside(from, to time.Time, recorded []string) error {
	asked := ""
	if !from.IsZero() {
		asked += " from " + Time(from.UnixMicro())
	}
	if !to.IsZero() {
		asked += " to " + Time(to.UnixMicro())
	}
	text := "no value lies in the range that is to be played," + asked
	if len(recorded) > 0 {
		text += "; the recording is " + strings.Join(recorded, " and ")
	}
	return errors.New(text)
}
