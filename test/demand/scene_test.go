//go:build integration

package demand

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// scene is a namespace that no other test has, the program that is scraped there, and
// a client of the Prometheus that does it. The scrape job bears the namespace's name.
type scene struct {
	*source
	namespace string
	client    *prometheus.Client
}

var scenes atomic.Int64

// newScene begins one on the shared server. The program fails until it exports.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := prepareScene(t, shared)
	shared.scrape(t, s.job())
	return s
}

func prepareScene(t *testing.T, server *prometheusServer) *scene {
	t.Helper()
	namespace := fmt.Sprintf("namespace-%d", scenes.Add(1))
	return &scene{source: newSource(t, namespace), namespace: namespace, client: newClient(t, server.url())}
}

func (s *scene) job() job {
	return job{Name: s.namespace, Targets: []targets{{[]string{s.address()}}}}
}

func newClient(t *testing.T, url string) *prometheus.Client {
	t.Helper()
	client, err := prometheus.NewClient([]prometheus.Endpoint{{Name: "main", URL: url}}, time.Now)
	require.NoError(t, err)
	return client
}

// question renders a template for the scene's namespace and the Deployment "web".
func (s *scene) question(t *testing.T, template string) prometheus.Question {
	t.Helper()
	expr, err := prometheus.Render(template, prometheus.Vars{Namespace: s.namespace, Target: "web"})
	require.NoError(t, err)
	return prometheus.Question{Profile: "demand", Endpoint: "main", Expr: expr, Timeout: patience}
}

// measure asks without a freshness query. Its bound of age is the common one, that of
// the sample's own time.
func (s *scene) measure(t *testing.T, template string) prometheus.Measure {
	t.Helper()
	return prometheus.Measure{Load: s.question(t, template), Namespace: s.namespace, Target: "web", MaxAge: maxAge}
}

// maxAge bounds the age of samples and, in freshness queries, of what they rest on.
const maxAge = 4 * time.Second

// healthy adds to a measure that nine of ten of the job's targets must be up.
func (s *scene) healthy(t *testing.T, m prometheus.Measure) prometheus.Measure {
	t.Helper()
	m.Freshness = prometheus.Freshness{Question: s.question(t, `avg(up{job=$namespace})`), MinHealthyShare: 0.9}
	return m
}

// aged adds to a measure a freshness query that gives seconds.
func (s *scene) aged(t *testing.T, m prometheus.Measure, template string) prometheus.Measure {
	t.Helper()
	m.Freshness = prometheus.Freshness{Question: s.question(t, template), MaxAge: maxAge}
	return m
}

func (s *scene) ask(t *testing.T, m prometheus.Measure) scaling.Sample {
	t.Helper()
	return s.client.Measure(t.Context(), m)
}

// until asks again and again until the sample is as wanted. All samples on the way
// there, that one included, are shown to the checks.
func (s *scene) until(t *testing.T, m prometheus.Measure, wanted func(scaling.Sample) bool, checks ...func(scaling.Sample)) {
	t.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(pollEvery)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		sample := s.ask(t, m)
		for _, check := range checks {
			check(sample)
		}
		if wanted(sample) {
			return
		}
		select {
		case <-deadline.C:
			require.FailNow(t, "the wanted sample never came", "%s\nthe last one: %+v", m.Load.Expr, sample)
		case <-tick.C:
		}
	}
}

// valued wants a valid sample of a value.
func valued(value float64) func(scaling.Sample) bool {
	return func(s scaling.Sample) bool { return s.Validity == scaling.Valid && s.Value == value }
}

// above wants a valid sample above a value.
func above(value float64) func(scaling.Sample) bool {
	return func(s scaling.Sample) bool { return s.Validity == scaling.Valid && s.Value > value }
}

// invalid wants a sample that is invalid for a reason.
func invalid(reason string) func(scaling.Sample) bool {
	return func(s scaling.Sample) bool { return s.Validity == scaling.Invalid && s.Reason == reason }
}

// source is a program that Prometheus scrapes. In its pages, $namespace stands for the
// quoted namespace.
type source struct {
	server    *httptest.Server
	namespace string

	mu sync.Mutex
	// next gives the page of a scrape; false fails it.
	next func() (string, bool)
}

func newSource(t *testing.T, namespace string) *source {
	t.Helper()
	s := &source{namespace: namespace}
	s.fails()
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *source) address() string { return strings.TrimPrefix(s.server.URL, "http://") }

// ServeHTTP answers one scrape.
func (s *source) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page, ok := s.next()
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = io.WriteString(w, strings.ReplaceAll(page, "$namespace", strconv.Quote(s.namespace))+"\n") // the scraper may have gone
}

func (s *source) answer(next func() (string, bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

// exports gives all scrapes one page.
func (s *source) exports(page string) { s.answer(func() (string, bool) { return page, true }) }

// exportsNow gives each scrape a page of its time.
func (s *source) exportsNow(page func(now time.Time) string) {
	s.answer(func() (string, bool) { return page(time.Now()), true })
}

// exportsEach gives each page to one scrape; those after them fail.
func (s *source) exportsEach(pages ...string) {
	left := slices.Clone(pages)
	s.answer(func() (string, bool) {
		if len(left) == 0 {
			return "", false
		}
		page := left[0]
		left = left[1:]
		return page, true
	})
}

// fails makes all scrapes fail.
func (s *source) fails() { s.answer(func() (string, bool) { return "", false }) }
