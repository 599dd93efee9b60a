package prometheus

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// crowd has hundreds of questions of one profile, which came first, and one of another.
func (r *rig) crowd() {
	for i := range 600 {
		r.Subscribe(Subscriber(fmt.Sprint("many/", i)), interval, load(fmt.Sprint("q", i)))
	}
	r.Subscribe("few", interval, load("few", func(q *Question) { q.Profile = "few" }))
}

func TestProfileWithHundredsOfQuestionsDelaysAnothersOneByATurn(t *testing.T) {
	cases := map[string]struct {
		change func(*Endpoint)
		slow   time.Duration // each answer
		within time.Duration
	}{
		"for the endpoint's budget": {func(e *Endpoint) { e.MaxQueriesPerMinute = 60 }, 0, 2 * time.Second},
		"for a place at it":         {func(e *Endpoint) { e.MaxConcurrentQueries = 2 }, time.Second, 2 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, c.change)
				for i := range 600 {
					r.main.delays[fmt.Sprint("q", i)] = c.slow
				}
				r.crowd()
				r.start(t)
				pass(5*time.Minute - time.Second)
				times := r.main.times("few", r.begin)
				if assert.Len(t, times, 20, "one per interval") {
					for k, at := range times {
						assert.LessOrEqual(t, at, time.Duration(k)*interval+c.within, "query %d", k)
					}
				}
				others := r.main.count() - len(times)
				assert.Greater(t, others, 270, "and nothing is left unused")
				asked := map[string]int{}
				for _, a := range r.main.asked {
					asked[a.expr]++
				}
				assert.Len(t, asked, min(others, 600)+1, "each in its turn, the longest due first")
			})
		})
	}
}

func TestProfilesShareAnEndpointsBudgetEqually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(e *Endpoint) { e.MaxQueriesPerMinute = 30 })
		profiles := map[string]int{"a": 50, "b": 100, "c": 400}
		for profile, n := range profiles {
			for i := range n {
				r.Subscribe(Subscriber(fmt.Sprint(profile, i)), interval, load(fmt.Sprint(profile, i), func(q *Question) { q.Profile = profile }))
			}
		}
		r.start(t)
		pass(10*time.Minute - time.Second)
		had := map[byte]int{}
		for _, a := range r.main.asked {
			had[a.expr[0]]++
		}
		assert.Equal(t, map[byte]int{'a': 100, 'b': 100, 'c': 100}, had)
	})
}

func TestTurnThatAProfilesOwnBudgetForbidsIsAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(e *Endpoint) { e.MaxQueriesPerMinute = 60 })
		r.subscribe(100, budget(6))
		for i := range 100 {
			r.Subscribe(Subscriber(fmt.Sprint("free", i)), interval, load(fmt.Sprint("free", i), func(q *Question) { q.Profile = "free" }))
		}
		r.start(t)
		pass(10*time.Minute - time.Second)
		had := map[bool]int{}
		for _, a := range r.main.asked {
			had[a.expr[0] == 'q']++
		}
		assert.Equal(t, 600, had[true]+had[false])
		assert.InDelta(t, 60, had[true], 5)
	})
}
