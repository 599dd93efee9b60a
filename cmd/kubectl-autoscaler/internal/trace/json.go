package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Labels are those of the series that is wanted out of several; nil wants the only one.
type Labels map[string]string

// ReadJSON reads the answer of /api/v1/query_range, or its data, or the result in that,
// which is what promtool prints. An error holds the offset at which it was met. What the
// server warns of goes to warn.
func ReadJSON(r io.Reader, want Labels, warn func(string)) Rows {
	return func(yield func(Row, error) bool) {
		b := &bounded{r: r}
		p := &jsonReader{in: b, dec: json.NewDecoder(b), want: want, warn: warn, yield: yield, row: Row{Cells: make([]Cell, 1)}}
		err := p.document()
		switch {
		case errors.Is(err, errEnough):
			return
		case b.failed != nil:
			err = b.failed
		case err == nil && p.found == 0 && p.others > 0:
			err = fmt.Errorf("has %d series, and none with the labels %v", p.others, map[string]string(want))
		case err == nil && p.found == 0:
			err = errNoSeries
		}
		if err != nil {
			yield(Row{}, p.located(err))
		}
	}
}

var (
	// errEnough: whoever reads wants no more rows.
	errEnough   = errors.New("enough")
	errNoSeries = errors.New("has no series: the query matched nothing in this range")
)

type jsonReader struct {
	in    *bounded
	dec   *json.Decoder
	want  Labels
	warn  func(string)
	yield func(Row, error) bool
	row   Row
	// found counts the series that are wanted, others those that are not.
	found, others int
	order         ordered
}

func (p *jsonReader) located(err error) error {
	offset := p.dec.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// Its offset counts from the value that was being decoded.
		err = fmt.Errorf("is no JSON: %w", syntax)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, err = p.in.read, errors.New("ends in the middle of the JSON")
	}
	return &offsetError{offset, err}
}

func (p *jsonReader) document() error {
	opening, err := p.dec.Token()
	switch {
	case err != nil:
		return err
	case opening == json.Delim('['):
		err = p.series()
	case opening == json.Delim('{'):
		err = p.object("", p.member)
	default:
		return errNotRange
	}
	if err != nil {
		return err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has something after the JSON's end")
	}
	return nil
}

var errNotRange = errors.New(`is not the answer of a range query: {"status":"success","data":{"resultType":"matrix","result":[…]}} is expected, as /api/v1/query_range gives it`)

