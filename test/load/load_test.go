package load_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/test/load"
)

func TestLineGrowsByItsSlopeFromTheSecondOfTheBend(t *testing.T) {
	line := load.StartLine(1000).Bend(1000, 900).Bend(1010, 10000).Bend(1012, 0)

	for _, tt := range []struct {
		name         string
		second       int64
		wantSecond   int64
		wantRequests uint64
	}{
		{"at the last bend the earlier lines add up", 1012, 1012, 10*900 + 2*10000},
		{"after a bend to 0 the value stays", 1100, 1100, 29000},
		{"before the last bend the line does not run backwards", 1005, 1012, 29000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			second, value := line.At(tt.second)
			assert.Equal(t, tt.wantSecond, second)
			assert.Equal(t, tt.wantRequests, value)
		})
	}
}

// What Prometheus' rate() divides is the increase between two scrapes by the
// seconds between them.
func TestLineHasExactlyItsSlopeBetweenAnyTwoSecondsAfterABend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 4e9).Draw(t, "start")
		line := load.StartLine(start)
		second := start
		for range rapid.IntRange(1, 8).Draw(t, "bends") {
			slope := rapid.Uint64Range(0, load.MaxRate).Draw(t, "slope")
			_, before := line.At(second)
			line = line.Bend(second, slope)
			_, after := line.At(second)
			require.Equal(t, before, after, "a bend must not move the value")

			first := second + rapid.Int64Range(0, 100).Draw(t, "first")
			last := first + rapid.Int64Range(1, 100).Draw(t, "last")
			_, low := line.At(first)
			_, high := line.At(last)
			require.Equal(t, slope*uint64(last-first), high-low) //nolint:gosec // last is after first
			second = last
		}
	})
}

func TestSourceExportsTheWholeSecondThatItsValueBelongsTo(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(2000, 100))
	source := load.NewSource("production", "order-service", clock.Now)
	require.NoError(t, source.Turn(900))
	clock.SetTime(time.Unix(2003, 999_000_000))

	assert.Contains(t, get(t, source, "/metrics").Body.String(), `
# TYPE http_requests_total counter
http_requests_total{deployment="order-service",namespace="production"} 2700 2003000
`)
}

func TestSourceRefusesARateThatWouldNotBeExact(t *testing.T) {
	source := load.NewSource("production", "order-service", time.Now)

	assert.ErrorContains(t, source.Turn(-1), "from 0 to 1000000")
	assert.ErrorContains(t, source.Turn(load.MaxRate+1), "from 0 to 1000000")
	assert.Zero(t, source.Rate())
}

func TestRateIsTurnedByHandOverHTTP(t *testing.T) {
	for _, tt := range []struct {
		name, request string
		wantStatus    int
		wantRate      int
		wantBody      string
	}{
		{"a whole number is taken", "/rate?perSecond=900", http.StatusOK, 900, "900 requests per second"},
		{"a fraction is refused with the accepted form", "/rate?perSecond=0.5", http.StatusBadRequest, 7, "whole number from 0 to 1000000"},
		{"a negative rate is refused", "/rate?perSecond=-2", http.StatusBadRequest, 7, "from 0 to 1000000"},
		{"a missing rate is refused", "/rate", http.StatusBadRequest, 7, `perSecond=""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := load.NewSource("production", "order-service", time.Now)
			require.NoError(t, source.Turn(7))
			handler, err := source.Handler()
			require.NoError(t, err)

			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, tt.request, nil))

			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			assert.Equal(t, tt.wantStatus, answer.Code)
			assert.Contains(t, string(body), tt.wantBody)
			assert.Equal(t, tt.wantRate, source.Rate())
		})
	}
}

func get(t *testing.T, source *load.Source, path string) *httptest.ResponseRecorder {
	t.Helper()
	handler, err := source.Handler()
	require.NoError(t, err)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer
}
