package prometheus

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func TestEqualQuestionsAreAskedOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for i := range 100 {
			r.Subscribe(Subscriber(fmt.Sprint("a/", i)), interval, load(fmt.Sprint("q", i%4)))
		}
		r.start(t)
		pass(10*interval - time.Second)
		assert.Equal(t, 40, r.main.count(), "4 questions in 10 intervals")
		assert.Equal(t, 10, r.wakes("a/17"), "once per answer")
		samples, at, ready := r.Samples("a/17", time.Now())
		require.True(t, ready)
		assert.Equal(t, []scaling.Sample{{Value: 7, Validity: scaling.Valid}}, samples)
		assert.Equal(t, 14*time.Second, time.Since(at[0].Used))
	})
}

func TestOtherIntervalsAndQuestionsAreAskedForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.Subscribe("a", interval, load("q"))
		r.Subscribe("b", 2*interval, load("q"))
		r.Subscribe("c", interval, load("q", func(q *Question) { q.OnEmptyZero = true }))
		r.Subscribe("d", time.Nanosecond, load("p"))
		pass(4*interval - time.Second)
		assert.Len(t, r.main.times("q", r.begin), 4+2+4)
		assert.Len(t, r.main.times("p", r.begin), 60, "once per MinInterval")
	})
}

func TestFirstQuestionIsAskedSoonAndLaterOnesAtAPhaseOfTheInterval(t *testing.T) {
	cases := map[string]struct {
		interval time.Duration
		want     []time.Duration
	}{
		"of a usual interval": {15 * time.Second, []time.Duration{1, 7, 22, 37}},
		"of a long interval":  {50 * time.Second, []time.Duration{1, 25, 75, 125}},
		"of a short interval": {2 * time.Second, []time.Duration{1, 3, 5, 7}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.jitter = 0.5
				r.start(t)
				r.Subscribe("a", c.interval, load("q"))
				for len(r.main.times("q", r.begin)) < len(c.want) {
					pass(time.Second)
				}
				got := r.main.times("q", r.begin)
				for i := range got {
					assert.Equal(t, c.want[i], got[i]/time.Second, "query %d", i)
				}
			})
		})
	}
}

func TestOneQueryAnswersForAllTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		perTarget := func(q *Question) { q.Series = SeriesLabels{Namespace: "ns", Target: "app"} }
		r.main.vectors["q"] = func() string {
			var all []string
			for i := range 1000 {
				all = append(all, fmt.Sprintf(`{"metric":{"ns":"n%d","app":"web","pod":"x"},"value":[%d,"%d"]}`, i, time.Now().Unix(), i))
			}
			all = append(all,
				fmt.Sprintf(`{"metric":{"ns":"n3","app":"web","pod":"y"},"value":[%d,"1"]}`, time.Now().Unix()),
				fmt.Sprintf(`{"metric":{"app":"web"},"value":[%d,"1"]}`, time.Now().Unix()))
			return "[" + strings.Join(all, ",") + "]"
		}
		for i := range 1001 {
			m := load("q", perTarget)
			m[0].Namespace = fmt.Sprint("n", i)
			r.Subscribe(Subscriber(m[0].Namespace), interval, m)
		}
		r.start(t)
		pass(interval - time.Second)
		assert.Equal(t, 1, r.main.count())
		sample := func(id Subscriber) scaling.Sample {
			samples, _, ready := r.Samples(id, time.Now())
			require.True(t, ready)
			return samples[0]
		}
		assert.Equal(t, scaling.Sample{Value: 2, Validity: scaling.Valid}, sample("n2"))
		assert.Equal(t, scaling.Sample{Value: 999, Validity: scaling.Valid}, sample("n999"))
		assert.Equal(t, ReasonDuplicateSeries, sample("n3").Reason)
		assert.Equal(t, ReasonNoData, sample("n1000").Reason)
		assert.Equal(t, 1, r.wakes("n1000"))
	})
}

func TestSamplesAreReadyWhenEachQuestionHasBeenAnsweredOrHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.main.delays["slow"] = 3 * time.Second
		r.main.delays["hangs"] = time.Hour
		r.start(t)
		measures := append(load("quick"), load("slow")...)
		measures[1].Arrivals = load("hangs")[0].Load
		r.Subscribe("a", interval, measures)
		_, at, ready := r.Samples("a", time.Now())
		assert.False(t, ready)
		assert.Empty(t, at)
		_, _, ready = r.Samples("unknown", time.Now())
		assert.False(t, ready)

		pass(time.Second)
		samples, at, ready := r.Samples("a", time.Now())
		assert.False(t, ready)
		assert.Nil(t, samples)
		assert.Empty(t, at)
		pass(4500 * time.Millisecond) // the hanging one has timed out
		samples, at, ready = r.Samples("a", time.Now())
		require.True(t, ready)
		assert.Equal(t, scaling.Valid, samples[0].Validity)
		assert.Equal(t, ReasonTimeout, samples[1].Reason)
		slow := r.begin.Add(3 * time.Second)
		assert.Equal(t, []Arrival{{Newest: r.begin, Used: r.begin}, {Newest: slow, Used: slow}}, at, "of the loads")
	})
}

func TestUnknownEndpointFailsAtOnceAndIsNeverAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		assert.True(t, r.Has("main"))
		assert.False(t, r.Has("gone"))
		r.Subscribe("a", interval, load("q", func(q *Question) { q.Endpoint = "gone" }))
		samples, _, ready := r.Samples("a", time.Now())
		require.True(t, ready)
		assert.Equal(t, ReasonUnknownEndpoint, samples[0].Reason)
		r.Unsubscribe("a")
		assert.Empty(t, r.tasks)
	})
}

func TestSlowEndpointDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(e *Endpoint) { e.MaxConcurrentQueries = 3 })
		r.start(t)
		for i := range 50 {
			expr := fmt.Sprint("q", i)
			r.main.set(func(f *fakeAPI) { f.delays[expr] = time.Hour })
			r.Subscribe(Subscriber("slow/"+expr), interval, load(expr))
			r.Subscribe(Subscriber("quick/"+expr), interval, load(expr, func(q *Question) { q.Endpoint = "other" }))
		}
		pass(4*interval - time.Second)
		assert.Equal(t, 3, r.main.peak, "queries at once")
		assert.Equal(t, 4*50, r.other.count(), "queries of the other endpoint")
		for i := range 50 {
			for k, at := range r.other.times(fmt.Sprint("q", i), r.begin) {
				assert.Equal(t, time.Duration(k)*interval, at)
			}
		}
		// 3 at once, 5 s each, in 59 s.
		assert.Equal(t, 36, r.main.count())
	})
}

func TestQuestionsBehindAHangingEndpointDoNotWaitInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(e *Endpoint) { e.MaxConcurrentQueries = 1 })
		for i := range 20 {
			expr := fmt.Sprint("q", i)
			r.Subscribe(Subscriber(expr), interval, load(expr))
		}
		r.start(t)
		pass(time.Second)
		r.main.set(func(f *fakeAPI) {
			for i := range 40 {
				f.delays[fmt.Sprint("q", i)] = time.Hour
			}
		})
		for i := 20; i < 40; i++ {
			expr := fmt.Sprint("q", i)
			r.Subscribe(Subscriber(expr), interval, load(expr))
		}
		var said string
		reasons := func() map[string]int {
			all := map[string]int{}
			for i := range 40 {
				if samples, _, ready := r.Samples(Subscriber(fmt.Sprint("q", i)), time.Now()); ready {
					all[samples[0].Reason]++
					if samples[0].Reason == ReasonEndpointBusy {
						said = samples[0].Message
					}
				} else {
					all["not ready"]++
				}
			}
			return all
		}
		pass(20 * time.Second)
		now := reasons()
		assert.Equal(t, 16, now["not ready"], "new ones, but for the 4 that were given up")
		assert.Zero(t, now[ReasonEndpointBusy])
		pass(time.Second)
		assert.Equal(t, 16, reasons()[ReasonEndpointBusy])
		pass(40 * time.Second) // the samples from before are a minute old now
		now = reasons()
		assert.Zero(t, now["not ready"])
		assert.Zero(t, now[""])
		assert.Zero(t, now[ReasonStaleSample])
		assert.Equal(t, 40, now[ReasonEndpointBusy]+now[ReasonTimeout])
		assert.Contains(t, said, "behind others")
	})
}

func TestQuestionsOfOneSubscriptionAreAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		draws := 0
		r.opts.Jitter = func() float64 {
			draws++
			return float64(draws%7) / 7
		}
		m := load("backlog")
		m[0].Arrivals = load("arrivals")[0].Load
		m[0].Freshness = Freshness{Question: load("age")[0].Load, MaxAge: time.Minute}
		r.Subscribe("a", interval, m)
		r.start(t)
		pass(4 * interval)
		times := r.main.times("backlog", r.begin)
		assert.Len(t, times, 5)
		assert.Equal(t, times, r.main.times("arrivals", r.begin))
		assert.Equal(t, times, r.main.times("age", r.begin))
		assert.Equal(t, 3*5, r.wakes("a"), "once per answer")
	})
}

func TestSubscribingToTheSameAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		for range 29 {
			r.Subscribe("a", interval, load("q"))
			pass(time.Second)
		}
		assert.Equal(t, []time.Duration{0, interval}, r.main.times("q", r.begin))
	})
}

func TestReplacedSubscriptionKeepsWhatItShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.Subscribe("a", interval, append(load("kept"), load("dropped")...))
		pass(time.Second)
		r.Subscribe("a", interval, load("kept"))
		_, _, ready := r.Samples("a", time.Now())
		assert.True(t, ready, "the answer is still there")
		changed := load("kept")
		changed[0].Target = "api"
		r.Subscribe("a", interval, changed)
		_, _, ready = r.Samples("a", time.Now())
		assert.True(t, ready)
		pass(2 * interval)
		assert.Len(t, r.main.times("kept", r.begin), 3)
		assert.Len(t, r.main.times("dropped", r.begin), 1)
		r.Subscribe("a", interval, append(load("kept"), load("kept")...))
		r.Subscribe("a", interval, load("kept"))
		assert.Len(t, r.tasks, 1)
	})
}

func TestQuestionWithoutSubscribersEndsAndIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Subscribe("a", interval, load("q"))
		r.Subscribe("b", interval, load("q"))
		r.Unsubscribe("a")
		r.Unsubscribe("a")
		r.Unsubscribe("never subscribed")
		r.start(t)
		pass(interval)
		assert.Equal(t, 2, r.main.count())
		assert.Zero(t, r.wakes("a"))

		r.main.set(func(f *fakeAPI) { f.delays["q"] = time.Hour })
		pass(interval)
		assert.Equal(t, 1, r.main.running)
		r.Unsubscribe("b")
		synctest.Wait()
		assert.Zero(t, r.main.running, "the query is given up")
		pass(10 * interval)
		assert.Equal(t, 3, r.main.count())
		assert.Empty(t, r.tasks)
		assert.Empty(t, r.profiles)
		assert.Empty(t, r.subscriptions)
		assert.Empty(t, r.lanes["main"].lines)
		assert.Zero(t, r.lanes["main"].running)
		events := r.observed()
		assert.Equal(t, "forgotten requests", events[len(events)-1], "after the last of its queries")
	})
}

func TestFailuresBackOffAndSuccessEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.main.status = http.StatusUnauthorized
		r.start(t)
		r.Subscribe("a", interval, load("q"))
		pass(239 * time.Second)
		// A 401 is not repeated by GET, a 403 is.
		assert.Equal(t, []time.Duration{0, 15, 45, 105, 165, 225}, seconds(r.main.times("q", r.begin)))
		r.main.set(func(f *fakeAPI) { f.status = http.StatusOK })
		pass(90 * time.Second)
		assert.Equal(t, []time.Duration{285, 300, 315}, seconds(r.main.times("q", r.begin))[6:])
	})
}

func TestBackOffIsJitteredAndNeverShorterThanTheInterval(t *testing.T) {
	for failures := 1; failures < 100; failures++ {
		for _, every := range []time.Duration{time.Second, interval, time.Minute, time.Hour} {
			for _, jitter := range []float64{0, 0.999} {
				task := &task{interval: every, phase: time.Unix(0, 0), failures: failures - 1}
				now := time.Unix(1000, 0)
				task.schedule(&answer{reason: ReasonTimeout}, now, func(d time.Duration) time.Duration { return time.Duration(jitter * float64(d)) })
				wait := task.due.Sub(now)
				assert.Positive(t, wait)
				assert.LessOrEqual(t, wait, max(every, MaxBackoff))
				if failures > 1 && every < MaxBackoff {
					assert.GreaterOrEqual(t, wait, every*5/4)
				}
			}
		}
	}
}

