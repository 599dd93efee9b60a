package prometheus_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

// vector answers with series that are written as given; $t is the time.
func vector(a *fixture.Answer, series ...string) {
	a.Raw(vectorBody(series...), http.StatusOK, "application/json")
}

func vectorBody(series ...string) string {
	result := strings.ReplaceAll(strings.Join(series, ","), "$t", fmt.Sprint(noon.Unix()))
	return `{"status":"success","data":{"resultType":"vector","result":[` + result + `]}}`
}

func backlog() prometheus.Measure {
	return prometheus.Measure{Load: question("depth"), Arrivals: question("arrivals"), MaxAge: 45 * time.Second}
}

func TestBacklogNeedsBothAnswersAndTheWorseCounts(t *testing.T) {
	type server = fixture.MetricServer
	cases := map[string]struct {
		set  func(*server)
		want scaling.Sample
		says string
	}{
		"both are valid": {
			func(*server) {},
			scaling.Sample{Value: 600, ArrivalRate: 20, Validity: scaling.Valid}, "",
		},
		"the depth fails": {
			func(s *server) { s.On("depth").Status(500) },
			scaling.Sample{Reason: prometheus.ReasonServerError}, `endpoint "main": the server failed`,
		},
		"the rate fails": {
			func(s *server) { s.On("arrivals").Text("NaN") },
			scaling.Sample{Reason: prometheus.ReasonInvalidValue}, `arrival rate: endpoint "main": the query returned NaN`,
		},
		"both fail": {
			func(s *server) { s.On("depth").Empty(); s.On("arrivals").Text("NaN") },
			scaling.Sample{Reason: prometheus.ReasonNoData}, `endpoint "main": the query matched no series`,
		},
		"the rate is partial": {
			func(s *server) {
				s.On("arrivals").Raw(`{"status":"success","warnings":["store down"],"data":{"resultType":"scalar","result":[1795953600,"20"]}}`, 200, "application/json")
			},
			scaling.Sample{Value: 600, ArrivalRate: 20, Validity: scaling.ScaleUpOnly, Reason: prometheus.ReasonPartialResponse},
			"arrival rate: endpoint \"main\": the answer may be incomplete",
		},
		"the depth is partial": {
			func(s *server) {
				s.On("depth").Raw(`{"status":"success","isPartial":true,"data":{"resultType":"scalar","result":[1795953600,"600"]}}`, 200, "application/json")
			},
			scaling.Sample{Value: 600, ArrivalRate: 20, Validity: scaling.ScaleUpOnly, Reason: prometheus.ReasonPartialResponse},
			`endpoint "main": the answer may be incomplete`,
		},
		"the depth is partial and the rate fails": {
			func(s *server) {
				s.On("depth").Raw(`{"status":"success","isPartial":true,"data":{"resultType":"scalar","result":[1795953600,"600"]}}`, 200, "application/json")
				s.On("arrivals").Status(503)
			},
			scaling.Sample{Reason: prometheus.ReasonServerError}, "arrival rate: ",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.On("depth").Value(600)
			server.On("arrivals").Value(20)
			c.set(server)
			got := newClient(t, server.URL()).Measure(t.Context(), backlog())
			assert.Contains(t, got.Message, c.says)
			got.Message = ""
			assert.Equal(t, c.want, got)
		})
	}
}

