//go:build perf

package perf

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

const (
	// fleetPoll is the poll interval of every AutoScaler of the fleet.
	fleetPoll = 15 * time.Second
	// fleetLag bounds the time from a sample's arrival to the decision, at the 99th
	// percentile. It is a bucket of the histogram.
	fleetLag = 2.0
	// fleetHungRatio and fleetHungMargin are how far the others' lag may lie above the
	// steady one while an endpoint hangs: whichever lets more pass, as a lag of
	// milliseconds lies within one bucket or the next by chance.
	fleetHungRatio  = 1.5
	fleetHungMargin = 0.1
	// fleetQuiet is how many polls without a write make a fleet settled: what only
	// wavers is written at every fourth.
	fleetQuiet = 5
	// fleetOnboarding and fleetSettling bound the waits.
	fleetOnboarding = 20 * time.Minute
	fleetSettling   = 15 * time.Minute
)

// TestFleet measures what a fleet of AutoScalers costs on a real control plane, from
// its creation on, in one run: with a constant load, and then with a tenth of it
// moved to an endpoint that accepts queries and never answers.
func TestFleet(t *testing.T) {
	size, polls := fleetSetting(t, "FLEET", 10_000), fleetSetting(t, "FLEET_POLLS", 12)
	f := startFleet(t, size)
	without := f.scrape()
	onboarding := f.measure("onboarding", func() {
		f.create()
		created := time.Now()
		f.onboard()
		t.Logf("fleet: the last of %d was evaluated %.1f s after the last create", size, time.Since(created).Seconds())
	})
	settling := f.measure("settling", f.settle)
	steady := f.measure("steady", func() { f.wait(time.Duration(polls) * fleetPoll) })
	moving := f.measure("a tenth moves", func() {
		f.move("hangs")
		f.settle()
	})
	hung := f.measure("a tenth hangs", func() { f.wait(time.Duration(polls) * fleetPoll) })

	last := f.scrape()
	t.Logf("%d AutoScalers, polled every %s; %.0f MiB without them; a scrape of the operator's metrics is %.1f MiB and takes %.2f s\n%s",
		size, fleetPoll, mebibytes(without.resident), mebibytes(last.bytes), last.took.Seconds(), fleetTable(size, without, onboarding, settling, steady, moving, hung))
	f.assertHeld()
	f.assertQuiet(steady, float64(size*polls), f.distinct(false))
	f.assertQuiet(hung, float64(f.others()*polls), f.distinct(true))
	assert.LessOrEqual(t, steady.lag.quantile(0.99), fleetLag, "the lag of a steady fleet, in seconds")
	// Who hangs is in the same histogram. When 0.9 % of all are slower than this, then
	// at most 1 % of the others are.
	others := hung.lag.quantile(1 - 0.01*float64(f.others())/float64(size))
	assert.LessOrEqual(t, others, fleetLag, "the others' lag while an endpoint hangs, in seconds")
	assert.LessOrEqual(t, others, max(fleetHungRatio*steady.lag.quantile(0.99), steady.lag.quantile(0.99)+fleetHungMargin),
		"the others' lag moves while an endpoint hangs, in seconds")
}

// assertQuiet expects that a phase wrote nothing, decided as often as there were
// answers, and asked each query once per interval.
func (f *fleet) assertQuiet(p fleetPhase, decisions float64, distinct int) {
	f.Helper()
	assert.Empty(f, p.writes, "%s: writes of the operator, but for its lease", p.name)
	assert.GreaterOrEqual(f, p.lag.count(), 0.95*decisions, "%s: decisions; the lag is of those that were made", p.name)
	assert.InEpsilon(f, float64(distinct)/fleetPoll.Seconds(), p.queriesPerSecond(), 0.05, "%s: queries per second", p.name)
}

// assertHeld expects that an endpoint that hangs is said of those that ask it, of no
// other, and has moved no count.
func (f *fleet) assertHeld() {
	f.Helper()
	for _, n := range []int{0, fleetNamespaces - 1} {
		var list v1alpha1.AutoScalerList
		require.NoError(f, f.client.List(f.Context(), &list, client.InNamespace(fleetNamespace(n))))
		for i := range list.Items {
			a := &list.Items[i]
			available := meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionMetricsAvailable)
			assert.Equal(f, fleetProfile(n) != fleetMoved, available, "%s/%s: MetricsAvailable", a.Namespace, a.Name)
			assert.Equal(f, new(int32(fleetReplicas)), a.Status.TargetReplicas, "%s/%s: the count", a.Namespace, a.Name)
		}
	}
}

// fleetPhase is what happened between two readings.
type fleetPhase struct {
	name      string
	took      time.Duration
	lag       fleetHistogram
	cpu       float64 // seconds
	resident  float64 // bytes, in the end
	queries   int     // that the answering endpoint saw
	abandoned int     // that the hanging one saw
	reads     int
	writes    map[string]int
}

func (p *fleetPhase) queriesPerSecond() float64 { return float64(p.queries) / p.took.Seconds() }