func TestRetryAfterIsHonouredWithinItsBound(t *testing.T) {
	cases := map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"in seconds":            {http.Header{"Retry-After": {"100"}}, 100 * time.Second},
		"as a date":             {http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:01:30 GMT"}, "Date": {"Sat, 01 Jan 2000 00:00:00 GMT"}}, 90 * time.Second},
		"in the past":           {http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:00 GMT"}, "Date": {"Sat, 01 Jan 2000 00:01:00 GMT"}}, interval},
		"as a date, no clock":   {http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:01:30 GMT"}}, interval},
		"shorter than interval": {http.Header{"Retry-After": {"1"}}, interval},
		"beyond the bound":      {http.Header{"Retry-After": {"4294967295"}}, MaxRetryAfter},
		"negative":              {http.Header{"Retry-After": {"-1"}}, interval},
		"not a number":          {http.Header{"Retry-After": {"soon"}}, interval},
		"absent":                {http.Header{}, interval},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.main.status, r.main.header = http.StatusTooManyRequests, c.header
				r.start(t)
				r.Subscribe("a", interval, load("q"))
				pass(MaxRetryAfter + time.Second)
				require.GreaterOrEqual(t, r.main.count(), 2)
				assert.Equal(t, c.want, r.main.times("q", r.begin)[1])
			})
		})
	}
}

func TestOldAnswerIsStaleUnlessTheNextIsNotDueYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stop := r.start(t)
		r.Subscribe("a", interval, load("q"))
		r.Subscribe("rare", 5*time.Minute, load("rare"))
		pass(time.Second)
		stop()
		reason := func(id Subscriber, age time.Duration) string {
			samples, _, ready := r.Samples(id, r.begin.Add(age))
			require.True(t, ready)
			return samples[0].Reason
		}
		assert.Empty(t, reason("a", time.Minute))
		assert.Equal(t, ReasonStaleSample, reason("a", time.Minute+time.Second))
		assert.Empty(t, reason("rare", 5*time.Minute+5*time.Second))
		assert.Equal(t, ReasonStaleSample, reason("rare", 5*time.Minute+6*time.Second))
	})
}

func TestFC9_FailureIsNotCoveredByAnOlderAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.Subscribe("a", interval, load("q"))
		seen := func(answer string, status int) scaling.Sample {
			r.main.set(func(f *fakeAPI) { f.value, f.status = answer, status })
			pass(interval)
			samples, _, ready := r.Samples("a", time.Now())
			require.True(t, ready)
			samples[0].Message = ""
			return samples[0]
		}
		assert.Equal(t, scaling.Sample{Value: 100, Validity: scaling.Valid}, seen("100", 200))
		failed := scaling.Sample{Reason: ReasonServerError}
		assert.Equal(t, failed, seen("100", 500), "the answer from before is 15 s old and would do")
		assert.Equal(t, failed, seen("100", 500))
		// A server that has just restarted says 0. It is asked again after 30 s.
		assert.Equal(t, failed, seen("0", 200))
		assert.Equal(t, scaling.Sample{Validity: scaling.Valid}, seen("0", 200))
		assert.Equal(t, scaling.Sample{Value: 100, Validity: scaling.Valid}, seen("100", 200))
	})
}

func TestStoppedSamplerKeepsWhatItKnowsAndGoesOnWhenRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stop := r.start(t)
		r.Subscribe("a", interval, load("q"))
		pass(time.Second)
		r.main.set(func(f *fakeAPI) { f.delays["q"] = time.Hour })
		pass(interval)
		require.Equal(t, 1, r.main.running)
		stop()
		assert.Zero(t, r.main.running)
		samples, _, ready := r.Samples("a", time.Now())
		require.True(t, ready)
		assert.Equal(t, scaling.Valid, samples[0].Validity, "stopping is no failure of the metric")

		r.main.set(func(f *fakeAPI) { f.delays["q"] = 0 })
		r.start(t)
		synctest.Wait()
		assert.Equal(t, 3, r.main.count())
	})
}

func TestObserverIsToldOfEachExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.main.delays["q"] = 2 * time.Second
		r.start(t)
		r.Subscribe("a", interval, load("q"))
		pass(3 * time.Second)
		r.main.set(func(f *fakeAPI) { f.status = http.StatusBadGateway })
		pass(interval)
		r.Unsubscribe("a")
		assert.Equal(t, []string{
			"asked requests main  2s", "asked requests main ServerError 2s", "forgotten requests",
		}, r.observed())
	})
}

func TestSamplerWithoutWakeAndObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.opts.Wake, r.opts.Observer = nil, nil
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		r.Subscribe("a", interval, load("q"))
		pass(time.Second)
		_, _, ready := r.Samples("a", time.Now())
		assert.True(t, ready)
		r.Unsubscribe("a")
		cancel()
		require.NoError(t, <-done)
	})
}

func seconds(all []time.Duration) []time.Duration {
	for i := range all {
		all[i] /= time.Second
	}
	return all
}
