package prometheus_test

import (
	"context"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

// patience is long enough for any answer that is going to come.
const patience = 30 * time.Second

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

func newServer(tb testing.TB) *fixture.MetricServer {
	tb.Helper()
	return fixture.NewMetricServer(tb, fixture.WithClock(clock))
}

// newClient knows one endpoint, "main".
func newClient(tb testing.TB, url string, changes ...func(*prometheus.Endpoint)) *prometheus.Client {
	tb.Helper()
	e := prometheus.Endpoint{Name: "main", URL: url}
	for _, change := range changes {
		change(&e)
	}
	client, err := prometheus.NewClient([]prometheus.Endpoint{e}, clock)
	require.NoError(tb, err)
	return client
}

func ask(tb testing.TB, client *prometheus.Client) scaling.Sample {
	tb.Helper()
	return client.Measure(tb.Context(), prometheus.Measure{
		Load: question("up"), MaxAge: 45 * time.Second,
	})
}

// question is one to the endpoint "main".
func question(expr string) prometheus.Question {
	return prometheus.Question{Profile: "requests", Endpoint: "main", Expr: expr, Timeout: patience}
}

func TestSampleOfOneSeriesOrScalarIsValid(t *testing.T) {
	cases := map[string]struct {
		set  func(*fixture.MetricServer)
		want float64
	}{
		"a value":                     {func(s *fixture.MetricServer) { s.Value(900) }, 900},
		"zero":                        {func(s *fixture.MetricServer) { s.Value(0) }, 0},
		"minus zero":                  {func(s *fixture.MetricServer) { s.Text("-0") }, 0},
		"a fraction":                  {func(s *fixture.MetricServer) { s.Value(0.25) }, 0.25},
		"a huge value":                {func(s *fixture.MetricServer) { s.Text("1e308") }, 1e308},
		"a scalar":                    {func(s *fixture.MetricServer) { s.Scalar("42") }, 42},
		"an age just within bounds":   {func(s *fixture.MetricServer) { s.Stale(45 * time.Second) }, 1},
		"a clock that is a bit ahead": {func(s *fixture.MetricServer) { s.Stale(-prometheus.MaxClockSkew) }, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			c.set(server)
			got := ask(t, newClient(t, server.URL()))
			assert.Equal(t, scaling.Sample{Value: c.want, Validity: scaling.Valid}, got)
			assert.False(t, math.Signbit(got.Value), "minus zero")
		})
	}
}

func TestSampleOfAnUnusableAnswerSaysWhy(t *testing.T) {
	cases := map[string]struct {
		set    func(*fixture.MetricServer)
		reason string
		says   string
	}{
		"a scalar that is NaN":  {func(s *fixture.MetricServer) { s.Scalar("NaN") }, prometheus.ReasonInvalidValue, "NaN"},
		"a string":              {func(s *fixture.MetricServer) { s.StringResult("5") }, prometheus.ReasonUnexpectedResultType, "string"},
		"a matrix":              {func(s *fixture.MetricServer) { s.Matrix() }, prometheus.ReasonUnexpectedResultType, "matrix"},
		"a native histogram":    {func(s *fixture.MetricServer) { s.Histogram() }, prometheus.ReasonHistogramSample, "histogram_count"},
		"a stale sample":        {func(s *fixture.MetricServer) { s.Stale(46 * time.Second) }, prometheus.ReasonStaleSample, "45s"},
		"a sample ahead of now": {func(s *fixture.MetricServer) { s.Stale(-6 * time.Second) }, prometheus.ReasonFutureSample, "clock"},
		"bad credentials":       {func(s *fixture.MetricServer) { s.Status(401) }, prometheus.ReasonUnauthorized, "401"},
		"missing permission":    {func(s *fixture.MetricServer) { s.Status(403) }, prometheus.ReasonUnauthorized, "403"},
		"wrong path":            {func(s *fixture.MetricServer) { s.Status(404) }, prometheus.ReasonUnexpectedStatus, "404"},
		"unprocessable query":   {func(s *fixture.MetricServer) { s.Error(422, "execution", "many-to-many matching") }, prometheus.ReasonQueryRejected, "many-to-many"},
		"too many queries":      {func(s *fixture.MetricServer) { s.Status(429) }, prometheus.ReasonRateLimited, "429"},
		"a failing server":      {func(s *fixture.MetricServer) { s.Status(500) }, prometheus.ReasonServerError, "500"},
		"a failing gateway":     {func(s *fixture.MetricServer) { s.Status(502) }, prometheus.ReasonServerError, "502"},
		"evaluation too slow":   {func(s *fixture.MetricServer) { s.Error(503, "timeout", "query timed out") }, prometheus.ReasonTimeout, "gave up"},
		"no content":            {func(s *fixture.MetricServer) { s.Raw("", 204, "application/json") }, prometheus.ReasonBadResponse, "JSON"},
		"warned and empty":      {func(s *fixture.MetricServer) { s.Empty(); s.Warnings("store down") }, prometheus.ReasonNoData, "no series"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			c.set(server)
			assertInvalid(t, ask(t, newClient(t, server.URL())), c.reason, c.says)
		})
	}
}