// measure compares the operator's account of itself, and the API server's of it,
// before and after. What it costs to ask for those is not part of the phase.
func (f *fleet) measure(name string, during func()) fleetPhase {
	f.Helper()
	f.Logf("fleet: %s", name)
	reads, writes := f.requests()
	lag := f.scrape().lag
	cpu, queries, abandoned, begun := f.cpu(), f.answers.RequestCount(), f.hang.RequestCount(), time.Now()
	during()
	p := fleetPhase{
		name: name, took: time.Since(begun), cpu: f.cpu() - cpu,
		queries: f.answers.RequestCount() - queries, abandoned: f.hang.RequestCount() - abandoned,
		writes: map[string]int{},
	}
	after := f.scrape()
	p.lag, p.resident = after.lag.minus(lag), after.resident
	readsAfter, writesAfter := f.requests()
	p.reads = readsAfter - reads
	for what, n := range writesAfter {
		if n > writes[what] {
			p.writes[what] = n - writes[what]
		}
	}
	f.Logf("fleet: %s took %.0f s, with a lag of %.0f ms at p99; writes %v", name, p.took.Seconds(), 1000*p.lag.quantile(0.99), p.writes)
	return p
}

func fleetTable(size int, without fleetScrape, phases ...fleetPhase) string {
	var report strings.Builder
	table := tabwriter.NewWriter(&report, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "phase\ts\tdecisions\tlag p50 ms\tlag p99 ms\tover 2 s\tqueries/s\tabandoned\treads\twrites\tCPU s per s, per 1,000\tRSS MiB\tadded per 1,000")
	thousands := float64(size) / 1000
	for _, p := range phases {
		writes := 0
		for _, n := range p.writes {
			writes += n
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%.2f\t%d\t%d\t%d\t%.4f\t%.0f\t%.1f\n",
			p.name, p.took.Seconds(), p.lag.count(), 1000*p.lag.quantile(0.5), 1000*p.lag.quantile(0.99),
			p.lag.count()-p.lag[fleetLag], p.queriesPerSecond(), p.abandoned, p.reads, writes,
			p.cpu/p.took.Seconds()/thousands, mebibytes(p.resident), mebibytes(p.resident-without.resident)/thousands)
	}
	_ = table.Flush() // a strings.Builder never fails
	return report.String()
}

func mebibytes(bytes float64) float64 { return bytes / (1 << 20) }

// onboard waits until every AutoScaler was evaluated. One namespace after the other,
// as the last one counts: to list all of them again and again would be a load too.
func (f *fleet) onboard() {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), fleetOnboarding)
	defer cancel()
	for n := range fleetNamespaces {
		for !f.evaluated(ctx, fleetNamespace(n)) {
			select {
			case <-ctx.Done():
				f.Fatalf("not every AutoScaler of namespace %s was evaluated within %s", fleetNamespace(n), fleetOnboarding)
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
}

func (f *fleet) evaluated(ctx context.Context, namespace string) bool {
	f.Helper()
	var list v1alpha1.AutoScalerList
	require.NoError(f, f.client.List(ctx, &list, client.InNamespace(namespace)))
	for i := range list.Items {
		if list.Items[i].Status.LastDecision == nil {
			return false
		}
	}
	return true
}

// settle waits until nothing is written any more.
func (f *fleet) settle() {
	f.Helper()
	_, last := f.requests()
	quiet := 0
	for begun := time.Now(); quiet < fleetQuiet; {
		require.Less(f, time.Since(begun), fleetSettling, "the operator does not cease to write: %v", last)
		f.wait(fleetPoll)
		_, writes := f.requests()
		quiet++
		if !assert.ObjectsAreEqual(last, writes) {
			f.Logf("fleet: still writing: %v", writes)
			quiet = 0
		}
		last = writes
	}
}

func (f *fleet) wait(d time.Duration) {
	f.Helper()
	select {
	case <-f.Context().Done():
		f.Fatal(f.Context().Err())
	case <-time.After(d):
	}
}

// fleetSetting is a positive number of the environment.
func fleetSetting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

func TestTheQuantileOfAHistogramLiesWithinItsBucket(t *testing.T) {
	inf := math.Inf(1)
	h := fleetHistogram{0.1: 50, 0.2: 90, 1: 100, inf: 100}
	for name, tc := range map[string]struct {
		histogram fleetHistogram
		q, want   float64
	}{
		"in the first bucket, from 0 on":       {h, 0.25, 0.05},
		"at a bucket's end":                    {h, 0.5, 0.1},
		"in a bucket between":                  {h, 0.7, 0.15},
		"in the last one that has an end":      {h, 0.95, 0.6},
		"beyond all ends: without bound":       {fleetHistogram{1: 5, inf: 10}, 0.99, inf},
		"of the difference of two readings":    {h.minus(fleetHistogram{0.1: 50, 0.2: 50, 1: 50, inf: 50}), 0.5, 0.1625},
		"of none at all: no number, not a lag": {fleetHistogram{inf: 0}, 0.5, inf},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.histogram.quantile(tc.q)
			if math.IsInf(tc.want, 1) {
				assert.True(t, math.IsInf(got, 1), got)
				return
			}
			assert.InDelta(t, tc.want, got, 1e-9)
		})
	}
}
