package prometheus_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

func TestFC1_ValuesThatAreNoLoadAreInvalid(t *testing.T) {
	cases := map[string]struct{ reason, says string }{
		"NaN":   {prometheus.ReasonInvalidValue, "NaN"},
		"+Inf":  {prometheus.ReasonInvalidValue, "infinite"},
		"-Inf":  {prometheus.ReasonInvalidValue, "infinite"},
		"-1":    {prometheus.ReasonInvalidValue, "negative"},
		"1e309": {prometheus.ReasonBadResponse, "decoded"},
	}
	for value, c := range cases {
		t.Run(value, func(t *testing.T) {
			server := newServer(t)
			server.Text(value)
			assertInvalid(t, ask(t, newClient(t, server.URL())), c.reason, c.says)
		})
	}
}

func TestFC3_EmptyVectorIsNoDataAndNotZero(t *testing.T) {
	server := newServer(t)
	server.Empty()
	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonNoData, "onEmpty")
}

func TestFC4_SeveralSeriesAreRefusedAndSocketsStayConstant(t *testing.T) {
	server := newServer(t)
	client := newClient(t, server.URL())
	for i := range 200 {
		// The error paths are where connections leak.
		switch i % 4 {
		case 0:
			server.Series(2)
			assertInvalid(t, ask(t, client), prometheus.ReasonMultipleSeries, "2 series")
		case 1:
			server.Status(http.StatusUnauthorized)
			assertInvalid(t, ask(t, client), prometheus.ReasonUnauthorized, "401")
		case 2:
			server.Raw("<html>", http.StatusOK, "text/html")
			assertInvalid(t, ask(t, client), prometheus.ReasonBadResponse, "JSON")
		case 3:
			server.Error(http.StatusUnprocessableEntity, "execution", "too many samples")
			assertInvalid(t, ask(t, client), prometheus.ReasonQueryRejected, "too many samples")
		}
	}
	open, total := server.Connections()
	assert.Equal(t, 200, server.RequestCount())
	assert.Equal(t, 1, open, "open connections")
	assert.Equal(t, 1, total, "connections ever made")
}

func TestFC5_FailedFetchesHaveTheirReason(t *testing.T) {
	const login = "<html><body>Please log in</body></html>"
	cases := map[string]struct {
		set    func(*fixture.MetricServer)
		reason string
		says   string
	}{
		"400 of the API": {
			func(s *fixture.MetricServer) { s.Error(400, "bad_data", `1:5: parse error: unexpected "}"`) },
			prometheus.ReasonQueryRejected, `parse error: unexpected "}"`,
		},
		"400 of a proxy": {
			func(s *fixture.MetricServer) { s.Raw(login, 400, "text/html") },
			prometheus.ReasonQueryRejected, "HTTP 400",
		},
		"200 with status error": {
			func(s *fixture.MetricServer) { s.Error(200, "bad_data", "unknown function") },
			prometheus.ReasonQueryRejected, "unknown function",
		},
		"200 with an internal error": {
			func(s *fixture.MetricServer) { s.Error(200, "internal", "shard down") },
			prometheus.ReasonServerError, "HTTP 200",
		},
		"200 with a login page": {
			func(s *fixture.MetricServer) { s.Raw(login, 200, "text/html") },
			prometheus.ReasonBadResponse, "JSON",
		},
		"503 with Retry-After": {
			func(s *fixture.MetricServer) {
				s.Func(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "30")
					w.WriteHeader(http.StatusServiceUnavailable)
				})
			},
			prometheus.ReasonServerError, "503",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			c.set(server)
			assertInvalid(t, ask(t, newClient(t, server.URL())), c.reason, c.says)
		})
	}
}

func TestFC5_BodiesAreBounded(t *testing.T) {
	cases := map[string]func(*fixture.MetricServer){
		"of 2 GiB, without a length": func(s *fixture.MetricServer) { s.Large(2 << 30) },
		"that announces 2 GiB": func(s *fixture.MetricServer) {
			s.Func(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "2147483648") })
		},
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			set(server)
			assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonResponseTooLarge, "1048576 bytes")
		})
	}
}

func TestFC5_FailureIsToldByItsStatusHoweverLongItsPageIs(t *testing.T) {
	cases := map[string]struct {
		announced bool
		status    int
		want      string
	}{
		"a failure":                           {false, http.StatusInternalServerError, prometheus.ReasonServerError},
		"a failure that announces its length": {true, http.StatusServiceUnavailable, prometheus.ReasonServerError},
		"a login":                             {true, http.StatusUnauthorized, prometheus.ReasonUnauthorized},
		"a POST that is refused":              {true, http.StatusMethodNotAllowed, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.Func(func(w http.ResponseWriter, r *http.Request) {
				if c.want == "" && r.Method == http.MethodGet {
					_, _ = w.Write([]byte(vectorBody(`{"metric":{},"value":[$t,"7"]}`)))
					return
				}
				if c.announced {
					w.Header().Set("Content-Length", "2147483648")
				}
				w.WriteHeader(c.status)
				for range 2 << 10 {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			})
			assert.Equal(t, c.want, ask(t, newClient(t, server.URL())).Reason)
		})
	}
}

