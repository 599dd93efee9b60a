package prometheus

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSamplerAsksExactlyWhatIsSubscribedTo lets subscribers come, change and go
// while the server fails and recovers, and compares with a model: who has which
// questions.
func TestSamplerAsksExactlyWhatIsSubscribedTo(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &walk{rig: newRig(t), random: rand.New(rand.NewPCG(seed, 1)), model: map[Subscriber]map[taskKey]time.Duration{}}
				lots := rand.New(rand.NewPCG(seed, 2))
				w.opts.Jitter = lots.Float64
				w.answerForWeb()
				stop := w.start(t)
				for range 40 {
					w.step()
					synctest.Wait()
					w.check(t)
				}
				w.main.set(func(f *fakeAPI) { f.status, f.delays["q1"] = http.StatusOK, 0 })
				pass(MaxBackoff + 20*time.Second)
				for id := range w.model {
					samples, _, ready := w.Samples(id, time.Now())
					require.True(t, ready)
					for _, s := range samples {
						assert.Contains(t, []string{"", ReasonUnknownEndpoint}, s.Reason, "everything has recovered")
					}
					w.Unsubscribe(id)
					delete(w.model, id)
				}
				w.check(t)
				stop()
			})
		})
	}
}

// walk takes random steps and knows what should be subscribed to.
type walk struct {
	*rig
	random *rand.Rand
	model  map[Subscriber]map[taskKey]time.Duration // with the subscriber's interval
}

// answerForWeb makes each answer one that is for one target and for many.
func (w *walk) answerForWeb() {
	answer := func() string {
		return fmt.Sprintf(`[{"metric":{"ns":"shop","app":"web"},"value":[%d,"7"]}]`, time.Now().Unix())
	}
	for i := range 4 {
		w.main.vectors[fmt.Sprint("q", i)], w.other.vectors[fmt.Sprint("q", i)] = answer, answer
	}
}

func (w *walk) step() {
	id := Subscriber(fmt.Sprint("s", w.random.IntN(4)))
	switch w.random.IntN(6) {
	case 0, 1:
		every := []time.Duration{5 * time.Second, interval}[w.random.IntN(2)]
		var measures []Measure
		w.model[id] = map[taskKey]time.Duration{}
		for range 1 + w.random.IntN(3) {
			m := w.measure()
			measures = append(measures, m)
			for _, q := range m.questions() {
				if q != nil {
					w.model[id][keyOf(q, every)] = every
				}
			}
		}
		w.Subscribe(id, every, measures)
	case 2:
		w.Unsubscribe(id)
		delete(w.model, id)
	case 3:
		pass(time.Duration(1+w.random.IntN(20_000)) * time.Millisecond)
	case 4:
		w.main.set(func(f *fakeAPI) { f.status = []int{200, 401, 429, 500}[w.random.IntN(4)] })
	case 5:
		w.main.set(func(f *fakeAPI) { f.delays["q1"] = time.Duration(w.random.IntN(6)) * time.Second })
	}
}

func (w *walk) measure() Measure {
	draw := func() Question {
		return Question{
			Profile:  []string{"p", "q"}[w.random.IntN(2)],
			Endpoint: []string{"main", "main", "other", "gone"}[w.random.IntN(4)],
			Expr:     fmt.Sprint("q", w.random.IntN(4)),
			Timeout:  2 * time.Second,
			Series:   []SeriesLabels{{}, {Namespace: "ns", Target: "app"}}[w.random.IntN(2)],
		}
	}
	m := Measure{Load: draw(), Namespace: "shop", Target: "web", MaxAge: time.Minute}
	if w.random.IntN(2) == 0 {
		m.Arrivals = draw()
	}
	return m
}

// check compares the sampler's state with who has which questions.
func (w *walk) check(t *testing.T) {
	t.Helper()
	r := w.rig
	r.Sampler.mu.Lock()
	defer r.Sampler.mu.Unlock()
	users := map[taskKey]map[Subscriber]time.Duration{}
	for id, keys := range w.model {
		for key, every := range keys {
			if users[key] == nil {
				users[key] = map[Subscriber]time.Duration{}
			}
			users[key][id] = every
		}
	}
	require.Len(t, r.tasks, len(users))
	require.Len(t, r.subscriptions, len(w.model))
	profiles, waiting := map[string]int{}, 0
	for key, task := range r.tasks {
		intervals, shortest := map[Subscriber]time.Duration{}, time.Hour
		for id, u := range task.users {
			intervals[id], shortest = u.interval, min(shortest, u.interval)
		}
		require.Equal(t, users[key], intervals)
		require.Equal(t, shortest, task.interval, "as often as who needs it most")
		profiles[key.question.Profile]++
		if task.index >= 0 {
			require.Same(t, task, task.line.queue[task.index])
			require.Same(t, task.line, r.lanes[key.question.Endpoint].lines[key.question.Profile])
			waiting++
		} else {
			require.True(t, task.line == nil || task.cancel != nil, "it waits or it runs")
		}
	}
	require.Len(t, r.profiles, len(profiles))
	for name, n := range profiles {
		require.Equal(t, n, r.profiles[name].tasks)
	}
	for _, l := range r.lanes {
		for name, row := range l.lines {
			require.Same(t, r.profiles[name], row.profile)
			require.Positive(t, row.tasks)
			waiting -= len(row.queue)
		}
	}
	require.Zero(t, waiting, "nothing else waits")
}