// object reads the members of an object that has been opened.
func (p *jsonReader) object(of string, member func(of, key string) error) error {
	for p.dec.More() {
		key, err := p.dec.Token()
		if err != nil {
			return err
		}
		if err := member(of, key.(string)); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

// member reads one of the answer's members, or of its data.
func (p *jsonReader) member(of, key string) error {
	switch key {
	case "data":
		if of == "" {
			return p.opened('{', func() error { return p.object("data", p.member) })
		}
	case "error":
		var text string
		if err := p.dec.Decode(&text); err != nil {
			return err
		}
		return fmt.Errorf("is the answer to a query that failed: %s", excerpt(text))
	case "warnings":
		return p.warnings()
	case "resultType":
		var kind string
		if err := p.dec.Decode(&kind); err != nil {
			return err
		}
		if kind != "matrix" {
			return fmt.Errorf("has a result of type %q; ask /api/v1/query_range, which gives a matrix", excerpt(kind))
		}
		return nil
	case "result":
		return p.opened('[', p.series)
	}
	return p.skip(0)
}

func (p *jsonReader) opened(with json.Delim, then func() error) error {
	opening, err := p.dec.Token()
	if err != nil {
		return err
	}
	if opening != with {
		return errNotRange
	}
	return then()
}

func (p *jsonReader) warnings() error {
	var texts []string
	if err := p.dec.Decode(&texts); err != nil {
		return err
	}
	for _, text := range texts {
		p.warn("the server warned of this answer, which may be incomplete: " + excerpt(text))
	}
	return nil
}

// series reads the elements of a result that has been opened.
func (p *jsonReader) series() error {
	for p.dec.More() {
		wanted := p.want == nil
		err := p.opened('{', func() error {
			return p.object("", func(_, key string) error { return p.ofSeries(key, &wanted) })
		})
		if err != nil {
			return err
		}
		if !wanted {
			p.others++
		}
		p.in.mark = p.dec.InputOffset()
	}
	_, err := p.dec.Token()
	return err
}

func (p *jsonReader) ofSeries(key string, wanted *bool) error {
	switch key {
	case "metric":
		var labels map[string]string
		if err := p.dec.Decode(&labels); err != nil {
			return err
		}
		*wanted = p.want.match(labels)
		return nil
	case "histograms":
		return errors.New("has native histograms; reduce them to a number, for example with histogram_count()")
	case "values":
		if !*wanted {
			return p.opened('[', p.pass)
		}
		p.found++
		if p.found > 1 {
			return errors.New("has several series; aggregate them into one, for example with sum()")
		}
		return p.opened('[', p.values)
	}
	return p.skip(0)
}

func (l Labels) match(labels map[string]string) bool {
	for name, value := range l {
		if labels[name] != value {
			return false
		}
	}
	return true
}

// values reads the points of the series.
func (p *jsonReader) values() error {
	var v pair
	for p.dec.More() {
		if err := p.dec.Decode(&v); err != nil {
			return err
		}
		if err := p.order.check(v.at); err != nil {
			return err
		}
		p.row.At, p.row.Cells[0] = v.at, Cell{Value: v.value}
		p.in.mark = p.dec.InputOffset()
		if !p.yield(p.row, nil) {
			return errEnough
		}
	}
	_, err := p.dec.Token()
	return err
}

// pass goes past the points of another series.
func (p *jsonReader) pass() error {
	var v json.RawMessage
	for p.dec.More() {
		if err := p.dec.Decode(&v); err != nil {
			return err
		}
		p.in.mark = p.dec.InputOffset()
	}
	_, err := p.dec.Token()
	return err
}

// maxDepth is more than any answer of the API has.
const maxDepth = 32

func (p *jsonReader) skip(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	token, err := p.dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	for p.dec.More() {
		if token == json.Delim('{') {
			if _, err := p.dec.Token(); err != nil {
				return err
			}
		}
		if err := p.skip(depth + 1); err != nil {
			return err
		}
	}
	_, err = p.dec.Token()
	return err
}

// pair is a point as the API writes it: [1435781430.781, "1"].
type pair struct {
	at    int64
	value float64
}

var errNotAPoint = errors.New(`has a point that is not a time and a value, as [1435781430.781, "1"]`)

// UnmarshalJSON reads a pair. The decoder has seen to it that this is JSON.
func (v *pair) UnmarshalJSON(raw []byte) error {
	inner, ok := bytes.CutPrefix(raw, []byte("["))
	inner, closed := bytes.CutSuffix(inner, []byte("]"))
	seconds, text, two := bytes.Cut(inner, []byte(","))
	text = bytes.TrimSpace(text)
	if !ok || !closed || !two || len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return errNotAPoint
	}
	at, err := strconv.ParseFloat(string(bytes.TrimSpace(seconds)), 64)
	if err != nil {
		return errNotAPoint
	}
	if v.at, err = micros(at); err != nil {
		return err
	}
	if v.value, err = parseValue(string(text[1 : len(text)-1])); err != nil {
		return err
	}
	return nil
}

// micros is a time in seconds since 1970.
func micros(seconds float64) (int64, error) {
	us := math.Round(seconds * float64(time.Second/time.Microsecond))
	if math.IsNaN(us) || us < 0 || us > float64(maxTime) {
		return 0, fmt.Errorf("has the time %s, which is not in seconds since 1970", excerpt(strconv.FormatFloat(seconds, 'f', -1, 64)))
	}
	return int64(us), nil
}

// parseValue reads a number as Prometheus writes it, NaN and +Inf included. A number that
// is too large for its type is infinite.
func parseValue(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("has the value %q, which is no number", excerpt(text))
	}
	return value, nil
}

// excerpt is foreign text as an error may repeat it: printable, and not too much.
func excerpt(text string) string {
	const most = 120
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