func TestFC5_BodyLimitOfTheEndpointIsExact(t *testing.T) {
	body := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1795953600,"7"]}]}}`
	server := newServer(t)
	server.Raw(body, http.StatusOK, "application/json")
	limit := func(n int) func(*prometheus.Endpoint) {
		return func(e *prometheus.Endpoint) { e.MaxResponseBytes = int64(n) }
	}
	assert.Equal(t, scaling.Valid, ask(t, newClient(t, server.URL(), limit(len(body)))).Validity)
	assertInvalid(t, ask(t, newClient(t, server.URL(), limit(len(body)-1))), prometheus.ReasonResponseTooLarge, "bytes")
}

func TestFC5_TimeoutCoversTheWholeExchange(t *testing.T) {
	cases := map[string]func(*fixture.MetricServer){
		"a connection that never answers": func(s *fixture.MetricServer) { s.Hang() },
		"a body that drips for ever":      func(s *fixture.MetricServer) { s.Drip(time.Millisecond) },
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			set(server)
			client := newClient(t, server.URL())
			start := time.Now()
			got := client.Measure(t.Context(), prometheus.Measure{
				Load: prometheus.Question{Endpoint: "main", Expr: "up", Timeout: 100 * time.Millisecond},
			})
			assertInvalid(t, got, prometheus.ReasonTimeout, "100ms")
			assert.Less(t, time.Since(start), patience)
		})
	}
}

func TestFC5_RedirectToAnotherHostIsNotFollowed(t *testing.T) {
	thief, server := newServer(t), newServer(t)
	thief.Value(5)
	// The same host under another port is another host here, too.
	server.Redirect(thief.URL() + "/api/v1/query")
	client := newClient(t, server.URL(), basicAuth, followRedirects)
	assertInvalid(t, ask(t, client), prometheus.ReasonRedirected, "final address")
	assert.Zero(t, thief.RequestCount())
	assert.Equal(t, 1, server.RequestCount())
}

func TestFC5_RedirectWithinTheHostKeepsTheQuery(t *testing.T) {
	server := newServer(t)
	redirect := func(status int) {
		server.Func(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/moved") {
				http.Redirect(w, r, "/moved"+r.URL.Path, status)
				return
			}
			_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1795953600,"7"]}}`)
		})
	}
	redirect(http.StatusPermanentRedirect)
	got := ask(t, newClient(t, server.URL(), followRedirects))
	require.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, got)
	assert.Equal(t, "up", server.Requests()[1].Query)

	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonRedirected, "final address")

	// 302 turns the POST into a GET without the query.
	redirect(http.StatusFound)
	assertInvalid(t, ask(t, newClient(t, server.URL(), followRedirects)), prometheus.ReasonRedirected, "final address")
}

func TestFC5_RedirectLoopEnds(t *testing.T) {
	server := newServer(t)
	server.Redirect("/api/v1/query")
	assertInvalid(t, ask(t, newClient(t, server.URL(), followRedirects)), prometheus.ReasonRedirected, "final address")
	assert.LessOrEqual(t, server.RequestCount(), 7)
}

func TestFC6_WarningsForbidScaleDownAndInfosDoNot(t *testing.T) {
	server := newServer(t)
	server.Value(40)
	server.Warnings("z: another", "No StoreAPIs matched for this query")
	client := newClient(t, server.URL())
	got := ask(t, client)
	assert.Equal(t, scaling.ScaleUpOnly, got.Validity)
	assert.InDelta(t, 40.0, got.Value, 0)
	assert.Equal(t, prometheus.ReasonPartialResponse, got.Reason)
	assert.Contains(t, got.Message, "No StoreAPIs matched for this query")

	server.Warnings()
	server.Infos("PromQL info: metric might not be a counter")
	assert.Equal(t, scaling.Sample{Value: 40, Validity: scaling.Valid}, ask(t, client))
}

func TestFC6_IsPartialForbidsScaleDown(t *testing.T) {
	server := newServer(t)
	server.Raw(`{"status":"success","isPartial":true,"data":{"resultType":"scalar","result":[1795953600,"7"]}}`,
		http.StatusOK, "application/json")
	got := ask(t, newClient(t, server.URL()))
	assert.Equal(t, scaling.ScaleUpOnly, got.Validity)
	assert.Equal(t, prometheus.ReasonPartialResponse, got.Reason)
	assert.Contains(t, got.Message, "incomplete")
}

func TestServerTextsCannotLeakOrFlood(t *testing.T) {
	server := newServer(t)
	server.Error(400, "bad_data", "see http://user:secret@10.0.0.1/x\nAuthorization: Bearer abc.def\x1b[31m "+strings.Repeat("é", 10_000))
	got := ask(t, newClient(t, server.URL()))
	assertInvalid(t, got, prometheus.ReasonQueryRejected, "see [address] Authorization: [credential]")
	assert.NotContains(t, got.Message, "secret")
	assert.NotContains(t, got.Message, "\x1b")
}
