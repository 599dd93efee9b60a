package prometheus

import (
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// knownReasons are all reasons that an answer, whatever it is, can lead to.
var knownReasons = []string{
	ReasonNoData, ReasonMultipleSeries, ReasonInvalidValue, ReasonHistogramSample, ReasonStaleSample,
	ReasonFutureSample, ReasonUnexpectedResultType, ReasonTimeout, ReasonUnauthorized, ReasonQueryRejected,
	ReasonRateLimited, ReasonServerError, ReasonUnexpectedStatus, ReasonRedirected, ReasonBadResponse,
	ReasonResponseTooLarge, ReasonDuplicateSeries, ReasonTooManySeries,
}

// FuzzAnswer feeds arbitrary bodies through the whole client.
func FuzzAnswer(f *testing.F) {
	const at = "1795953600"
	for _, body := range []string{
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[` + at + `,"900"]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[` + at + `.5,"NaN"]}]},"warnings":["w"]}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[` + at + `,{"count":"1","sum":"2"}]}]}}`,
		`{"status":"success","isPartial":true,"data":{"resultType":"scalar","result":[` + at + `,"1"]},"infos":["i"]}`,
		`{"status":"success","data":{"resultType":"matrix","result":[]}}`,
		`{"status":"error","errorType":"bad_data","error":"parse error"}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"value":[1]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[` +
			`{"metric":{"ns":"shop","app":"web"},"value":[` + at + `,"1"]},{"metric":{"ns":"shop","app":"web"},"value":[` + at + `,"2"]}]}}`,
		`<html>`, ``, `null`, `{"data":null}`,
	} {
		f.Add([]byte(body), 200)
	}
	// FC-11 to FC-14: numbers that are too large, too small, or written oddly.
	for _, value := range []string{
		"214748365", "1e18", "1e309", "-1e309", "1e400", "0e9999", "1e-400", "1e-2147483648", "2E6024865272343", "1e1.5",
		".07893E985.90504", "100m", "1e3", "0.0000001", "-1", "-0", "9999999999999999999", "1k", "1Ki", "Ki", "1E", "+1", "01",
		" 1", "", "NaN", "nan", "Inf", "-Infinity", "0x1p4", "1_000",
	} {
		f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[`+at+`,"`+value+`"]}}`), 200)
		f.Add([]byte(`{"status":"success","data":{"resultType":"scalar","result":[`+value+`,"1"]}}`), 200)
	}
	f.Add([]byte(`{"status":"error","errorType":"execution","error":"x"}`), 422)
	f.Add([]byte(``), 503)

	type response struct {
		body   []byte
		status int
	}
	var current atomic.Pointer[response]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := current.Load()
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	}))
	f.Cleanup(server.Close)
	client, err := NewClient([]Endpoint{{Name: "main", URL: server.URL}}, func() time.Time { return time.Unix(1795953600, 0) })
	require.NoError(f, err)

	f.Fuzz(func(t *testing.T, body []byte, status int) {
		if status < 200 || status > 599 {
			t.Skip("not a final HTTP status")
		}
		current.Store(&response{body, status})
		q := Question{Endpoint: "main", Expr: "up", Timeout: time.Minute}
		single := client.Measure(t.Context(), Measure{Load: q, MaxAge: time.Minute})
		checkSample(t, single, status, server.URL)
		q.Series = SeriesLabels{Namespace: "ns", Target: "app"}
		checkSample(t, client.Measure(t.Context(), Measure{Load: q, Namespace: "shop", Target: "web", MaxAge: time.Minute}), status, server.URL)
	})
}

// checkSample checks what is true of every sample.
func checkSample(t *testing.T, got scaling.Sample, status int, url string) {
	t.Helper()
	switch got.Validity {
	case scaling.Valid:
		assert.Equal(t, 2, status/100)
		assert.Empty(t, got.Reason)
		assert.Empty(t, got.Message)
	case scaling.ScaleUpOnly:
		assert.Equal(t, ReasonPartialResponse, got.Reason)
	case scaling.Invalid:
		assert.Zero(t, got.Value)
		assert.True(t, slices.Contains(knownReasons, got.Reason), "reason %q", got.Reason)
	}
	assert.False(t, math.IsNaN(got.Value) || math.IsInf(got.Value, 0) || math.Signbit(got.Value))
	assert.NotContains(t, got.Message, strings.TrimPrefix(url, "http://"))
	assert.False(t, strings.ContainsAny(got.Message, "\r\n"))
	assert.Less(t, len(got.Message), 512)
}
