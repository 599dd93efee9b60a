//go:build integration

package demand

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// pods has two Deployments, one of them with two pods.
const pods = `orders{namespace=$namespace,deployment="web",pod="web-1"} 10
orders{namespace=$namespace,deployment="web",pod="web-2"} 30
orders{namespace=$namespace,deployment="api",pod="api-1"} 7`

// forTarget makes a measure one of an answer for many targets.
func (s *scene) forTarget(t *testing.T, target, template string) prometheus.Measure {
	t.Helper()
	m := s.measure(t, template)
	m.Target = target
	m.Load.Series = prometheus.SeriesLabels{Namespace: "namespace", Target: "deployment"}
	return m
}

func TestOneAnswerServesManyTargets(t *testing.T) {
	t.Parallel()
	s, other := newScene(t), newScene(t)
	s.exports(pods)
	other.exports(`orders{namespace=$namespace,deployment="web"} 1000`)
	// Both namespaces are in the answer.
	all := fmt.Sprintf(`sum by (namespace, deployment) (orders{namespace=~"%s|%s"})`, s.namespace, other.namespace)
	s.until(t, s.forTarget(t, "web", all), valued(40))
	other.until(t, other.forTarget(t, "web", all), valued(1000))

	s.until(t, s.forTarget(t, "api", all), valued(7))
	absent := s.forTarget(t, "none", all)
	assert.Equal(t, prometheus.ReasonNoData, s.ask(t, absent).Reason)
	absent.Load.OnEmptyZero = true
	assert.True(t, valued(0)(s.ask(t, absent)), "the profile says that no series is no load")

	atLimit := s.forTarget(t, "web", all)
	atLimit.Load.MaxSeries = 3
	assert.True(t, valued(40)(s.ask(t, atLimit)))
	beyond := atLimit
	beyond.Load.MaxSeries = 2
	assert.Equal(t, prometheus.ReasonTooManySeries, s.ask(t, beyond).Reason)
}

func TestTwoSeriesForOneTargetSpoilItForThatTargetOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.exports(pods)
	const each = `orders{namespace=$namespace}`
	s.until(t, s.forTarget(t, "api", each), valued(7))

	assert.Equal(t, prometheus.ReasonDuplicateSeries, s.ask(t, s.forTarget(t, "web", each)).Reason)
}

// Where no series means no load, a lost target would mean it, too.
func TestFC3_EmptyIsZeroOnlyWhileTheSourceIsHealthy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.exports(`other{namespace=$namespace} 1`)
	m := s.healthy(t, s.measure(t, `sum(orders{namespace=$namespace})`))
	m.Load.OnEmptyZero = true
	s.until(t, m, valued(0))
	s.exports(`orders{namespace=$namespace} 40`)
	s.until(t, m, valued(40))

	s.fails()

	s.until(t, m, invalid(prometheus.ReasonStaleSource), neverZero(t))
}

// woken counts the wakes of each subscriber.
type woken struct {
	mu    sync.Mutex
	times map[prometheus.Subscriber]int
}

func (w *woken) wake(id prometheus.Subscriber, _ bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times[id]++
}

// bounds are how often the least and the most woken of the subscribers were.
func (w *woken) bounds() (least, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.times {
		if most = max(most, times); least == 0 || times < least {
			least = times
		}
	}
	if len(w.times) < subscribers {
		return 0, most
	}
	return least, most
}

const subscribers = 20

func target(i int) string { return fmt.Sprintf("web-%d", i) }

func subscriber(i int) prometheus.Subscriber { return prometheus.Subscriber("shop/" + target(i)) }

// startSampler has twenty subscribers to one query through a query layer that counts.
func startSampler(t *testing.T, s *scene, f *federation) (*prometheus.Sampler, *woken) {
	t.Helper()
	w := &woken{times: map[prometheus.Subscriber]int{}}
	sampler := prometheus.NewSampler(newClient(t, f.server.URL), prometheus.SamplerOptions{
		Clock: clock.RealClock{}, Jitter: func() float64 { return 0.5 }, Wake: w.wake,
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sampler.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	for i := range subscribers {
		sampler.Subscribe(subscriber(i), time.Second, []prometheus.Measure{
			s.forTarget(t, target(i), `sum by (namespace, deployment) (orders{namespace=$namespace})`),
		})
	}
	return sampler, w
}

func TestFC54_SamplerAsksPrometheusOnceForAllTargetsOfAQuery(t *testing.T) {
	t.Parallel()
	s, f := newScene(t), newFederation(t)
	var page strings.Builder
	for i := range subscribers {
		fmt.Fprintf(&page, "orders{namespace=$namespace,deployment=%q} %d\n", target(i), i)
	}
	s.exports(page.String())
	s.until(t, s.measure(t, `count(orders{namespace=$namespace})`), valued(subscribers))

	sampler, w := startSampler(t, s, f)

	require.Eventually(t, func() bool { least, _ := w.bounds(); return least >= 3 }, patience, pollEvery)
	asked := f.queries()
	_, most := w.bounds()
	assert.LessOrEqual(t, asked, most+1, "one query per interval, and one that is under way")
	for i := range subscribers {
		samples, at, ready := sampler.Samples(subscriber(i), time.Now())
		require.True(t, ready)
		assert.Equal(t, []scaling.Sample{{Value: float64(i), Validity: scaling.Valid}}, samples)
		assert.WithinDuration(t, time.Now(), at[0].Used, patience)
	}

	s.fails()

	for i := range subscribers {
		require.Eventually(t, func() bool {
			samples, _, ready := sampler.Samples(subscriber(i), time.Now())
			return ready && invalid(prometheus.ReasonNoData)(samples[0])
		}, patience, pollEvery)
	}
}
