//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// fiveMinutes are the rules of FC-17.
var fiveMinutes = rules{
	every: 15 * time.Second, window: 5 * time.Minute, interval: time.Minute, period: time.Minute,
	upStep: 20, downStep: 4, added: 100,
}

// byFour adds four at a time.
var byFour = rules{
	every: 15 * time.Second, window: 5 * time.Minute, interval: time.Minute, period: 5 * time.Minute,
	upStep: 4, downStep: 4, added: 100,
}

// restartsEvery evaluates at every poll until that time of the story, with a new
// process each time that so long has passed.
func (w *world) restartsEvery(d, end time.Duration) {
	w.Helper()
	for next := w.elapsed() + d; w.elapsed() < end; {
		w.until(w.elapsed() + 1)
		if w.elapsed() >= next {
			w.start()
			next += d
		}
	}
}

func (w *world) firstDown() time.Duration {
	w.Helper()
	for _, is := range w.writes {
		if is.to < is.from {
			return is.at.Sub(w.started)
		}
	}
	require.Fail(w, "nothing was scaled down")
	return 0
}

func TestFC17_ALeaderIsKilledInTheWindow_NothingIsScaledDownEarlier(t *testing.T) {
	for name, tc := range map[string]struct {
		falls, killed time.Duration
	}{
		"after the load has fallen": {60 * time.Second, 60 * time.Second},
		// The status is that of the scale-up; what the process saw since then is gone.
		"while the load was high":           {75 * time.Second, 60 * time.Second},
		"when the load has just fallen":     {60 * time.Second, 75 * time.Second},
		"in the middle of the window":       {60 * time.Second, 180 * time.Second},
		"a poll before the end of it":       {60 * time.Second, 330 * time.Second},
		"long after the status of the rise": {240 * time.Second, 225 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fiveMinutes, 4, loadFrom{0, 2000}, loadFrom{tc.falls, 500})
			w.until(tc.killed + w.every) // it is evaluated at the time itself
			w.start()
			w.until(tc.falls + 2*w.window)
			w.verify()
			assert.LessOrEqual(t, w.firstDown(), max(tc.falls, tc.killed+w.every)+w.window+w.window/12, "nor much later")
		})
	}
}

func TestFC17_ARestartEveryMinute_ScalesDownAllTheSame(t *testing.T) {
	for _, tc := range []struct{ window, falls time.Duration }{
		{5 * time.Minute, 60 * time.Second},
		{5 * time.Minute, 90 * time.Second},
		{5 * time.Minute, 105 * time.Second},
		{20 * time.Minute, 60 * time.Second}, // a twelfth of it is longer than a process lives
	} {
		t.Run(fmt.Sprintf("a window of %s, the load falls at %s", tc.window, tc.falls), func(t *testing.T) {
			r := fiveMinutes
			r.window = tc.window
			w := newWorld(t, r, 4, loadFrom{0, 2000}, loadFrom{tc.falls, 500})
			w.restartsEvery(time.Minute, tc.falls+tc.window+10*time.Minute)
			w.verify()
			assert.LessOrEqual(t, w.firstDown(), tc.falls+tc.window+2*tc.window/12+time.Minute,
				"the window, its resolution, the wait for the first write, and a restart")
			assert.Equal(t, int32(5), w.replicas(), "%v", w.writes)
		})
	}
}

func TestAShortPeakBeforeAKillIsNotForgotten(t *testing.T) {
	// The peak asks for the whole count and so ends what was pending: that is told at
	// once, or the next process would go on with the window from before it.
	peak := 3 * time.Minute
	w := newWorld(t, fiveMinutes, 4,
		loadFrom{0, 2000}, loadFrom{time.Minute, 500}, loadFrom{peak, 2000}, loadFrom{peak + w15, 500})
	w.until(peak + w15)
	w.start()
	w.until(peak + 2*w.window)
	w.verify()
	assert.GreaterOrEqual(t, w.firstDown(), peak+w.window)
}

func TestALowPeakBeforeAKillIsNotForgottenWhenAHighOneBeforeItIs(t *testing.T) {
	// The scale-down begins at 345 s, and the peak forbids to go below it for a window.
	// The memory is stored at every other poll meanwhile, and once it is when the peak is
	// seen.
	for _, peak := range []time.Duration{300 * time.Second, 315 * time.Second} {
		t.Run(fmt.Sprintf("at %s", peak), func(t *testing.T) {
			w := newWorld(t, fiveMinutes, 4,
				loadFrom{0, 2000}, loadFrom{time.Minute, 500}, loadFrom{peak, 1200}, loadFrom{peak + w15, 500})
			w.until(peak + w15)
			w.start()
			w.until(peak + w.window)
			assert.Equal(t, int32(12), w.replicas(), "%v", w.writes)
			w.reaches(5, peak+2*w.window)
			w.verify()
		})
	}
}

func TestAStatusThatIsWrittenForAnotherReasonTakesTheMemoryAlong(t *testing.T) {
	// The scale-down has begun to pend, and its memory is not due yet.
	long := fiveMinutes
	long.window = 10 * time.Minute
	w := newWorld(t, long, 4, loadFrom{0, 2000}, loadFrom{2 * w15, 500})
	w.until(2 * w15)
	w.edit(func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 21 })
	w.until(3 * w15)
	assert.Less(t, w.get("web").Status.Memory.ObservedTime.Sub(w.started), long.window/12)
	w.start()
	w.until(2 * w.window)
	w.verify()
	assert.LessOrEqual(t, w.firstDown(), w15+long.window+long.window/12, "a window after the last high demand, in its resolution")
}

