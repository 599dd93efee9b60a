package prometheus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

// forMany is a measure with a question for many targets, of which "web" has a series.
func (r *rig) forMany() []Measure {
	r.main.set(func(f *fakeAPI) {
		f.vectors["all"] = func() string {
			return fmt.Sprintf(`[{"metric":{"ns":"shop","app":"web"},"value":[%d,"7"]}]`, time.Now().Unix())
		}
	})
	return load("all", func(q *Question) { q.Series = SeriesLabels{Namespace: "ns", Target: "app"} })
}

func TestQuestionForManyIsAskedAtTheShortestIntervalForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.forMany()
		for i := range 100 {
			r.Subscribe(Subscriber(fmt.Sprint("often/", i)), interval, all)
			r.Subscribe(Subscriber(fmt.Sprint("seldom/", i)), 2*interval, all)
		}
		r.start(t)
		pass(8*interval - time.Second)
		assert.Equal(t, []time.Duration{0, 15, 30, 45, 60, 75, 90, 105}, seconds(r.main.times("all", r.begin)))
		assert.Equal(t, 8, r.wakes("often/17"))
		assert.Equal(t, 4, r.wakes("seldom/17"), "by every other answer")
		samples, at, ready := r.Samples("seldom/17", time.Now())
		require.True(t, ready)
		assert.Equal(t, []scaling.Sample{{Value: 7, Validity: scaling.Valid}}, samples)
		assert.Equal(t, 14*time.Second, time.Since(at[0].Newest), "the newest answer is everybody's")
	})
}

func TestQuestionForManyFollowsWhoNeedsItMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		all := r.forMany()
		since := func(d time.Duration) []time.Duration {
			var late []time.Duration
			for _, at := range seconds(r.main.times("all", r.begin)) {
				if at >= d/time.Second {
					late = append(late, at)
				}
			}
			return late
		}
		r.Subscribe("seldom", 5*time.Minute, all)
		pass(20 * time.Second)
		r.Subscribe("often", interval, all)
		pass(40*time.Second - 1)
		assert.Equal(t, []time.Duration{0, 20, 35, 50}, since(0), "a first answer for the new one at once")
		assert.Equal(t, 2, r.wakes("seldom"))

		r.Subscribe("often", time.Minute, all)
		pass(2 * time.Minute)
		assert.Equal(t, []time.Duration{65, 80, 140}, since(time.Minute), "after the one that was due")
		r.Unsubscribe("often")
		pass(10 * time.Minute)
		assert.Equal(t, []time.Duration{200, 320, 620}, since(150*time.Second), "as before")
		assert.Equal(t, 5, r.wakes("seldom"), "by each answer, once it is alone")
	})
}

func TestShorterIntervalDoesNotEndTheWaitAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.main.status = 401
		r.start(t)
		all := r.forMany()
		r.Subscribe("seldom", time.Minute, all)
		pass(90 * time.Second)
		require.Len(t, r.main.times("all", r.begin), 2)
		r.Subscribe("often", interval, all)
		pass(29 * time.Second)
		assert.Len(t, r.main.times("all", r.begin), 2)
		pass(2 * time.Second)
		assert.Len(t, r.main.times("all", r.begin), 3)
	})
}

func TestWhoNeedsASharedAnswerSeldomIsWokenByTheOneNearestToItsInterval(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		want     int // in 10 minutes, of 40 answers
	}{
		"the same":                 {15 * time.Second, 40},
		"a little more":            {20 * time.Second, 40},
		"a little less than twice": {29 * time.Second, 20},
		"twice":                    {30 * time.Second, 20},
		"far more":                 {5 * time.Minute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.main.delays["all"] = 300 * time.Millisecond
				all := r.forMany()
				r.Subscribe("often", 15*time.Second, all)
				r.Subscribe("a", c.interval, all)
				r.start(t)
				pass(10*time.Minute - time.Second)
				assert.Equal(t, 40, r.wakes("often"))
				assert.Equal(t, c.want, r.wakes("a"))
			})
		})
	}
}

func TestAnswersThatMustBeSeenWhenTheyComeWakeEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.forMany()
		all[0].Load.EveryAnswer = true
		r.Subscribe("often", 15*time.Second, all)
		r.Subscribe("seldom", 5*time.Minute, all)
		r.start(t)
		pass(10*time.Minute - time.Second)
		assert.Equal(t, []int{40, 40}, []int{r.wakes("often"), r.wakes("seldom")})
	})
}

func TestWhoIsLeftAloneWithAQuestionIsWokenByItsNextAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		all := r.forMany()
		r.Subscribe("often", 15*time.Second, all)
		r.Subscribe("seldom", 5*time.Minute, all)
		r.start(t)
		pass(275 * time.Second)
		require.Equal(t, 1, r.wakes("seldom"))
		r.Unsubscribe("often")
		pass(10 * time.Second)
		require.Len(t, r.main.times("all", r.begin), 20, "the answer that was due")
		assert.Equal(t, 2, r.wakes("seldom"))
	})
}
