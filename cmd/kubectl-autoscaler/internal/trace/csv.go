package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxColumns is more than the metrics of an AutoScaler need.
const maxColumns = 64

// csvReader reads lines of a time and values. Times are RFC 3339 or Unix seconds; the
// first line may name the columns.
type csvReader struct {
	in   *bounded
	csv  *csv.Reader
	name string
	// columns are the names of the values, empty ones where the file has no header.
	columns []string
	named   bool
	// first is the first line where that is no header.
	first []string
}

// newCSV reads the first line.
func newCSV(r io.Reader, name string) (*csvReader, error) {
	c := &csvReader{in: &bounded{r: r}, name: name}
	c.csv = csv.NewReader(c.in)
	c.csv.ReuseRecord, c.csv.TrimLeadingSpace, c.csv.Comment = true, true, '#'
	record, err := c.read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, &PlaceError{Name: name, Err: errors.New("is empty: lines of a time and a value are expected, or the JSON of a range query")}
	case err != nil:
		return nil, err
	case len(record) < 2:
		return nil, c.located(0, errors.New("has no comma: a time and a value are expected, as 2026-11-27T08:00:00Z,900"))
	case len(record) > maxColumns:
		return nil, c.located(0, fmt.Errorf("has %d columns; a time and up to %d values are expected", len(record), maxColumns-1))
	}
	record = slices.Clone(record) // the next line is written over it
	c.columns = make([]string, len(record)-1)
	if _, err := parseTime(record[0]); err != nil && isName(record[0]) {
		c.named = true
		for i, column := range record[1:] {
			c.columns[i] = strings.TrimSpace(column)
		}
		return c, nil
	}
	c.first = record
	return c, nil
}

// isName says whether a text begins as a column's name does, so that a time with a typing
// error is not taken for one.
func isName(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] >= 'A' && text[0] <= 'Z' || text[0] >= 'a' && text[0] <= 'z' || text[0] == '_'
}

func (c *csvReader) read() ([]string, error) {
	record, err := c.csv.Read()
	c.in.mark = c.csv.InputOffset()
	if err == nil || errors.Is(err, io.EOF) {
		return record, err
	}
	if c.in.failed != nil {
		return nil, &PlaceError{Name: c.name, Err: c.in.failed}
	}
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		err = parse.Err
		if errors.Is(err, csv.ErrFieldCount) {
			err = fmt.Errorf("has %d fields where the first line has %d", len(record), c.csv.FieldsPerRecord)
		}
		return nil, &PlaceError{Name: c.name, Line: parse.Line, Column: parse.Column, Err: err}
	}
	return nil, &PlaceError{Name: c.name, Err: err}
}

// located is an error in a field of the line that was read last.
func (c *csvReader) located(field int, err error) error {
	line, column := c.csv.FieldPos(field)
	return &PlaceError{Name: c.name, Line: line, Column: column, Err: err}
}

func (c *csvReader) rows(yield func(Row, error) bool) {
	var row Row
	var order ordered
	record := c.first
	for {
		if record == nil {
			var err error
			if record, err = c.read(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				yield(Row{}, err)
				return
			}
		}
		if field, err := row.parse(record, &order); err != nil {
			yield(Row{}, c.located(field, err))
			return
		}
		if !yield(row, nil) {
			return
		}
		record = nil
	}
}

// parse reads a line; where it fails, field is the one at fault.
func (r *Row) parse(record []string, order *ordered) (field int, err error) {
	if r.At, err = parseTime(record[0]); err != nil {
		return 0, err
	}
	if err := order.check(r.At); err != nil {
		return 0, err
	}
	r.Cells = r.Cells[:0]
	for i, text := range record[1:] {
		text = strings.TrimSpace(text)
		if text == "" {
			r.Cells = append(r.Cells, Cell{Absent: true})
			continue
		}
		value, err := parseValue(text)
		if err != nil {
			return i + 1, err
		}
		r.Cells = append(r.Cells, Cell{Value: value})
	}
	return 0, nil
}

// parseTime reads RFC 3339 or seconds since 1970.
func parseTime(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return micros(seconds)
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, fmt.Errorf("has the time %q; write RFC 3339, as 2026-11-27T08:00:00Z, or seconds since 1970", excerpt(text))
	}
	if us := at.UnixMicro(); us >= 0 && us <= maxTime {
		return us, nil
	}
	return 0, fmt.Errorf("has the time %q, which is not after 1970", excerpt(text))
}