// risesLate tells of a load that rises, with a window of five minutes before it is
// followed.
func risesLate(t *testing.T, loads ...loadFrom) *world {
	t.Helper()
	r := fiveMinutes
	r.upWindow = r.window
	return newWorld(t, r, 4, loads...)
}

func (w *world) firstUp() time.Duration {
	w.Helper()
	require.NotEmpty(w, w.writes, "nothing was scaled up")
	require.Greater(w, w.writes[0].to, w.writes[0].from)
	return w.writes[0].at.Sub(w.started)
}

func TestAShortDipBeforeAKillIsNotForgotten(t *testing.T) {
	// The window of the rise would be over at 345 s. The memory is stored at every other
	// poll meanwhile, and once it is when the dip is seen.
	for name, tc := range map[string]struct {
		dip   float64
		until int32 // what the dip allows
	}{
		"down to the count, which ends what was pending": {400, 4},
		"to less, which is pending all the same":         {800, 8},
	} {
		for _, dips := range []time.Duration{300 * time.Second, 315 * time.Second} {
			t.Run(fmt.Sprintf("%s, at %s", name, dips), func(t *testing.T) {
				w := risesLate(t, loadFrom{0, 400}, loadFrom{time.Minute, 2000}, loadFrom{dips, tc.dip}, loadFrom{dips + w15, 2000})
				w.until(dips + w15)
				w.start()
				w.until(dips + w.window)
				assert.Equal(t, tc.until, w.replicas(), "%v", w.writes)
				w.reaches(20, dips+2*w15+w.window+w.window/12)
				w.verify()
			})
		}
	}
}

func TestARestartEveryMinute_ScalesUpAllTheSame(t *testing.T) {
	for _, rises := range []time.Duration{60 * time.Second, 90 * time.Second, 105 * time.Second} {
		t.Run(fmt.Sprintf("the load rises at %s", rises), func(t *testing.T) {
			w := risesLate(t, loadFrom{0, 400}, loadFrom{rises, 2000})
			w.restartsEvery(time.Minute, rises+2*w.window)
			w.verify()
			assert.LessOrEqual(t, w.firstUp(), rises+w.window+2*w.window/12+time.Minute,
				"the window, its resolution, the wait for the first write, and a restart")
		})
	}
}

// w15 is a poll of the stories.
const w15 = 15 * time.Second

func TestARestartWritesNothingWhereNothingHasChanged(t *testing.T) {
	for name, load := range map[string]float64{"steady": 2000, "a scale-down pends": 500} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fiveMinutes, 4, loadFrom{0, 2000}, loadFrom{time.Minute, load})
			w.until(105 * time.Second) // a poll after the second write of what pends
			before := w.get("web").ResourceVersion
			for range 3 {
				w.start()
				_, err := w.evaluate(-1, "")
				require.NoError(t, err)
			}
			assert.Equal(t, before, w.get("web").ResourceVersion)
		})
	}
}

func TestAStatusFailsAfterTheScaleWrite_HoweverItFailsTheWriteIsCountedOnce(t *testing.T) {
	for _, what := range []fault{refused, conflicting, lost, killed} {
		t.Run(string(what), func(t *testing.T) {
			w := newWorld(t, byFour, 8, loadFrom{0, 1200}, loadFrom{2 * w15, 2000})
			w.until(2 * w15)
			w.strike(w.callOf(t, "patch status"), what)
			w.until(90 * time.Second)
			w.verify()
			assert.Equal(t, int32(20), w.replicas(), "%v", w.writes)
			a := w.get("web")
			assert.Equal(t, int32(20), *a.Status.AppliedReplicas)
			var added int32
			for _, up := range a.Status.Memory.RecentUps {
				added += up.Replicas
			}
			assert.Equal(t, int32(12), added, "each write counts against the rate, and none twice")
		})
	}
}

// callOf is the number of the next evaluation's call with that name.
func (w *world) callOf(t *testing.T, name string) int {
	t.Helper()
	n := slices.IndexFunc(w.nextCalls(t), func(c call) bool { return strings.HasPrefix(c.name, name) })
	require.GreaterOrEqual(t, n, 0, "no call %q", name)
	return n
}

// nextCalls are those of the next evaluation: a twin of this world makes it.
func (w *world) nextCalls(t *testing.T) []call {
	t.Helper()
	twin := newWorld(t, w.rules, w.writes[0].from, w.loads...)
	twin.until(w.elapsed())
	_, err := twin.evaluate(-1, "")
	require.NoError(t, err)
	return twin.faults.calls
}

func TestAReplacedDeploymentInheritsNothingOfTheOldOne(t *testing.T) {
	w := newWorld(t, fiveMinutes, 4, loadFrom{0, 2000}, loadFrom{time.Minute, 500})
	w.until(2 * time.Minute)
	require.Equal(t, int32(20), w.replicas())
	d := builders.Deployment(w.namespace, "web", 20)
	require.NoError(t, w.client.Delete(w.ctx, d))
	require.NoError(t, w.client.Create(w.ctx, d))
	replaced := w.elapsed()
	w.start() // also not by way of the status

	w.until(replaced + 2*w.window)

	assert.GreaterOrEqual(t, w.firstDown(), replaced+w.window, "its window begins with it: %v", w.writes)
	a := w.get("web")
	require.NotNil(t, a.Status.Memory)
	assert.Equal(t, d.UID, a.Status.Memory.TargetUID)
	assert.Empty(t, a.Status.Memory.RecentUps, "what was added to the old one")
}
