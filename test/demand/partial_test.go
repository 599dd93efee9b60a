//go:build integration

package demand

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// federation stands before the shared Prometheus, as a query layer over several would:
// it passes queries on, counts them, and adds to the answers.
type federation struct {
	server *httptest.Server

	mu sync.Mutex
	// added are fields of answers, such as "warnings".
	added map[string]any
	// asked is how many queries came.
	asked int
	// last is the last answer as it was sent.
	last struct{ Warnings, Infos []string }
}

func newFederation(t *testing.T) *federation {
	t.Helper()
	to, err := url.Parse(shared.url())
	require.NoError(t, err)
	f := &federation{}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = f.annotate
	f.server = httptest.NewServer(proxy)
	t.Cleanup(f.server.Close)
	return f
}

func (f *federation) annotate(response *http.Response) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	answer := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	for field, value := range f.added {
		answer[field] = value
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	f.last.Warnings, f.last.Infos = nil, nil
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return json.Unmarshal(body, &f.last)
}

func (f *federation) adds(field string, value any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added = map[string]any{field: value}
}

func (f *federation) queries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *federation) notes() (warnings, infos []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last.Warnings, f.last.Infos
}

// behindFederation is a scene with an answer of 40 that is asked for through a query
// layer.
func behindFederation(t *testing.T) (*scene, *federation, prometheus.Measure) {
	t.Helper()
	s, f := newScene(t), newFederation(t)
	s.client = newClient(t, f.server.URL)
	load := s.measure(t, `sum(orders{namespace=$namespace})`)
	s.exports(`orders{namespace=$namespace} 40`)
	s.until(t, load, valued(40))
	return s, f, load
}

func assertPartial(t *testing.T, sample scaling.Sample) {
	t.Helper()
	assert.Equal(t, scaling.ScaleUpOnly, sample.Validity)
	assert.Equal(t, prometheus.ReasonPartialResponse, sample.Reason)
	assert.Equal(t, 40.0, sample.Value)
}

func TestFC6_AnswerThatIsMarkedAsPartialScalesUpOnly(t *testing.T) {
	t.Parallel()
	s, f, load := behindFederation(t)

	f.adds("warnings", []string{"No StoreAPIs matched for this query"})
	sample := s.ask(t, load)
	assertPartial(t, sample)
	assert.Contains(t, sample.Message, "No StoreAPIs matched for this query")

	f.adds("isPartial", true)
	assertPartial(t, s.ask(t, load))

	f.adds("infos", []string{"PromQL info: metric might not be a counter"})
	assert.True(t, valued(40)(s.ask(t, load)), "infos are about the query, not the data")
}

func TestFC6_PrometheusOwnInfosAreNoWarnings(t *testing.T) {
	t.Parallel()
	s, f, _ := behindFederation(t)
	load := s.measure(t, `sum(orders{namespace=$namespace}) + 0 * sum(increase(orders{namespace=$namespace}[1m]))`)

	s.until(t, load, valued(40))

	warnings, infos := f.notes()
	assert.Empty(t, warnings)
	require.NotEmpty(t, infos)
	assert.Contains(t, infos[0], "might not be a counter")
}

func TestFC6_PrometheusOwnWarningsForbidScaleDown(t *testing.T) {
	t.Parallel()
	s, f, _ := behindFederation(t)

	// The quantile of 2 is +Inf, and a warning.
	assertPartial(t, s.ask(t, s.measure(t,
		`sum(orders{namespace=$namespace}) + 0 * clamp_max(quantile(2, orders{namespace=$namespace}), 1)`)))

	warnings, _ := f.notes()
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "quantile value should be between 0 and 1")
}

// This is what a real Prometheus says when a part of its data lies elsewhere and cannot
// be read: 200, the local part, and a warning.
func TestFC6_AnswerWithoutTheUnreadableRemotePartScalesUpOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.exports(`orders{namespace=$namespace,remote="dead"} 40`)
	s.until(t, s.measure(t, `sum(orders{namespace=$namespace})`), valued(40))

	sample := s.ask(t, s.measure(t, `sum(orders{namespace=$namespace,remote="dead"})`))

	assertPartial(t, sample)
	assert.Contains(t, sample.Message, "remote")
	assert.NotContains(t, sample.Message, "127.0.0.1", "addresses are not for tenants")
}
