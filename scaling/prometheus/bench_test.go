package prometheus

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// constant answers every query with the same body, without a network.
type constant struct {
	body  string
	asked atomic.Int64
}

func (c *constant) RoundTrip(req *http.Request) (*http.Response, error) {
	c.asked.Add(1)
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, ContentLength: int64(len(c.body)),
		Body: io.NopCloser(strings.NewReader(c.body)),
	}, nil
}

// BenchmarkSampler10000 has 10,000 AutoScalers at 15 s. One operation is one
// interval: all that is due is asked, every subscriber is woken, and reads its
// samples. The network and Prometheus are not in it.
func BenchmarkSampler10000(b *testing.B) {
	const at = 1795953600
	b.Run("100 queries", func(b *testing.B) {
		body := fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,"7"]}]}}`, at)
		benchmarkSampler(b, body, 100, func(i int) Measure {
			return Measure{Load: Question{Profile: "requests", Endpoint: "main", Expr: fmt.Sprint("sum(rate(requests_total[1m])) * ", i%100)}}
		})
	})
	b.Run("1 query for all", func(b *testing.B) {
		all := make([]string, 10_000)
		for i := range all {
			all[i] = fmt.Sprintf(`{"metric":{"namespace":"team-%d","deployment":"service-%d"},"value":[%d,"%d"]}`, i%100, i, at, i)
		}
		body := `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(all, ",") + `]}}`
		benchmarkSampler(b, body, 1, func(i int) Measure {
			return Measure{
				Namespace: fmt.Sprint("team-", i%100), Target: fmt.Sprint("service-", i),
				Load: Question{
					Profile: "requests", Endpoint: "main", Expr: "sum by (namespace, deployment) (rate(requests_total[1m]))",
					Series: SeriesLabels{Namespace: "namespace", Target: "deployment"}, MaxResponseBytes: 4 << 20,
				},
			}
		})
	})
}

func benchmarkSampler(b *testing.B, body string, questions int, measure func(i int) Measure) {
	b.Helper()
	const subscribers = 10_000
	clock := &stepClock{now: time.Unix(1795953600, 0)}
	client, err := NewClient([]Endpoint{{Name: "main", URL: "http://main"}}, clock.Now)
	require.NoError(b, err)
	server := &constant{body: body}
	client.endpoints["main"].http.Transport = server
	var woken, valid atomic.Int64
	all := make(chan struct{}, 1)
	var s *Sampler
	s = NewSampler(client, SamplerOptions{
		Clock: clock, Jitter: func() float64 { return 0 },
		Wake: func(id Subscriber, _ bool) {
			if _, _, ready := s.Samples(id, clock.Now()); ready {
				valid.Add(1)
			}
			if woken.Add(1)%subscribers == 0 {
				all <- struct{}{}
			}
		},
	})
	heap := heapInUse()
	for i := range subscribers {
		s.Subscribe(Subscriber(fmt.Sprint("team-", i%100, "/service-", i)), 15*time.Second, []Measure{measure(i)})
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-all // the first answers
	perSubscriber := float64(heapInUse()-heap) / subscribers

	before, used := server.asked.Load(), cpu(b)
	b.ResetTimer()
	for b.Loop() {
		clock.step(15 * time.Second)
		s.lanes["main"].wake()
		<-all
	}
	used = cpu(b) - used
	n := float64(b.N)
	require.Equal(b, int64(questions*b.N), server.asked.Load()-before, "queries per interval")
	require.Equal(b, woken.Load(), valid.Load())
	b.ReportMetric(float64(server.asked.Load()-before)/(15*n), "queries/s")
	b.ReportMetric(used.Seconds()*1000/n, "cpu-ms/interval")
	b.ReportMetric(perSubscriber, "B/subscription")
	stop()
	require.NoError(b, <-done)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is smaller
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
