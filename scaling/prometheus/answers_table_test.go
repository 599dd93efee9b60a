package prometheus_test

import (
	"net/http"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

const answersHead = `# What comes of each answer to a query

One row for each kind of response, as ` + "`TestMetricAnswers`" + ` gets it from the real client
over HTTP; ` + "`go test ./scaling/prometheus -run MetricAnswers -update`" + ` writes this file.

* **scale-up**, **scale-down**: may this sample lead to one? Without a sample a metric
  asks for nothing. Other metrics of the AutoScaler may still scale up; nothing scales
  down while a metric has no ` + "`Valid`" + ` sample. Where no metric has one, the replicas stay,
  until a ` + "`fallback`" + ` raises them.
* **sample's reason** stands in the condition ` + "`MetricsAvailable`" + ` and in the label ` + "`reason`" + ` of
  ` + "`autoscale_metric_samples_total`" + `.
* **query's reason** is the label ` + "`reason`" + ` of ` + "`autoscale_queries_total`" + `: ` + "`Answered`" + ` where
  there was an answer, whatever it says. After any other one in a row with another, the
  sampler waits longer before it asks again: up to a minute (or a poll interval, where that
  is longer), or up to five where the server sends ` + "`Retry-After`" + `.

Some reasons come without an answer: ` + "`UnknownEndpoint`" + `, where the operator's configuration
has no endpoint of the profile's name; ` + "`BudgetExceeded`" + `, where a sample is too old, or there is
none yet, because queries wait for the budget of the profile or the endpoint;
` + "`EndpointBusy`" + `, where they wait behind others of the endpoint that take too long; and
` + "`Canceled`" + `, where a tool was stopped while it asked.

The profile asks for one series (` + "`series: Single`" + `) and the metric allows an age of 45 s
where a row does not say otherwise.
`

type server = fixture.MetricServer

func answerSections() []section {
	return []section{
		{"HTTP status", "Without a body of the Prometheus API, where none is mentioned.", statusRows()},
		{"Connections and time", "", transportRows()},
		{"Bodies", "A body is read up to its limit and not further, whatever length it announces. That of a\nfailing status may be longer: the status counts.", bodyRows()},
		{"Results", "", resultRows()},
		{"Values and times", "", valueRows()},
		{"Warnings", "", warningRows()},
		{"One query for many Deployments", "`series: PerTarget`, for the Deployment `web` of the namespace `shop`.", targetRows()},
		{"Backlog", "The arrival rate is a query of its own; the query's reason is that of the backlog's.", backlogRows()},
		{"Freshness", "The freshness query is one of its own; the query's reason is that of the load's.", freshnessRows()},
	}
}

func status(code int) func(*server) { return func(s *server) { s.Status(code) } }

func failing(code int, kind, text string) func(*server) {
	return func(s *server) { s.Error(code, kind, text) }
}

func body(text string) func(*server) {
	return func(s *server) { s.Raw(text, http.StatusOK, "application/json") }
}

func handler(h http.HandlerFunc) func(*server) { return func(s *server) { s.Func(h) } }

func retryAfter(code int) func(*server) {
	return handler(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(code)
	})
}

// moved redirects within the host to a path that answers.
func moved(code int) func(*server) {
	return handler(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/moved") {
			_, _ = w.Write([]byte(vectorBody(`{"metric":{},"value":[$t,"7"]}`)))
			return
		}
		http.Redirect(w, r, "/moved"+r.URL.Path, code)
	})
}

func elsewhere(code int) func(*server) {
	return handler(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://thief.invalid/api/v1/query", code)
	})
}

