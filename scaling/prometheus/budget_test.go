package prometheus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

func budget(perMinute int) func(*Question) {
	return func(q *Question) { q.BudgetPerMinute = perMinute }
}

// subscribe makes subscribers, "0", "1" and so on, each with a question of its own: "q0",
// "q1" and so on.
func (r *rig) subscribe(n int, change func(*Question)) {
	for i := range n {
		r.Subscribe(Subscriber(fmt.Sprint(i)), interval, load(fmt.Sprint("q", i), change))
	}
}

func TestBudgetBoundsTheQueriesOfAProfileInEveryMinute(t *testing.T) {
	cases := map[string]struct {
		change   func(*Endpoint)
		question func(*Question)
	}{
		"of the profile":               {func(*Endpoint) {}, budget(20)},
		"of the endpoint":              {func(e *Endpoint) { e.MaxQueriesPerMinute = 20 }, budget(0)},
		"of both, the profile's less":  {func(e *Endpoint) { e.MaxQueriesPerMinute = 50 }, budget(20)},
		"of both, the endpoint's less": {func(e *Endpoint) { e.MaxQueriesPerMinute = 20 }, budget(50)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.change)
				r.start(t)
				r.subscribe(10, c.question) // 40 per minute
				pass(10 * time.Minute)
				var all []time.Duration
				for i := range 10 {
					times := r.main.times(fmt.Sprint("q", i), r.begin)
					assert.InDelta(t, 20, len(times), 1, "each has its turn")
					all = append(all, times...)
				}
				for from := range 9 * 60 {
					inMinute := 0
					for _, at := range all {
						if at := at - time.Duration(from)*time.Second; at >= 0 && at < time.Minute-time.Microsecond {
							inMinute++
						}
					}
					assert.LessOrEqual(t, inMinute, 20, "in the minute from second %d", from)
				}
				assert.Contains(t, r.observed(), "delayed requests main")
			})
		})
	}
}

func TestBudgetThatSufficesDelaysNothingForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.subscribe(4, budget(240))
		pass(10*time.Minute - time.Second)
		assert.Equal(t, 160, r.main.count())
		assert.NotContains(t, r.observed(), "delayed requests main")
	})
}

func TestBudgetOfOneProfileDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.subscribe(10, budget(1))
		r.Subscribe("free", interval, load("free", func(q *Question) { q.Profile = "free" }))
		pass(4*interval - time.Second)
		assert.Equal(t, []time.Duration{0, 15, 30, 45}, seconds(r.main.times("free", r.begin)))
	})
}

func TestSamplesThatABudgetKeepsOldSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.subscribe(3, budget(1))
		ready := func() (all int, reasons map[string]int) {
			reasons = map[string]int{}
			for i := range 3 {
				if samples, _, ready := r.Samples(Subscriber(fmt.Sprint(i)), time.Now()); ready {
					all++
					reasons[samples[0].Reason]++
				}
			}
			return all, reasons
		}
		pass(20 * time.Second)
		all, _ := ready()
		assert.Equal(t, 1, all)
		pass(time.Second)
		all, reasons := ready()
		assert.Equal(t, 3, all, "a wait beyond interval and timeout is an answer")
		assert.Equal(t, map[string]int{"": 1, ReasonBudgetExceeded: 2}, reasons)
		assert.Equal(t, 1, r.wakes("0")+r.wakes("1")+r.wakes("2"))

		pass(150 * time.Second) // the others were answered once, too
		old, _, _ := r.Samples("0", time.Now().Add(time.Minute))
		assert.Equal(t, ReasonBudgetExceeded, old[0].Reason)
		assert.Equal(t, scaling.Invalid, old[0].Validity)
		assert.Contains(t, old[0].Message, "budget")
	})
}

func TestBudgetFollowsTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start(t)
		r.Subscribe("a", interval, load("q", budget(1)))
		pass(2 * time.Minute)
		assert.Len(t, r.main.times("q", r.begin), 3)
		r.Subscribe("a", interval, load("q", budget(60)))
		pass(2 * time.Minute)
		assert.InDelta(t, 3+8, len(r.main.times("q", r.begin)), 1)
	})
}

func TestQuestionsThatEndedWhileTheyWaitedForABudgetDelayNobody(t *testing.T) {
	cases := map[string]struct {
		perMinute int // of the endpoint
		question  func(*Question)
	}{
		"of the profile":  {0, budget(60)},
		"of the endpoint": {60, budget(0)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(e *Endpoint) { e.MaxQueriesPerMinute = c.perMinute })
				r.start(t)
				r.subscribe(1000, c.question) // the last would be asked after a quarter of an hour
				pass(10500 * time.Millisecond)
				asked, left := r.main.count(), 0
				assert.Equal(t, 11, asked)
				for i := range 1000 {
					if len(r.main.times(fmt.Sprint("q", i), r.begin)) == 0 && left < 5 {
						left++
						continue
					}
					r.Unsubscribe(Subscriber(fmt.Sprint(i)))
				}
				pass(5 * time.Second)
				assert.Equal(t, asked+5, r.main.count(), "those who are left move up")
				r.Subscribe("new", interval, load("new", c.question))
				pass(6 * time.Second) // those who are left are due again, too
				assert.Len(t, r.main.times("new", r.begin), 1)
			})
		})
	}
}

func TestBudgetIsKeptAndUsedWhileQuestionsComeAndGo(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, random := newRig(t, func(e *Endpoint) { e.MaxQueriesPerMinute = 60 }), rand.New(rand.NewPCG(seed, 3))
				lots := rand.New(rand.NewPCG(seed, 4))
				r.opts.Jitter = lots.Float64
				r.start(t)
				for step := range 300 {
					id := Subscriber(fmt.Sprint(random.IntN(40)))
					profile := []func(*Question){
						func(q *Question) { q.Profile, q.BudgetPerMinute = "p", 20 },
						func(q *Question) { q.Profile = "q" },
					}[random.IntN(2)]
					if random.IntN(4) == 0 {
						r.Unsubscribe(id)
					} else {
						r.Subscribe(id, 5*time.Second, load(fmt.Sprint("q", step), profile))
					}
					pass(time.Duration(random.IntN(2000)) * time.Millisecond)
				}
				r.Subscribe("last", 5*time.Second, load("last", func(q *Question) { q.Profile = "q" }))
				pass(time.Minute)
				assert.NotEmpty(t, r.main.times("last", r.begin), "41 questions at one per second")

				asked := slices.Clone(r.main.asked)
				require.Greater(t, len(asked), 200)
				for i := range asked[:len(asked)-1] {
					assert.GreaterOrEqual(t, asked[i+1].at.Sub(asked[i].at), time.Second, "query %d", i+1)
				}
			})
		})
	}
}
