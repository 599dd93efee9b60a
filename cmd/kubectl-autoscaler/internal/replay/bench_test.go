package replay

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime/metrics"
	"testing"
	"time"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// recording is the CSV of a daily wave, a value each 15 seconds, written as it is read. It
// notes how much memory is live meanwhile.
type recording struct {
	values, written int
	text            bytes.Buffer
	live            uint64
}

func (r *recording) Read(p []byte) (int, error) {
	for r.text.Len() < len(p) && r.written < r.values {
		at := time.Duration(r.written) * 15 * time.Second
		wave := 1000 + 800*math.Sin(2*math.Pi*at.Hours()/24)
		fmt.Fprintf(&r.text, "%d,%.1f\n", begin.Add(at).Unix(), wave)
		r.written++
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	r.live = max(r.live, live[0].Value.Uint64())
	if r.text.Len() == 0 {
		return 0, io.EOF
	}
	return r.text.Read(p)
}

// BenchmarkReplay shows that the time grows with the recording, and the memory does not.
func BenchmarkReplay(b *testing.B) {
	for _, format := range []string{"table", "html", "png"} {
		for _, days := range []int{1, 30, 365} {
			b.Run(fmt.Sprintf("%s/%d days", format, days), func(b *testing.B) {
				var live uint64
				values := days * 24 * 240
				for b.Loop() {
					load := recording{values: values}
					streams := cli.Streams{In: &load, Out: io.Discard, Err: io.Discard}
					c := Command(streams)
					c.SilenceUsage, c.SilenceErrors = true, true
					if code := cli.Execute(b.Context(), c, streams, []string{"-f", "testdata/order-service.yaml", "--load", "-", "--compare", "hpa", "-o", format}); code != cli.ExitOK {
						b.Fatalf("exit status %d", code)
					}
					live = max(live, load.live)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/value")
				b.ReportMetric(float64(live)/(1<<20), "live-MiB")
			})
		}
	}
}