func statusRows() []response {
	const (
		rejected     = prometheus.ReasonQueryRejected
		unauthorized = prometheus.ReasonUnauthorized
		unexpected   = prometheus.ReasonUnexpectedStatus
		failed       = prometheus.ReasonServerError
		limited      = prometheus.ReasonRateLimited
		redirected   = prometheus.ReasonRedirected
		timeout      = prometheus.ReasonTimeout
	)
	return []response{
		{name: "200 with a value", set: func(s *server) { s.Value(7) }},
		{name: "200 with `status: error`, `bad_data`", set: failing(200, "bad_data", "no"), want: rejected, query: rejected},
		{name: "200 with `status: error`, `execution`", set: failing(200, "execution", "no"), want: rejected, query: rejected},
		{name: "200 with `status: error`, `timeout`", set: failing(200, "timeout", "slow"), want: timeout, query: timeout},
		{name: "200 with `status: error`, `internal`", set: failing(200, "internal", "no"), want: failed, query: failed},
		{name: "204", set: func(s *server) { s.Raw("", 204, "") }, want: prometheus.ReasonBadResponse, query: prometheus.ReasonBadResponse},
		{name: "301 within the host", set: moved(301), client: followRedirects, want: redirected, query: redirected},
		{name: "302 within the host", set: moved(302), client: followRedirects, want: redirected, query: redirected},
		{name: "307 within the host", set: moved(307), client: followRedirects},
		{name: "308 within the host", set: moved(308), client: followRedirects},
		{name: "308 within the host, `follow_redirects: false`", set: moved(308), want: redirected, query: redirected},
		{name: "302 to another host", set: elsewhere(302), client: followRedirects, want: redirected, query: redirected},
		{name: "307 to another host", set: elsewhere(307), client: followRedirects, want: redirected, query: redirected},
		{name: "redirects in a circle", set: func(s *server) { s.Redirect("/api/v1/query") }, client: followRedirects, want: redirected, query: redirected},
		{name: "400", set: status(400), want: rejected, query: rejected},
		{name: "400 with `bad_data`", set: failing(400, "bad_data", "parse error"), want: rejected, query: rejected},
		{name: "401", set: status(401), want: unauthorized, query: unauthorized},
		{name: "403", set: status(403), want: unauthorized, query: unauthorized},
		{name: "404", set: status(404), want: unexpected, query: unexpected},
		{name: "405 to POST, a value to GET", set: handler(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			_, _ = w.Write([]byte(vectorBody(`{"metric":{},"value":[$t,"7"]}`)))
		})},
		{name: "408", set: status(408), want: timeout, query: timeout},
		{name: "413", set: status(413), want: unexpected, query: unexpected},
		{name: "422 with `execution`", set: failing(422, "execution", "many-to-many matching"), want: rejected, query: rejected},
		{name: "422 with `execution`, too many samples", set: failing(422, "execution", "query processing would load too many samples into memory"), want: rejected, query: rejected},
		{name: "429", set: status(429), want: limited, query: limited},
		{name: "429 with `Retry-After`", set: retryAfter(429), want: limited, query: limited},
		{name: "499", set: status(499), want: unexpected, query: unexpected},
		{name: "500", set: status(500), want: failed, query: failed},
		{name: "502", set: status(502), want: failed, query: failed},
		{name: "503", set: status(503), want: failed, query: failed},
		{name: "503 with `Retry-After`", set: retryAfter(503), want: failed, query: failed},
		{name: "503 with `timeout`", set: failing(503, "timeout", "query timed out"), want: timeout, query: timeout},
		{name: "504", set: status(504), want: failed, query: failed},
		{name: "500 with a result", set: func(s *server) { s.Raw(vectorBody(`{"metric":{},"value":[$t,"7"]}`), 500, "application/json") }, want: failed, query: failed},
	}
}

func transportRows() []response {
	const timeout, unreachable = prometheus.ReasonTimeout, prometheus.ReasonUnreachable
	short := func(m *prometheus.Measure) { m.Load.Timeout = 50 * time.Millisecond }
	return []response{
		{name: "a connection that is refused", set: func(s *server) { s.Close() }, want: unreachable, query: unreachable},
		{name: "a connection that breaks", set: handler(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), want: unreachable, query: unreachable},
		{name: "a connection that is never answered", set: func(s *server) { s.Hang() }, measure: short, want: timeout, query: timeout},
		{name: "a body that drips beyond the timeout", set: func(s *server) { s.Drip(time.Millisecond) }, measure: short, want: timeout, query: timeout},
		{name: "a body that breaks off", set: handler(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			_, _ = w.Write([]byte(`{"status":"success"`))
			panic(http.ErrAbortHandler)
		}), want: unreachable, query: unreachable},
		{name: "a server without TLS where `url` says https", set: func(*server) {}, client: func(e *prometheus.Endpoint) {
			e.URL = strings.Replace(e.URL, "http://", "https://", 1)
		}, want: unreachable, query: unreachable},
		{name: "credentials whose file is gone", set: func(s *server) { s.Value(7) }, client: func(e *prometheus.Endpoint) {
			e.HTTPClientConfig.BearerTokenFile = "/nonexistent/token"
		}, want: prometheus.ReasonCredentialsUnreadable, query: prometheus.ReasonCredentialsUnreadable},
	}
}

