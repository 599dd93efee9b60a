//go:build integration

package integration

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
)

var schemaResource = schema.GroupResource{Group: "autoscale.example.com", Resource: "autoscalers"}

// rules are the limits that the stories' AutoScaler is held to.
type rules struct {
	every, window, interval, period time.Duration
	upWindow                        time.Duration // none, if 0
	upStep, downStep, added         int32
}

// usual has everything that a restart could forget.
var usual = rules{
	every: 15 * time.Second, window: 45 * time.Second, interval: 30 * time.Second, period: time.Minute,
	upStep: 4, downStep: 4, added: 6,
}

func seconds(d time.Duration) int32 { return int32(d.Seconds()) }

// loadPerReplica is the target of the stories' metric.
const loadPerReplica = 100

func demand(load float64) int32 { return int32(math.Ceil(load / loadPerReplica)) }

// sighted is a demand that arrived at a process, whatever became of that.
type sighted struct {
	at     time.Time
	demand int32
}

// written is a replica count that was stored.
type written struct {
	at       time.Time
	from, to int32
}

func (w written) String() string {
	return fmt.Sprintf("%s %d→%d", w.at.Format("04:05"), w.from, w.to)
}

// world is a Deployment whose AutoScaler is evaluated by one process after another.
// What happens is noted outside of all of them.
type world struct {
	*harness
	rules
	loads   []loadFrom
	started time.Time
	faults  *faults
	seen    []sighted
	writes  []written
	count   int32
	deaths  int
}

// loadFrom is a load from a time of the story on.
type loadFrom struct {
	from time.Duration
	load float64
}

func newWorld(t *testing.T, r rules, replicas int32, loads ...loadFrom) *world {
	t.Helper()
	w := &world{harness: newHarness(t), rules: r, loads: loads, count: replicas}
	w.started = w.clock.Now()
	w.deployment(replicas)
	a := w.autoscaler().Bounds(2, 20).Poll(seconds(r.every)).Obj()
	a.Spec.Behavior = &v1alpha1.Behavior{
		ScaleUpMaxStep: &r.upStep, ScaleDownMaxStep: &r.downStep,
		ScaleUpRate:                   &v1alpha1.ScaleRate{MaxReplicas: r.added, PeriodSeconds: seconds(r.period)},
		ScaleDownStabilizationSeconds: new(seconds(r.window)), ScaleDownMinIntervalSeconds: new(seconds(r.interval)),
		ScaleUpStabilizationSeconds: new(seconds(r.upWindow)),
	}
	w.create(a)
	w.start()
	return w
}

func (w *world) elapsed() time.Duration { return w.clock.Now().Sub(w.started) }

func (w *world) load() float64 {
	load := 0.0
	for _, l := range w.loads {
		if w.elapsed() >= l.from {
			load = l.load
		}
	}
	return load
}

// start replaces the process by a new one, which knows nothing but what is stored.
func (w *world) start() {
	w.Helper()
	w.restart()
	w.faults = &faults{at: -1, scaled: w.note}
	faulty := w.faults.client(admin)
	managers, err := binding.NewManagers(binding.ManagersOptions{Cached: faulty, Live: faulty})
	require.NoError(w, err)
	w.reconciler = &controller.Reconciler{
		Client: faulty,
		Arbiter: &binding.Arbiter{
			Live: faulty, Writer: faulty, Clock: w.clock, Grace: binding.DefaultGrace, Managers: managers, Usable: usable,
		},
		Managers: managers, Sampler: &loadSampler{w, w.faults}, Telemetry: controller.NewTelemetry(admin, w.clock),
		Events: w.faults, Limits: v1alpha1.DefaultLimits, Clock: w.clock,
		Jitter: func(d time.Duration) time.Duration { return d },
	}
}

// note looks at what was stored, past the process.
func (w *world) note() {
	to := w.replicas()
	w.writes = append(w.writes, written{w.clock.Now(), w.count, to})
	w.count = to
}

// evaluate evaluates once, with a fault of the nth call; negative: none. It says
// whether the process has died of it, and what it returned if not.
func (w *world) evaluate(n int, what fault) (died bool, err error) {
	w.faults.begin(n, what)
	_, err = w.reconcile("web")
	return w.faults.dead, err
}

// until evaluates at every poll until that time of the story has come, with no fault.
func (w *world) until(end time.Duration) {
	w.Helper()
	for w.elapsed() < end {
		_, err := w.evaluate(-1, "")
		require.NoError(w, err)
		w.advance(w.every)
	}
}

// reaches evaluates until the count is the wanted one, which must be at that time of
// the story at the latest.
func (w *world) reaches(count int32, end time.Duration) {
	w.Helper()
	for w.elapsed() < end && w.count != count {
		w.until(w.elapsed() + 1)
	}
	assert.Equal(w, count, w.replicas(), "%v", w.writes)
}

// strike evaluates with a fault. A process that dies has a successor: at the next
// poll, when its lease has run out, and which is woken once more a moment later. A
// call that fails is tried again a moment later, by the same process.
func (w *world) strike(n int, what fault) {
	w.Helper()
	if died, _ := w.evaluate(n, what); died || n >= len(w.faults.calls) {
		w.deaths++
		w.start()
		w.advance(w.every)
		_, err := w.evaluate(-1, "")
		require.NoError(w, err)
	}
	w.advance(time.Second)
	_, err := w.evaluate(-1, "")
	require.NoError(w, err)
	w.advance(w.every - time.Second)
}

// verify holds all that was written against what each process was told.
func (w *world) verify() {
	w.Helper()
	for i, is := range w.writes {
		assert.NotEqual(w, is.from, is.to)
		added, removed, addedInPeriod := int32(0), int32(0), int32(0)
		for _, was := range w.writes[:i+1] {
			step := was.to - was.from
			if is.at.Sub(was.at) < w.period {
				addedInPeriod += max(step, 0)
			}
			if is.at.Sub(was.at) < w.every {
				added, removed = added+max(step, 0), removed+max(-step, 0)
			}
		}
		assert.LessOrEqual(w, added, w.upStep, "%s: no doubled step up; %v", is, w.writes)
		assert.LessOrEqual(w, removed, w.downStep, "%s: no doubled step down; %v", is, w.writes)
		assert.LessOrEqual(w, addedInPeriod, w.added, "%s: the rate is kept; %v", is, w.writes)
		if is.to < is.from {
			w.verifyDown(is, w.writes[:i])
		} else {
			w.verifyUp(is)
		}
	}
}

// verifyUp: the demand of the whole window allowed it.
func (w *world) verifyUp(is written) {
	w.Helper()
	for _, s := range w.seen {
		if since := is.at.Sub(s.at); since > 0 && since < w.upWindow {
			assert.GreaterOrEqual(w, s.demand, is.to, "%s: a demand of %d was seen %s before; %v", is, s.demand, since, w.writes)
		}
	}
}

// verifyDown: the demand of the whole window allowed it, and the last scale-down is
// long enough ago.
func (w *world) verifyDown(is written, before []written) {
	w.Helper()
	for _, s := range w.seen {
		if since := is.at.Sub(s.at); since > 0 && since < w.window {
			assert.LessOrEqual(w, s.demand, is.to, "%s: a demand of %d was seen %s before; %v", is, s.demand, since, w.writes)
		}
	}
	assert.GreaterOrEqual(w, is.at.Sub(w.seen[0].at), w.window, "%s: the first window is not over", is)
	for _, was := range before {
		if was.to < was.from {
			assert.GreaterOrEqual(w, is.at.Sub(was.at), w.interval, "%s: the interval is kept; %v", is, w.writes)
		}
	}
}
