package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// exchange is one question and its answer over HTTP.
type exchange struct {
	*endpointClient
	question *Question
	maxBytes int64
}

// statusError is an answer that says that the query failed.
type statusError struct {
	code       int           // HTTP status
	kind       string        // errorType of the API, if any
	text       string        // error of the API, if any; written by the server
	retryAfter time.Duration // what the server asks for, if anything
}

func (e *statusError) Error() string { return fmt.Sprintf("HTTP status %d, %s", e.code, e.kind) }

// resultTypeError is a result that is no number by its type.
type resultTypeError string

func (e resultTypeError) Error() string { return "unexpected result type " + string(e) }

// malformedError is an answer that is not one of the API.
type malformedError string

func (e malformedError) Error() string { return string(e) }

// tooManySeriesError is the limit that the answer's series exceed.
type tooManySeriesError int

func (e tooManySeriesError) Error() string { return fmt.Sprintf("more than %d series", int(e)) }

var errTooLarge = errors.New("response too large")

// run asks by POST, as queries may be longer than an address may be, and by GET
// where a server refuses that. No evaluation time is sent: the server then
// evaluates by its own clock, and the sample's time shows a cached answer or a
// wrong clock.
func (x *exchange) run(ctx context.Context) (*answer, error) {
	form := url.Values{"query": {x.question.Expr}, "timeout": {x.question.timeout().String()}}.Encode()
	a, err := x.send(ctx, http.MethodPost, form)
	var refused *statusError
	if errors.As(err, &refused) {
		switch refused.code {
		case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return x.send(ctx, http.MethodGet, form)
		}
	}
	return a, err
}

func (x *exchange) send(ctx context.Context, method, form string) (*answer, error) {
	req, err := x.request(ctx, method, form)
	if err != nil {
		return nil, err
	}
	resp, err := x.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it is only read from
	// What failed is told by its status, however long the page is that comes with it.
	succeeded := resp.StatusCode/100 == 2
	if succeeded && resp.ContentLength > x.maxBytes {
		return nil, errTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, x.maxBytes+1))
	if err != nil {
		return nil, err
	}
	if succeeded && int64(len(body)) > x.maxBytes {
		return nil, errTooLarge
	}
	a, err := decode(resp.StatusCode, body, x.question)
	var failed *statusError
	if errors.As(err, &failed) {
		failed.retryAfter = retryAfter(resp.Header)
	}
	return a, err
}

func (x *exchange) request(ctx context.Context, method, form string) (*http.Request, error) {
	if method == http.MethodGet {
		withQuery := *x.query
		withQuery.RawQuery = form
		return http.NewRequestWithContext(ctx, method, withQuery.String(), http.NoBody)
	}
	req, err := http.NewRequestWithContext(ctx, method, x.query.String(), strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// The presence of the key lets the transport repeat the query on another
	// connection where the server has just closed this one; nil is not sent.
	req.Header["Idempotency-Key"] = nil
	return req, nil
}

// retryAfter reads the header's two forms, seconds and a date. The date is
// compared with the server's own clock.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if s, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(s) * time.Second
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(sent))
}

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