func bodyRows() []response {
	const bad, large = prometheus.ReasonBadResponse, prometheus.ReasonResponseTooLarge
	const valid = `{"status":"success","data":{"resultType":"scalar","result":[1795953600,"7"]}}`
	return []response{
		{name: "empty", set: body(""), want: bad, query: bad},
		{name: "HTML", set: func(s *server) { s.Raw("<html>Please log in</html>", 200, "text/html") }, want: bad, query: bad},
		{name: "JSON of something else", set: body(`{"healthy":true}`), want: bad, query: bad},
		{name: "truncated JSON", set: body(valid[:len(valid)-1]), want: bad, query: bad},
		{name: "something after the JSON", set: body(valid + "{}"), want: bad, query: bad},
		{name: "an unknown `status`", set: body(`{"status":"ok","data":{"resultType":"scalar","result":[1795953600,"7"]}}`), want: bad, query: bad},
		{name: "of 2 GiB", set: func(s *server) { s.Large(2 << 30) }, want: large, query: large},
		{name: "that announces 2 GiB", set: handler(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "2147483648") }), want: large, query: large},
		{name: "as large as the limit", set: body(valid), measure: func(m *prometheus.Measure) { m.Load.MaxResponseBytes = int64(len(valid)) }},
		{name: "one byte larger than the limit", set: body(valid), measure: func(m *prometheus.Measure) { m.Load.MaxResponseBytes = int64(len(valid) - 1) }, want: large, query: large},
	}
}

func resultRows() []response {
	const bad, kind = prometheus.ReasonBadResponse, prometheus.ReasonUnexpectedResultType
	const nullVector = `{"status":"success","data":{"resultType":"vector","result":null}}`
	return []response{
		{name: "a vector of one series", set: func(s *server) { s.Value(7) }},
		{name: "a vector of no series", set: func(s *server) { s.Empty() }, want: prometheus.ReasonNoData},
		{name: "a vector of no series, `onEmpty: Zero`", set: func(s *server) { s.Empty() }, measure: func(m *prometheus.Measure) { m.Load.OnEmptyZero = true }},
		{name: "a vector that is `null`", set: body(nullVector), want: bad, query: bad},
		{name: "a vector that is `null`, `onEmpty: Zero`", set: body(nullVector), measure: func(m *prometheus.Measure) { m.Load.OnEmptyZero = true }, want: bad, query: bad},
		{name: "a vector of two series", set: func(s *server) { s.Series(2) }, want: prometheus.ReasonMultipleSeries},
		{name: "a vector of 5,000 series", set: func(s *server) { s.Series(5000) }, want: prometheus.ReasonMultipleSeries},
		{name: "a native histogram", set: func(s *server) { s.Histogram() }, want: prometheus.ReasonHistogramSample},
		{name: "a scalar", set: func(s *server) { s.Scalar("7") }},
		{name: "a string", set: func(s *server) { s.StringResult("7") }, want: kind, query: kind},
		{name: "a matrix", set: func(s *server) { s.Matrix() }, want: kind, query: kind},
		{name: "of an unknown type", set: body(`{"status":"success","data":{"resultType":"tensor","result":[]}}`), want: kind, query: kind},
		{name: "of no type", set: body(`{"status":"success","data":{"result":[]}}`), want: bad, query: bad},
		{name: "a series without a value", set: body(vectorBody(`{"metric":{}}`)), want: bad, query: bad},
		{name: "a value that is `null`", set: body(vectorBody(`{"metric":{},"value":[$t,null]}`)), want: bad, query: bad},
		{name: "a value that is no text", set: body(vectorBody(`{"metric":{},"value":[$t,7]}`)), want: bad, query: bad},
	}
}

