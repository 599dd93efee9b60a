package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/common/model"
)

// exchange is the api.Client of one query. It does what the library leaves to
// its user: it bounds the body, keeps the HTTP status as a typed error, and
// checks the envelope, whose missing or null fields would otherwise decode as
// a success with the value 0.
type exchange struct {
	api.Client // builds URLs
	http       *http.Client
	maxBytes   int64
	// partial is set when the answer says, outside of its warnings, that it is
	// incomplete (VictoriaMetrics' isPartial).
	partial bool
}

// statusError is an answer that says that the query failed.
type statusError struct {
	code int    // HTTP status
	kind string // errorType of the API, if any
	text string // error of the API, if any; written by the server
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d, %s", e.code, e.kind) }

// resultTypeError is a result that is no single number by its type.
type resultTypeError string

func (e resultTypeError) Error() string { return "unexpected result type " + string(e) }

// malformedError is an answer that is not one of the API.
type malformedError string

func (e malformedError) Error() string { return string(e) }

var errTooLarge = errors.New("response too large")

// envelope is the part of the answer that the library does not check.
type envelope struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
	IsPartial bool   `json:"isPartial"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
}

// Do implements api.Client. With a response it returns the error, too, as the
// library repeats a refused POST as GET by the response's status.
func (x *exchange) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	resp, err := x.http.Do(req.WithContext(ctx)) //nolint:gosec // the address is the administrator's
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it is only read from
	if resp.ContentLength > x.maxBytes {
		return nil, nil, errTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, x.maxBytes+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(body)) > x.maxBytes {
		return nil, nil, errTooLarge
	}
	return resp, body, x.check(resp.StatusCode, body)
}

func (x *exchange) check(code int, body []byte) error {
	var e envelope
	err := json.Unmarshal(body, &e)
	if code/100 != 2 {
		return &statusError{code: code, kind: e.ErrorType, text: e.Error}
	}
	if err != nil {
		return malformedError("the answer is not the JSON of the Prometheus API")
	}
	switch e.Status {
	case "success":
		x.partial = e.IsPartial
		return e.checkResult()
	case "error":
		return &statusError{code: code, kind: e.ErrorType, text: e.Error}
	}
	return malformedError("the answer has no status of the Prometheus API")
}

func (e *envelope) checkResult() error {
	switch e.Data.ResultType {
	case model.ValVector.String():
		var series []struct {
			Value     json.RawMessage `json:"value"`
			Histogram json.RawMessage `json:"histogram"`
		}
		if err := json.Unmarshal(e.Data.Result, &series); err != nil {
			return malformedError("the result is not a vector")
		}
		// Other counts are refused later, with their own reasons.
		if len(series) == 1 && isAbsent(series[0].Histogram) {
			return checkPoint(series[0].Value)
		}
		return nil
	case model.ValScalar.String():
		return checkPoint(e.Data.Result)
	case model.ValMatrix.String(), model.ValString.String():
		return resultTypeError(e.Data.ResultType)
	case "":
		return malformedError("the answer has no result type")
	}
	return resultTypeError("of an unknown name")
}

// checkPoint accepts [number, string]. Go decodes a shorter array, or a null in
// it, without an error and leaves the value 0.
func checkPoint(raw json.RawMessage) error {
	var point []json.RawMessage
	if err := json.Unmarshal(raw, &point); err != nil || len(point) != 2 ||
		isAbsent(point[0]) || !bytes.HasPrefix(point[1], []byte(`"`)) {
		return malformedError("the sample is not a time and a value")
	}
	return nil
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// maxRedirects is the number of redirects that are followed within one host.
const maxRedirects = 5

// redirectPolicy follows a redirect only where it keeps scheme, host and port,
// so that credentials stay with the server they are for, and keeps the method,
// as a POST that turns into a GET loses the query. Otherwise the redirect itself
// is the answer.
func redirectPolicy(follow bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if !follow || len(via) > maxRedirects || req.Method != via[0].Method || !sameOrigin(req.URL, via[0].URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }
