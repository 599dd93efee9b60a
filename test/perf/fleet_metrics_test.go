//go:build perf

package perf

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// fleetLagMetric is the operator's histogram of the time from a sample's arrival to
// the decision that it woke.
const fleetLagMetric = "autoscale_decision_lag_seconds"

// fleetScrape is what the operator tells of itself at one time.
type fleetScrape struct {
	lag      fleetHistogram
	resident float64 // bytes
	// took and bytes are what the answer cost: it has series for every AutoScaler.
	took  time.Duration
	bytes float64
}

// scrape asks the operator for its metrics.
func (f *fleet) scrape() fleetScrape {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "http://"+f.address+"/metrics", http.NoBody)
	require.NoError(f, err)
	begun := time.Now()
	response, err := http.DefaultClient.Do(request)
	require.NoError(f, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(f, err)
	took := time.Since(begun)
	require.Equal(f, http.StatusOK, response.StatusCode, "%s", body)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(f, err)
	memory := families["process_resident_memory_bytes"].GetMetric()
	require.Len(f, memory, 1)
	return fleetScrape{
		lag: fleetHistogramOf(families[fleetLagMetric]), resident: memory[0].GetGauge().GetValue(),
		took: took, bytes: float64(len(body)),
	}
}

// cpu is the operator's processor time in seconds, as the kernel has it: what it
// tells itself would be asked for by a scrape, which costs some.
func (f *fleet) cpu() float64 {
	f.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", f.pid))
	require.NoError(f, err)
	// The name, in parentheses, may hold spaces; user and system time are the 12th and
	// 13th field after it, in hundredths of a second.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	require.Greater(f, len(fields), 12)
	ticks := 0.0
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		require.NoError(f, err)
		ticks += n
	}
	return ticks / 100
}

// fleetHistogram has the cumulative counts of a histogram by its upper bounds.
type fleetHistogram map[float64]float64

// fleetHistogramOf adds up the series of a family; without one yet there was nothing
// to count.
func fleetHistogramOf(family *dto.MetricFamily) fleetHistogram {
	h := fleetHistogram{math.Inf(1): 0}
	for _, m := range family.GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				h[b.GetUpperBound()] += float64(b.GetCumulativeCount())
			}
		}
		h[math.Inf(1)] += float64(m.GetHistogram().GetSampleCount())
	}
	return h
}

func (h fleetHistogram) minus(before fleetHistogram) fleetHistogram {
	difference := fleetHistogram{}
	for bound, n := range h {
		difference[bound] = n - before[bound]
	}
	return difference
}

func (h fleetHistogram) count() float64 { return h[math.Inf(1)] }

// quantile is the value that a share q lies below, linear within its bucket, as
// PromQL's histogram_quantile has it; but what lies above all bounds is infinite, and
// so is the quantile of nothing.
func (h fleetHistogram) quantile(q float64) float64 {
	rank := q * h.count()
	low, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(h)) {
		n := h[bound]
		if n >= rank && n > below {
			if math.IsInf(bound, 1) {
				break
			}
			return low + (bound-low)*(rank-below)/(n-below)
		}
		low, below = bound, n
	}
	return math.Inf(1)
}