func valueRows() []response {
	const invalid = prometheus.ReasonInvalidValue
	text := func(v string) func(*server) { return func(s *server) { s.Text(v) } }
	aged := func(d time.Duration) func(*server) { return func(s *server) { s.Stale(d) } }
	return []response{
		{name: "`0`", set: text("0")},
		{name: "`-0` (counts as 0)", set: text("-0")},
		{name: "`0.25`", set: text("0.25")},
		{name: "`1e308`", set: text("1e308")},
		{name: "`1e309`", set: text("1e309"), want: prometheus.ReasonBadResponse, query: prometheus.ReasonBadResponse},
		{name: "`NaN`", set: text("NaN"), want: invalid},
		{name: "`+Inf`", set: text("+Inf"), want: invalid},
		{name: "`-Inf`", set: text("-Inf"), want: invalid},
		{name: "`-1`", set: text("-1"), want: invalid},
		{name: "a scalar `NaN` (of `scalar()` of several series)", set: func(s *server) { s.Scalar("NaN") }, want: invalid},
		{name: "sampled 45 s ago", set: aged(45 * time.Second)},
		{name: "sampled 46 s ago", set: aged(46 * time.Second), want: prometheus.ReasonStaleSample},
		{name: "sampled 46 s ago, without a limit", set: aged(46 * time.Second), measure: func(m *prometheus.Measure) { m.MaxAge = 0 }},
		{name: "sampled 5 s ahead", set: aged(-5 * time.Second)},
		{name: "sampled 6 s ahead", set: aged(-6 * time.Second), want: prometheus.ReasonFutureSample},
	}
}

func warningRows() []response {
	const partial = prometheus.ReasonPartialResponse
	return []response{
		{name: "`warnings`", set: func(s *server) { s.Value(7); s.Warnings("No StoreAPIs matched for this query") }, want: partial},
		{name: "`infos`", set: func(s *server) { s.Value(7); s.Infos("PromQL info: metric might not be a counter") }},
		{name: "`warnings` and `infos`", set: func(s *server) { s.Value(7); s.Warnings("w"); s.Infos("i") }, want: partial},
		{name: "`isPartial` (VictoriaMetrics)", set: body(`{"status":"success","isPartial":true,"data":{"resultType":"scalar","result":[1795953600,"7"]}}`), want: partial},
		{name: "`warnings` and no series", set: func(s *server) { s.Empty(); s.Warnings("w") }, want: prometheus.ReasonNoData},
		{name: "`warnings` and no series, `onEmpty: Zero`", set: func(s *server) { s.Empty(); s.Warnings("w") }, measure: func(m *prometheus.Measure) { m.Load.OnEmptyZero = true }, want: partial},
		{name: "`warnings` and `NaN`", set: func(s *server) { s.Text("NaN"); s.Warnings("w") }, want: prometheus.ReasonInvalidValue},
	}
}

