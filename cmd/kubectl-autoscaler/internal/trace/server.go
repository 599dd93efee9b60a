package trace

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

const (
	// maxPoints of one question: Prometheus gives 11,000 at most.
	maxPoints = 10_000
	// answerTimeout is the deadline of one answer, with its body.
	answerTimeout = 2 * time.Minute
	// maxRedirects is more than a proxy before it needs.
	maxRedirects = 5
)

// Server is a Prometheus.
type Server struct {
	address string
	// shown is the address as errors have it: without a password.
	shown  string
	client *http.Client
}

// NewServer is for an address as http://localhost:9090, without /api/v1.
func NewServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("this is no address; write one as http://localhost:9090")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s: an address as http://localhost:9090 is expected", u.Redacted())
	}
	s := &Server{address: strings.TrimSuffix(address, "/"), client: &http.Client{Timeout: answerTimeout, CheckRedirect: stay}}
	u.User = nil
	s.shown = strings.TrimSuffix(u.String(), "/")
	return s, nil
}

// stay refuses a redirect that leads to somebody else, or drops what was asked.
func stay(next *http.Request, before []*http.Request) error {
	first := before[0]
	switch {
	case next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host:
		return fmt.Errorf("it sends us on to %s://%s; if that is the Prometheus that you mean, give its address", next.URL.Scheme, next.URL.Host)
	case next.Method != first.Method:
		return errors.New("it sends us on with a redirect that drops the query (it must be 307 or 308)")
	case len(before) >= maxRedirects:
		return fmt.Errorf("it sends us on more than %d times", maxRedirects)
	}
	return nil
}

// Query is one that is asked over a range of time.
type Query struct {
	Expr     string
	From, To time.Time // To is not part of it
	Step     time.Duration
	// Series picks one of several; nil wants the only one.
	Series Labels
}

// Range asks for a range, in as many questions as it takes, of which the answer to one is
// read while it comes.
func (s *Server) Range(ctx context.Context, q Query, warn func(string)) Rows {
	return func(yield func(Row, error) bool) {
		warned := map[string]bool{}
		once := func(text string) {
			if !warned[text] && len(warned) < 10 {
				warned[text] = true
				warn(text)
			}
		}
		var order ordered
		for from := q.From; from.Before(q.To); from = from.Add(maxPoints * q.Step) {
			to := from.Add((maxPoints - 1) * q.Step)
			if last := q.To.Add(-time.Nanosecond); last.Before(to) {
				to = last
			}
			for row, err := range s.answer(ctx, q, from, to, once) {
				if err == nil {
					err = order.check(row.At)
				}
				if err != nil && !errors.Is(err, errNoSeries) {
					yield(Row{}, &PlaceError{Name: "the answer of " + s.shown, Err: err})
					return
				}
				if err == nil && !yield(row, nil) {
					return
				}
			}
		}
		if !order.begun {
			yield(Row{}, outside(q.From, q.To, nil))
		}
	}
}

func (s *Server) answer(ctx context.Context, q Query, from, to time.Time, warn func(string)) Rows {
	return func(yield func(Row, error) bool) {
		response, err := s.post(ctx, url.Values{
			"query": {q.Expr}, "start": {unix(from)}, "end": {unix(to)}, "step": {strconv.FormatFloat(q.Step.Seconds(), 'f', -1, 64)},
		})
		if err != nil {
			yield(Row{}, err)
			return
		}
		defer response.Body.Close()
		if kind := response.Header.Get("Content-Type"); response.StatusCode/100 != 2 && !strings.HasPrefix(kind, "application/json") {
			text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // whatever there is
			yield(Row{}, fmt.Errorf("is HTTP status %s: %s", response.Status, excerpt(strings.TrimSpace(string(text)))))
			return
		}
		expected(ReadJSON(response.Body, q.Series, warn), from, to, q.Step)(yield)
	}
}

// expected refuses rows that nobody asked for.
func expected(rows Rows, from, to time.Time, step time.Duration) Rows {
	first, last := from.UnixMilli()*int64(time.Millisecond/time.Microsecond), to.UnixMicro()
	asked := fmt.Sprintf("from %s to %s", Time(first), Time(to.Round(time.Microsecond).UnixMicro()))
	left := int64(to.Sub(from)/step) + 1
	return func(yield func(Row, error) bool) {
		for row, err := range rows {
			left--
			switch {
			case err != nil:
			case row.At < first || row.At > last:
				err = fmt.Errorf("has a value at %s, where it was asked for those %s", Time(row.At), asked)
			case left < 0:
				err = fmt.Errorf("has more values %s than one each %s, which it was asked for", asked, step)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

func (s *Server) post(ctx context.Context, form url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("User-Agent", "kubectl-autoscaler")
	response, err := s.client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // whose address is known
	}
	return response, err
}

func unix(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