func TestSourceThatIsNotFreshMakesTheSampleInvalid(t *testing.T) {
	cases := map[string]struct {
		age, share     string // answers; empty is no series
		maxAge         time.Duration
		minShare       float64
		reason, saying string
	}{
		"young":                {age: "29", maxAge: 30 * time.Second},
		"of the greatest age":  {age: "30", maxAge: 30 * time.Second},
		"too old":              {age: "30.001", maxAge: 30 * time.Second, reason: prometheus.ReasonStaleSource, saying: "older than the 30s that the profile allows: more than 30s"},
		"much too old":         {age: "301", maxAge: 30 * time.Second, reason: prometheus.ReasonStaleSource, saying: "allows: more than 4m0s"},
		"a little older yet":   {age: "331", maxAge: 30 * time.Second, reason: prometheus.ReasonStaleSource, saying: "allows: more than 4m0s"},
		"older than all times": {age: "1e300", maxAge: 30 * time.Second, reason: prometheus.ReasonStaleSource, saying: "allows: more than "},
		"of an unknown age":    {maxAge: 30 * time.Second, reason: prometheus.ReasonFreshnessUnknown, saying: "freshness: "},
		"of an age of NaN":     {age: "NaN", maxAge: 30 * time.Second, reason: prometheus.ReasonFreshnessUnknown, saying: "NaN"},
		"all healthy":          {age: "1", minShare: 0.8},
		"just healthy enough":  {age: "0.8", minShare: 0.8},
		"too few healthy":      {age: "0.79", minShare: 0.8, reason: prometheus.ReasonStaleSource, saying: "below the 0.8 that the profile asks for: it is 0.7, cut"},
		"none healthy":         {age: "0", minShare: 0.8, reason: prometheus.ReasonStaleSource, saying: "it is 0.0, cut"},
		"of an unknown health": {minShare: 0.8, reason: prometheus.ReasonFreshnessUnknown, saying: "NoData"},
		"any share is enough":  {age: "0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.On("load").Value(100)
			if c.age == "" {
				server.On("source").Empty()
			} else {
				server.On("source").Text(c.age)
			}
			m := prometheus.Measure{Load: question("load"), MaxAge: 45 * time.Second}
			m.Freshness = prometheus.Freshness{Question: question("source"), MaxAge: c.maxAge, MinHealthyShare: c.minShare}
			m.Freshness.OnEmptyZero = true // means nothing here
			got := newClient(t, server.URL()).Measure(t.Context(), m)
			if c.reason == "" {
				assert.Equal(t, scaling.Sample{Value: 100, Validity: scaling.Valid}, got)
				return
			}
			assertInvalid(t, got, c.reason, c.saying)
		})
	}
}

func TestFC9_StaleSourceBehindAFreshTimestampIsFound(t *testing.T) {
	// A restarted or cold server repeats the last value for minutes, with the time
	// of the evaluation; only time() - timestamp(metric) tells.
	server := newServer(t)
	server.On("load").Value(100)
	server.On("timestamp").Value(280)
	m := prometheus.Measure{Load: question("load"), MaxAge: 45 * time.Second}
	client := newClient(t, server.URL())
	assert.Equal(t, scaling.Valid, client.Measure(t.Context(), m).Validity)
	m.Freshness = prometheus.Freshness{Question: question("max(time() - timestamp(metric))"), MaxAge: time.Minute}
	assertInvalid(t, client.Measure(t.Context(), m), prometheus.ReasonStaleSource, "1m0s")
}

func TestPartialFreshnessForbidsScaleDown(t *testing.T) {
	server := newServer(t)
	server.On("load").Value(100)
	server.On("source").Raw(`{"status":"success","warnings":["w"],"data":{"resultType":"scalar","result":[1795953600,"1"]}}`, 200, "application/json")
	m := prometheus.Measure{Load: question("load"), MaxAge: 45 * time.Second}
	m.Freshness = prometheus.Freshness{Question: question("source"), MaxAge: time.Minute}
	got := newClient(t, server.URL()).Measure(t.Context(), m)
	assert.Equal(t, scaling.ScaleUpOnly, got.Validity)
	assert.InDelta(t, 100, got.Value, 0)
	assert.Contains(t, got.Message, "freshness: ")
}