func targetRows() []response {
	const (
		web   = `{"metric":{"namespace":"shop","deployment":"web"},"value":[$t,"7"]}`
		other = `{"metric":{"namespace":"shop","deployment":"api"},"value":[$t,"9"]}`
		bare  = `{"metric":{"namespace":"shop"},"value":[$t,"8"]}`
		nan   = `{"metric":{"namespace":"shop","deployment":"web"},"value":[$t,"NaN"]}`
	)
	perTarget := func(m *prometheus.Measure) {
		m.Load.Series = prometheus.SeriesLabels{Namespace: "namespace", Target: "deployment"}
	}
	zero := func(m *prometheus.Measure) { perTarget(m); m.Load.OnEmptyZero = true }
	two := func(m *prometheus.Measure) { perTarget(m); m.Load.MaxSeries = 2 }
	const many, kind = prometheus.ReasonTooManySeries, prometheus.ReasonUnexpectedResultType
	rows := []response{
		{name: "a series for it, among others", set: body(vectorBody(other, web))},
		{name: "two series for it", set: body(vectorBody(web, other, web)), want: prometheus.ReasonDuplicateSeries},
		{name: "two series for another", set: body(vectorBody(other, web, other))},
		{name: "series for others only", set: body(vectorBody(other)), want: prometheus.ReasonNoData},
		{name: "series for others only, `onEmpty: Zero`", set: body(vectorBody(other)), measure: zero},
		{name: "a series that lacks a label", set: body(vectorBody(bare)), want: prometheus.ReasonNoData},
		{name: "a series for another and one that lacks a label, `onEmpty: Zero`", set: body(vectorBody(other, bare)), measure: zero},
		{name: "only series that lack a label, `onEmpty: Zero`", set: body(vectorBody(bare)), measure: zero, want: prometheus.ReasonNoData},
		{name: "no series", set: body(vectorBody()), want: prometheus.ReasonNoData},
		{name: "no series, `onEmpty: Zero`", set: body(vectorBody()), measure: zero},
		{name: "`NaN` for it", set: body(vectorBody(nan, other)), want: prometheus.ReasonInvalidValue},
		{name: "more series than `maxSeries`", set: body(vectorBody(web, other, bare)), measure: two, want: many, query: many},
		{name: "a scalar", set: func(s *server) { s.Scalar("7") }, want: kind, query: kind},
	}
	for i := range rows {
		if rows[i].measure == nil {
			rows[i].measure = perTarget
		}
	}
	return rows
}

func backlogRows() []response {
	rows := []response{
		{name: "both are valid", set: func(s *server) { s.On("arrivals").Value(5) }},
		{name: "no arrival rate", set: func(s *server) { s.On("arrivals").Empty() }, want: prometheus.ReasonNoData},
		{name: "a failing query of the arrival rate", set: func(s *server) { s.On("arrivals").Status(500) }, want: prometheus.ReasonServerError},
		{name: "an arrival rate with `warnings`", set: func(s *server) {
			s.On("arrivals").Raw(`{"status":"success","warnings":["w"],"data":{"resultType":"scalar","result":[1795953600,"5"]}}`, 200, "application/json")
		}, want: prometheus.ReasonPartialResponse},
		{name: "a failing query of the backlog", set: func(s *server) { s.On("load").Status(500) }, want: prometheus.ReasonServerError, query: prometheus.ReasonServerError},
	}
	for i := range rows {
		rows[i].measure = func(m *prometheus.Measure) { m.Arrivals = question("arrivals") }
	}
	return rows
}

func freshnessRows() []response {
	source := func(v string) func(*server) { return func(s *server) { s.On("source").Text(v) } }
	age := func(m *prometheus.Measure) {
		m.Freshness = prometheus.Freshness{Question: question("source"), MaxAge: time.Minute}
	}
	share := func(m *prometheus.Measure) {
		m.Freshness = prometheus.Freshness{Question: question("source"), MinHealthyShare: 0.8}
	}
	const stale, unknown = prometheus.ReasonStaleSource, prometheus.ReasonFreshnessUnknown
	return []response{
		{name: "an age of `maxAgeSeconds`", set: source("60"), measure: age},
		{name: "a greater age", set: source("60.001"), measure: age, want: stale},
		{name: "a share of `minHealthyShare`", set: source("0.8"), measure: share},
		{name: "a smaller share", set: source("0.79"), measure: share, want: stale},
		{name: "`NaN`, as of no targets", set: source("NaN"), measure: share, want: unknown},
		{name: "no series", set: func(s *server) { s.On("source").Empty() }, measure: age, want: unknown},
		{name: "a failing query", set: func(s *server) { s.On("source").Status(503) }, measure: age, want: unknown},
		{name: "`warnings`", set: func(s *server) {
			s.On("source").Raw(`{"status":"success","warnings":["w"],"data":{"resultType":"scalar","result":[1795953600,"1"]}}`, 200, "application/json")
		}, measure: age, want: prometheus.ReasonPartialResponse},
	}
}
