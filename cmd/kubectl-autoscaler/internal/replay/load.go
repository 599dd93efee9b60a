package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/trace"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// arrivals is added to a backlog's name for the items that arrive per second.
const arrivals = ":arrivals"

// load is the recording of all metrics.
type load struct {
	cursors []*trace.Cursor
	// wanted are the columns that are played, in the order of the metrics.
	wanted []wanted
	// done is how much of it has been read, from 0 to 1, as far as that is known.
	done func(at time.Time) float64
	stop []func() error
	// at is the newest time, in Unix microseconds; rows and stands are used again for each.
	at     int64
	rows   [][]trace.Cell
	stands []bool
}

// wanted is a column: that of a metric, or of its arrivals.
type wanted struct {
	name   string
	metric int
	// arrivals: it is those.
	arrivals bool
	// cursor and cell are where it is found; cursor is -1 where it is not.
	cursor, cell int
}

func (s *subject) wanted() []wanted {
	var all []wanted
	for i := range s.autoscaler.Spec.Metrics {
		name := s.autoscaler.Spec.Metrics[i].Name
		all = append(all, wanted{name: name, metric: i, cursor: -1})
		if s.backlog(i) {
			all = append(all, wanted{name: name + arrivals, metric: i, arrivals: true, cursor: -1})
		}
	}
	return all
}