func TestSampleOfATargetIsPickedByItsLabels(t *testing.T) {
	const (
		web   = `{"metric":{"ns":"shop","app":"web","pod":"a"},"value":[$t,"12"]}`
		again = `{"metric":{"ns":"shop","app":"web","pod":"b"},"value":[$t,"3"]}`
		other = `{"metric":{"ns":"other","app":"web"},"value":[$t,"99"]}`
		bare  = `{"metric":{"app":"web"},"value":[$t,"98"]}`
		none  = `{"metric":{"ns":"shop"},"value":[$t,"97"]}`
	)
	zero := func(q *prometheus.Question) { q.OnEmptyZero = true }
	cases := map[string]struct {
		series       []string
		change       func(*prometheus.Question)
		want         float64
		reason, says string
	}{
		"one of several":               {series: []string{other, web, bare, none}, want: 12},
		"two for it":                   {series: []string{web, other, again}, reason: prometheus.ReasonDuplicateSeries, says: "sum by (ns, app)"},
		"three for it":                 {series: []string{web, again, again}, reason: prometheus.ReasonDuplicateSeries, says: "several series"},
		"two for another":              {series: []string{web, other, other}, want: 12},
		"none for it":                  {series: []string{other, bare, none}, reason: prometheus.ReasonNoData, says: "labels ns and app"},
		"none at all":                  {reason: prometheus.ReasonNoData, says: "labels ns and app"},
		"none for it, that being 0":    {series: []string{other}, change: zero, want: 0},
		"one where none would be zero": {series: []string{web}, change: zero, want: 12},
		"a histogram for it":           {series: []string{`{"metric":{"ns":"shop","app":"web"},"histogram":[$t,{"count":"1","sum":"2"}]}`}, reason: prometheus.ReasonHistogramSample, says: "histogram"},
		"a histogram for another":      {series: []string{`{"metric":{"ns":"other","app":"web"},"histogram":[$t,{"count":"1","sum":"2"}]}`, web}, want: 12},
		"NaN for it":                   {series: []string{`{"metric":{"ns":"shop","app":"web"},"value":[$t,"NaN"]}`}, reason: prometheus.ReasonInvalidValue, says: "NaN"},
		"NaN for another":              {series: []string{`{"metric":{"ns":"other","app":"web"},"value":[$t,"NaN"]}`, web}, want: 12},
		"a broken one for another":     {series: []string{web, `{"metric":{"ns":"other","app":"web"},"value":[$t]}`}, reason: prometheus.ReasonBadResponse, says: "time and a value"},
		"as many as allowed":           {series: []string{web, other}, change: func(q *prometheus.Question) { q.MaxSeries = 2 }, want: 12},
		"more than allowed":            {series: []string{web, other, none}, change: func(q *prometheus.Question) { q.MaxSeries = 2 }, reason: prometheus.ReasonTooManySeries, says: "2 series"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			vector(server.Answer, c.series...)
			m := prometheus.Measure{Load: question("q"), Namespace: "shop", Target: "web", MaxAge: 45 * time.Second}
			m.Load.Series = prometheus.SeriesLabels{Namespace: "ns", Target: "app"}
			if c.change != nil {
				c.change(&m.Load)
			}
			got := newClient(t, server.URL()).Measure(t.Context(), m)
			if c.reason == "" {
				assert.Equal(t, scaling.Sample{Value: c.want, Validity: scaling.Valid}, got)
				return
			}
			assertInvalid(t, got, c.reason, c.says)
		})
	}
}

func TestScalarIsForNoTarget(t *testing.T) {
	server := newServer(t)
	server.Scalar("5")
	m := prometheus.Measure{Load: question("q"), Namespace: "shop", Target: "web"}
	m.Load.Series = prometheus.SeriesLabels{Namespace: "ns", Target: "app"}
	assertInvalid(t, newClient(t, server.URL()).Measure(t.Context(), m), prometheus.ReasonUnexpectedResultType, "a series for each Deployment")
}

func TestFC3_EmptyVectorIsZeroOnlyWhereTheProfileSaysSo(t *testing.T) {
	server := newServer(t)
	server.Empty()
	client := newClient(t, server.URL())
	m := prometheus.Measure{Load: question("q"), MaxAge: 45 * time.Second}
	assertInvalid(t, client.Measure(t.Context(), m), prometheus.ReasonNoData, "onEmpty")
	m.Load.OnEmptyZero = true
	assert.Equal(t, scaling.Sample{Validity: scaling.Valid}, client.Measure(t.Context(), m))

	// Nothing from a server that misses something is no reason to scale down.
	server.Warnings("store down")
	assert.Equal(t, scaling.ScaleUpOnly, client.Measure(t.Context(), m).Validity)
	server.Status(500)
	assertInvalid(t, client.Measure(t.Context(), m), prometheus.ReasonServerError, "500")
}

func TestProfileMayAllowLargerAnswersButNotBeyondTheEndpoint(t *testing.T) {
	body := vectorBody(`{"metric":{"pad":"` + strings.Repeat("x", 2<<20) + `"},"value":[$t,"7"]}`)
	size := int64(len(body))
	cases := map[string]struct {
		profile, endpoint int64
		fits              bool
	}{
		"neither sets a limit":          {0, 0, false},
		"the profile allows it":         {size, 0, true},
		"the profile does not allow it": {size - 1, 0, false},
		"the endpoint allows it":        {0, size, true},
		"both allow it":                 {size, size, true},
		"the endpoint forbids it":       {size, size - 1, false},
		"the profile is stricter":       {size - 1, size, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.Raw(body, http.StatusOK, "application/json")
			m := prometheus.Measure{Load: question("q")}
			m.Load.MaxResponseBytes = c.profile
			got := newClient(t, server.URL(), func(e *prometheus.Endpoint) { e.MaxResponseBytes = c.endpoint }).Measure(t.Context(), m)
			if c.fits {
				assert.Equal(t, scaling.Sample{Value: 7, Validity: scaling.Valid}, got)
				return
			}
			assertInvalid(t, got, prometheus.ReasonResponseTooLarge, "bytes")
		})
	}
}