func assertInvalid(t *testing.T, got scaling.Sample, reason, says string) {
	t.Helper()
	assert.Equal(t, scaling.Invalid, got.Validity)
	assert.Equal(t, reason, got.Reason)
	assert.Zero(t, got.Value)
	assert.Contains(t, got.Message, says)
	assert.NotContains(t, got.Message, "127.0.0.1")
	assert.NotContains(t, got.Message, "://")
	assert.NotContains(t, got.Message, "\n")
	assert.Less(t, len(got.Message), 512)
}

func TestMalformedAnswersAreNeverZeroLoad(t *testing.T) {
	const head, tail = `{"status":"success","data":{"resultType":"vector","result":`, `}}`
	cases := map[string]string{
		"nothing":                "",
		"not an object":          `[]`,
		"null":                   `null`,
		"no status":              `{"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}`,
		"unknown status":         `{"status":"ok","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}`,
		"no data":                `{"status":"success"}`,
		"null data":              `{"status":"success","data":null}`,
		"no result":              `{"status":"success","data":{"resultType":"vector"}}`,
		"sample without value":   head + `[{"metric":{}}]` + tail,
		"null value":             head + `[{"metric":{},"value":null}]` + tail,
		"empty value":            head + `[{"metric":{},"value":[]}]` + tail,
		"time without value":     head + `[{"metric":{},"value":[1]}]` + tail,
		"time with null value":   head + `[{"metric":{},"value":[1,null]}]` + tail,
		"null time":              head + `[{"metric":{},"value":[null,"5"]}]` + tail,
		"value as a number":      head + `[{"metric":{},"value":[1,5]}]` + tail,
		"three elements":         head + `[{"metric":{},"value":[1,"5","6"]}]` + tail,
		"value that is no float": head + `[{"metric":{},"value":[1,"five"]}]` + tail,
		"value beyond float64":   head + `[{"metric":{},"value":[1,"1e309"]}]` + tail,
		"null series":            head + `[null]` + tail,
		"result that is no list": head + `{}` + tail,
		"truncated":              head + `[{"metric":{},"value":[1,"5"]}]`,
		"something after it":     head + `[{"metric":{},"value":[1,"5"]}]` + tail + `{}`,
		"empty scalar":           `{"status":"success","data":{"resultType":"scalar","result":[]}}`,
		"scalar with null":       `{"status":"success","data":{"resultType":"scalar","result":[1,null]}}`,
		"warnings of a bad type": head + `[{"metric":{},"value":[1,"5"]}],"warnings":"x"` + tail + `{`,
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.Raw(body, http.StatusOK, "application/json")
			// Without an age limit, the time cannot catch the fault by chance.
			got := newClient(t, server.URL()).Measure(t.Context(), prometheus.Measure{Load: question("up")})
			assertInvalid(t, got, prometheus.ReasonBadResponse, `endpoint "main"`)
		})
	}
}