// load opens what is to be played.
func (o *options) load(ctx context.Context, s *subject) (*load, error) {
	from, err := o.time("--from", o.from)
	if err != nil {
		return nil, err
	}
	to, err := o.time("--to", o.to)
	switch {
	case err != nil:
		return nil, err
	case !from.IsZero() && !to.IsZero() && !from.Before(to):
		return nil, fmt.Errorf("--from %s is not before --to %s", o.from, o.to)
	}
	l := &load{wanted: s.wanted()}
	if o.prometheus != "" {
		err = o.ask(ctx, l, s, from, to)
	} else {
		err = o.openFiles(l, s, from, to)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.rows, l.stands = make([][]trace.Cell, len(l.cursors)), make([]bool, len(l.cursors))
	return l, nil
}

// time reads a time, or how long ago it is.
func (o *options) time(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return o.now().Add(-ago.Abs()).Truncate(time.Second), nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	return time.Time{}, fmt.Errorf("%s %q: write a time as 2026-11-27T08:00:00Z, seconds since 1970, or how long ago, as 168h", flag, text)
}

// openFiles finds each column in one of the files.
func (o *options) openFiles(l *load, s *subject, from, to time.Time) error {
	var files []*trace.File
	for _, text := range o.loads {
		names, path := l.split(text)
		if err := l.unknown(path); err != nil {
			return err
		}
		file, err := trace.Open(path, trace.Options{Stdin: o.streams.In, Series: s.series(names), Warn: o.warn})
		if err != nil {
			return err
		}
		files = append(files, file)
		l.stop = append(l.stop, file.Close)
		if err := l.assign(len(l.cursors), names, path, file); err != nil {
			return err
		}
		cursor, err := trace.NewCursor(trace.Between(file.Rows(), from, to), o.step)
		if err != nil {
			return placedIn(path, err)
		}
		l.add(cursor)
	}
	for _, w := range l.wanted {
		if w.cursor < 0 {
			return fmt.Errorf("nothing is recorded of %s; give it by --load %s=FILE", w.name, w.name)
		}
	}
	l.done = func(time.Time) float64 {
		var read, size int64
		for _, file := range files {
			read, size = read+file.Read(), size+file.Size
		}
		if size == 0 {
			return 0
		}
		return float64(read) / float64(size)
	}
	return nil
}

// placedIn names the file where the error does not.
func placedIn(path string, err error) error {
	var placed *trace.PlaceError
	if errors.As(err, &placed) {
		return err
	}
	return fmt.Errorf("%s: %w", cli.Plain(path), err)
}

func (o *options) warn(text string) { fmt.Fprintln(o.streams.Err, "warning:", cli.Plain(text)) }

// split tells METRIC=FILE from a file that is for whatever has none of its own. names are
// the columns that are to be found in it.
func (l *load) split(text string) (names []string, path string) {
	if name, path, ok := strings.Cut(text, "="); ok && slices.ContainsFunc(l.wanted, func(w wanted) bool { return w.name == name }) {
		return []string{name}, path
	}
	for _, w := range l.wanted {
		if w.cursor < 0 {
			names = append(names, w.name)
		}
	}
	return names, text
}

// unknown refuses a file that does not exist and looks as if a metric's name, of which
// there is none, stood before it.
func (l *load) unknown(path string) error {
	name, _, ok := strings.Cut(path, "=")
	if !ok {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	known := make([]string, len(l.wanted))
	for i := range l.wanted {
		known[i] = l.wanted[i].name
	}
	return fmt.Errorf("--load %s: there is no metric %s; there are %s", cli.Plain(path), cli.Plain(name), strings.Join(known, ", "))
}

// assign finds the columns of a file by the names in its first line, or by their order
// where it has none. A single column needs no name.
func (l *load) assign(cursor int, names []string, path string, file *trace.File) error {
	columns := file.Values()
	if len(columns) == len(names) && (len(names) == 1 || !file.Named()) {
		for i, name := range names {
			l.set(name, cursor, i)
		}
		return nil
	}
	found := 0
	for i, column := range columns {
		if slices.Contains(names, column) {
			l.set(column, cursor, i)
			found++
		}
	}
	switch {
	case found > 0:
		return nil
	case file.Named():
		return fmt.Errorf("%s: has the columns %s, and none of %s", cli.Plain(path), cli.Plain(strings.Join(columns, ", ")), strings.Join(names, ", "))
	}
	return fmt.Errorf("%s: has %d columns of values and no names in its first line, for %s; give it a first line such as time,%s, or one file for each by --load %s=FILE",
		cli.Plain(path), len(columns), strings.Join(names, ", "), strings.Join(names, ","), l.wanted[0].name)
}

func (l *load) set(name string, cursor, cell int) {
	for i := range l.wanted {
		if l.wanted[i].name == name {
			l.wanted[i].cursor, l.wanted[i].cell = cursor, cell
		}
	}
}

// series are the labels of a profile whose answer is for many, or nil.
func (s *subject) series(names []string) trace.Labels {
	for i, p := range s.profiles {
		m := &s.autoscaler.Spec.Metrics[i]
		if p == nil || p.Spec.Series != v1alpha1.SeriesPerTarget || !slices.Contains(names, m.Name) && !slices.Contains(names, m.Name+arrivals) {
			continue
		}
		measure, err := spec.Measure(s.autoscaler, i, p)
		if err != nil {
			continue // a profile with a fault was refused before
		}
		return trace.Labels{measure.Load.Series.Namespace: measure.Namespace, measure.Load.Series.Target: measure.Target}
	}
	return nil
}

func (l *load) add(c *trace.Cursor) {
	l.cursors = append(l.cursors, c)
	l.stop = append(l.stop, func() error { c.Close(); return nil })
}

func (l *load) start() time.Time { return time.UnixMicro(trace.Earliest(l.cursors)).UTC() }

// step is the shortest time for which a value stands.
func (l *load) step() time.Duration {
	return slices.MinFunc(l.cursors, func(a, b *trace.Cursor) int { return cmp.Compare(a.Step(), b.Step()) }).Step()
}

// Next is when a value takes the place of another, or ends.
func (l *load) Next() (at time.Time, ok bool) {
	var soonest int64
	for _, c := range l.cursors {
		if next, more := c.Next(l.at); more && (!ok || next < soonest) {
			soonest, ok = next, true
		}
	}
	return time.UnixMicro(soonest).UTC(), ok
}

// At is the load at a time.
func (l *load) At(at time.Time, to []simulate.Load) (over bool, err error) {
	over, l.at = true, at.UnixMicro()
	for i, c := range l.cursors {
		var ended bool
		if l.rows[i], l.stands[i], ended, err = c.At(l.at); err != nil {
			return false, err
		}
		over = over && ended
	}
	clear(to)
	for _, w := range l.wanted {
		metric := &to[w.metric]
		if !l.stands[w.cursor] || l.rows[w.cursor][w.cell].Absent {
			metric.Absent = true
			continue
		}
		if value := l.rows[w.cursor][w.cell].Value; w.arrivals {
			metric.Arrivals = value
		} else {
			metric.Value = value
		}
	}
	return over, nil
}

func (l *load) close() error {
	var errs []error
	for _, stop := range slices.Backward(l.stop) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}
