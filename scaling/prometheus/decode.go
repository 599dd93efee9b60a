package prometheus

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
)

// envelope is an answer of the API. The decoder is our own: one that fills Go
// structs leaves missing and null fields 0, and 0 is a load.
type envelope struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	// IsPartial is VictoriaMetrics' way to say, outside of its warnings, that
	// the answer is incomplete.
	IsPartial bool `json:"isPartial"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// series is one element of a vector.
type series struct {
	Metric    map[string]string `json:"metric"`
	Value     json.RawMessage   `json:"value"`
	Histogram json.RawMessage   `json:"histogram"`
}

// decode reads the answer to a question, or says why there is none. It never
// panics, and its cost is bounded by the size of the body.
func decode(code int, body []byte, q *Question) (*answer, error) {
	var e envelope
	err := json.Unmarshal(body, &e)
	if code/100 != 2 {
		return nil, &statusError{code: code, kind: e.ErrorType, text: e.Error}
	}
	if err != nil {
		return nil, malformedError("the answer is not the JSON of the Prometheus API")
	}
	switch e.Status {
	case "success":
		return e.result(q)
	case "error":
		return nil, &statusError{code: code, kind: e.ErrorType, text: e.Error}
	}
	return nil, malformedError("the answer has no status of the Prometheus API")
}

func (e *envelope) result(q *Question) (*answer, error) {
	a := &answer{partial: e.IsPartial || len(e.Warnings) > 0}
	if len(e.Warnings) > 0 {
		// Servers send warnings in no fixed order; the message must not flap.
		a.warning = excerpt(slices.Min(e.Warnings))
	}
	switch kind := e.Data.ResultType; {
	case kind == model.ValVector.String():
		err := a.readVector(e.Data.Result, q)
		return a, err
	case kind == model.ValScalar.String() && q.Series.single():
		err := a.readScalar(e.Data.Result)
		return a, err
	case kind == model.ValScalar.String(), kind == model.ValMatrix.String(), kind == model.ValString.String():
		return nil, resultTypeError(kind)
	case kind == "":
		return nil, malformedError("the answer has no result type")
	}
	return nil, resultTypeError("of an unknown name")
}

func (a *answer) readScalar(raw json.RawMessage) error {
	p, err := readPoint(raw)
	a.count, a.first = 1, p
	return err
}

// readVector reads one series after the other, so that what is not needed of a
// large answer is garbage at once.
func (a *answer) readVector(raw json.RawMessage, q *Question) error {
	// A null is not the empty vector of a server that found nothing.
	if isAbsent(raw) {
		return malformedError("the answer has no result")
	}
	list := json.NewDecoder(bytes.NewReader(raw))
	if opening, err := list.Token(); err != nil || opening != json.Delim('[') {
		return malformedError("the result is not a vector")
	}
	if q.Series.single() {
		return a.readSingle(list)
	}
	return a.readTargets(list, q)
}

// readSingle keeps the first point and the number of series. Several are
// refused by their number, whatever they are.
func (a *answer) readSingle(list *json.Decoder) error {
	var first series
	for list.More() {
		var s series
		if err := list.Decode(&s); err != nil {
			return malformedError("the result is not a vector")
		}
		if a.count == 0 {
			first = s
		}
		a.count++
	}
	if a.count != 1 {
		return nil
	}
	p, err := first.point()
	a.first = p
	return err
}

// readTargets indexes the points by the target that their labels name, and
// keeps no other label.
func (a *answer) readTargets(list *json.Decoder, q *Question) error {
	a.targets = map[target]point{}
	namespaces := map[string]string{}
	for list.More() {
		a.count++
		if a.count > q.maxSeries() {
			return tooManySeriesError(q.maxSeries())
		}
		var s series
		if err := list.Decode(&s); err != nil {
			return malformedError("the result is not a vector")
		}
		p, err := s.point()
		if err != nil {
			return err
		}
		namespace, name := s.Metric[q.Series.Namespace], s.Metric[q.Series.Target]
		if namespace == "" || name == "" {
			continue // it is for nobody
		}
		if known, ok := namespaces[namespace]; ok {
			namespace = known
		} else {
			namespaces[namespace] = namespace
		}
		whose := target{namespace, name}
		if _, ok := a.targets[whose]; ok {
			p = point{kind: duplicate}
		}
		a.targets[whose] = p
	}
	return nil
}

func (s *series) point() (point, error) {
	// The float value of a native histogram reads 0, so it is never looked at.
	if !isAbsent(s.Histogram) {
		return point{kind: histogram}, nil
	}
	return readPoint(s.Value)
}

// readPoint accepts [number, string]. Go decodes a shorter array, or a null in
// it, without an error and leaves the value 0.
func readPoint(raw json.RawMessage) (point, error) {
	var parts []json.RawMessage
	var text string
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) != 2 ||
		isAbsent(parts[0]) || isAbsent(parts[1]) || json.Unmarshal(parts[1], &text) != nil {
		return point{}, malformedError("the sample is not a time and a value")
	}
	var at model.Time
	if err := at.UnmarshalJSON(parts[0]); err != nil {
		return point{}, malformedError("the sample's time cannot be decoded")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return point{}, malformedError("the sample's value cannot be decoded as a number")
	}
	return point{value: value, at: at.Time()}, nil
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