func TestEmptyVectorIsNoDataAndNullIsNoAnswer(t *testing.T) {
	server := newServer(t)
	server.Raw(`{"status":"success","data":{"resultType":"vector","result":[]}}`, http.StatusOK, "application/json")
	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonNoData, "no series")

	server.Raw(`{"status":"success","data":{"resultType":"vector","result":null}}`, http.StatusOK, "application/json")
	m := prometheus.Measure{Load: question("up"), Namespace: "shop", Target: "web"}
	m.Load.OnEmptyZero = true
	assertInvalid(t, newClient(t, server.URL()).Measure(t.Context(), m), prometheus.ReasonBadResponse, "no result")
	m.Load.Series = prometheus.SeriesLabels{Namespace: "ns", Target: "app"}
	assertInvalid(t, newClient(t, server.URL()).Measure(t.Context(), m), prometheus.ReasonBadResponse, "no result")
}

func TestUnknownEndpointIsToldWhichThereAre(t *testing.T) {
	m := prometheus.Measure{Load: prometheus.Question{Endpoint: "other", Expr: "up"}}
	for says, endpoints := range map[string][]prometheus.Endpoint{
		"; it has none":           nil,
		"; it has eu, main, us-1": {{Name: "us-1", URL: "http://a"}, {Name: "main", URL: "http://b"}, {Name: "eu", URL: "http://c"}},
	} {
		client, err := prometheus.NewClient(endpoints, time.Now)
		require.NoError(t, err)
		assertInvalid(t, client.Measure(t.Context(), m), prometheus.ReasonUnknownEndpoint, says)
	}
}

func TestUnknownEndpointIsNotAsked(t *testing.T) {
	server := newServer(t)
	client := newClient(t, server.URL())
	assert.True(t, client.Has("main"))
	assert.False(t, client.Has("other"))
	got := client.Measure(t.Context(), prometheus.Measure{Load: prometheus.Question{Endpoint: "other", Expr: "up"}})
	assertInvalid(t, got, prometheus.ReasonUnknownEndpoint, `"other" is not in the operator's configuration; it has main`)
	assert.Zero(t, server.RequestCount())
}

func TestStoppedServerIsUnreachable(t *testing.T) {
	server := newServer(t)
	client := newClient(t, server.URL())
	server.Close()
	assertInvalid(t, ask(t, client), prometheus.ReasonUnreachable, "refused")
}

func TestConnectionThatBreaksIsUnreachable(t *testing.T) {
	server := newServer(t)
	server.Func(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonUnreachable, "broke")
}

func TestBodyThatBreaksIsUnreachable(t *testing.T) {
	server := newServer(t)
	server.Func(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "500")
		_, _ = w.Write([]byte(`{"status":"success"`))
		panic(http.ErrAbortHandler)
	})
	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonUnreachable, "broke")
}

func TestCanceledQueryIsNotATimeout(t *testing.T) {
	server := newServer(t)
	client := newClient(t, server.URL())
	ctx, cancel := context.WithCancel(t.Context())
	server.Func(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	got := client.Measure(ctx, prometheus.Measure{Load: question("up")})
	assertInvalid(t, got, prometheus.ReasonCanceled, "given up")
}

func TestQueryAsksForServerSideTimeoutAndNoEvaluationTime(t *testing.T) {
	server := newServer(t)
	server.Value(1)
	client := newClient(t, server.URL()+"/prefix/")
	got := client.Measure(t.Context(), prometheus.Measure{Load: question(`sum(up{a="b"})`)})
	require.Equal(t, scaling.Valid, got.Validity)
	require.Equal(t, 1, server.RequestCount())
	request := server.Requests()[0]
	assert.Equal(t, "/prefix/api/v1/query", request.Path)
	assert.Equal(t, `sum(up{a="b"})`, request.Query)
	assert.Equal(t, patience.String(), request.Timeout)
}

func TestServerThatRefusesPostIsAskedByGet(t *testing.T) {
	for _, refusal := range []int{http.StatusForbidden, http.StatusMethodNotAllowed} {
		server := newServer(t)
		server.Func(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(refusal)
				return
			}
			_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1795953600,"7"]}]}}`))
		})
		got := ask(t, newClient(t, server.URL()))
		assert.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, got)
	}
}
