// Package load plays the load of a service: an HTTP server with the metrics that
// the service would export, whose request rate is turned by whoever holds it.
package load

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MaxRate is the highest rate that a Source accepts, in requests per second. It
// keeps the counter, a float64 to Prometheus, exact for years.
const MaxRate = 1_000_000

// Source exports http_requests_total of one Deployment. It is safe for
// concurrent use.
type Source struct {
	now    func() time.Time
	desc   *prometheus.Desc
	labels []string

	mu   sync.Mutex
	line Line
}

// NewSource is the load of a Deployment, at 0 requests per second.
func NewSource(namespace, deployment string, now func() time.Time) *Source {
	return &Source{
		now: now,
		desc: prometheus.NewDesc("http_requests_total", "Requests that the service answered.",
			[]string{"namespace", "deployment"}, nil),
		labels: []string{namespace, deployment},
		line:   StartLine(now().Unix()),
	}
}

// Turn sets the rate, 0 to MaxRate requests per second, from the running second on.
func (s *Source) Turn(perSecond int) error {
	if perSecond < 0 || perSecond > MaxRate {
		return fmt.Errorf("a rate of %d requests per second: it must be from 0 to %d", perSecond, MaxRate)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = s.line.Bend(s.now().Unix(), uint64(perSecond))
	return nil
}

// Rate is the current rate in requests per second.
func (s *Source) Rate() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.line.Slope()) //nolint:gosec // at most MaxRate
}

// Describe implements prometheus.Collector.
func (s *Source) Describe(descs chan<- *prometheus.Desc) { descs <- s.desc }

// Collect implements prometheus.Collector. The sample carries the whole second
// that its value belongs to.
func (s *Source) Collect(metrics chan<- prometheus.Metric) {
	s.mu.Lock()
	second, value := s.line.At(s.now().Unix())
	s.mu.Unlock()
	counter := prometheus.MustNewConstMetric(s.desc, prometheus.CounterValue, float64(value), s.labels...)
	metrics <- prometheus.NewMetricWithTimestamp(time.Unix(second, 0), counter)
}

// Handler serves /metrics, and POST /rate?perSecond=N to turn the rate by hand.
func (s *Source) Handler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(s); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("POST /rate", s.turnByHand)
	return mux, nil
}

func (s *Source) turnByHand(w http.ResponseWriter, r *http.Request) {
	given := r.URL.Query().Get("perSecond")
	rate, err := strconv.Atoi(given)
	if err != nil {
		http.Error(w, fmt.Sprintf("perSecond=%q: want a whole number from 0 to %d", given, MaxRate), http.StatusBadRequest)
		return
	}
	if err := s.Turn(rate); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%d requests per second\n", s.Rate())
}
