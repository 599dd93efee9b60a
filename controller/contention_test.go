package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/builders"
)

const quarter = 15 * time.Second

func TestTheBackOffDoublesWithEachChangeUpToItsLongest(t *testing.T) {
	for name, tc := range map[string]struct {
		changes int32
		poll    time.Duration
		want    time.Duration
	}{
		"the first is two polls":                       {1, quarter, 30 * time.Second},
		"the second is twice that":                     {2, quarter, time.Minute},
		"the fifth":                                    {5, quarter, 8 * time.Minute},
		"the sixth would be 16 min":                    {6, quarter, maxBackOff},
		"a number that would overflow":                 {1 << 30, quarter, maxBackOff},
		"a short poll starts shorter":                  {1, 5 * time.Second, 10 * time.Second},
		"a long poll starts no later than a usual one": {1, time.Hour, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, backOff(tc.changes, tc.poll)) })
	}
}

// seen is a change from 8 to 1 by kubectl at noon, against an AutoScaler in charge.
func seen() *sighting {
	return &sighting{now: noon, poll: quarter, baseline: number(8), current: 1, setBy: "kubectl"}
}

func contentionOf(changes int32, retry time.Time) *v1alpha1.Contention {
	return &v1alpha1.Contention{Manager: "helm", From: 9, To: 2, Changes: changes, Time: metav1.NewTime(noon.Add(-time.Hour)), RetryTime: metav1.NewTime(retry)}
}

func TestAForeignChangeIsContention(t *testing.T) {
	got := nextContention(nil, seen())

	assert.Equal(t, &v1alpha1.Contention{
		Manager: "kubectl", From: 8, To: 1, Changes: 1,
		Time: metav1.NewTime(noon), RetryTime: metav1.NewTime(noon.Add(30 * time.Second)),
	}, got)
}

func TestWhatIsNoContention(t *testing.T) {
	for name, change := range map[string]func(s *sighting){
		"the count is as it was":              func(s *sighting) { s.current = 8 },
		"there is nothing to compare with":    func(s *sighting) { s.baseline = nil },
		"nothing would be written anyway":     func(s *sighting) { s.held = true },
		"suspended by a person, so held at 0": func(s *sighting) { s.current, s.held = 0, true },
	} {
		t.Run(name, func(t *testing.T) {
			s := seen()
			change(s)
			assert.Nil(t, nextContention(nil, s))
		})
	}
}

func TestAContentionGoesOnOrEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		was     *v1alpha1.Contention
		change  func(s *sighting)
		changes int32 // 0: it ended
		retry   time.Time
	}{
		"the writer undoes our next write: longer": {
			contentionOf(2, noon.Add(-time.Minute)), func(*sighting) {}, 3, noon.Add(2 * time.Minute),
		},
		"a change during the back-off undoes nothing": {
			contentionOf(2, noon.Add(50*time.Second)), func(*sighting) {}, 2, noon.Add(50 * time.Second),
		},
		"nobody has changed anything: the back-off goes on": {
			contentionOf(2, noon.Add(50*time.Second)), func(s *sighting) { s.current = 8 }, 2, noon.Add(50 * time.Second),
		},
		"quiet, but not for long: remembered": {
			contentionOf(2, noon.Add(-14*time.Minute)), func(s *sighting) { s.current = 8 }, 2, noon.Add(-14 * time.Minute),
		},
		"quiet for as long as the longest back-off: forgotten": {
			contentionOf(2, noon.Add(-15*time.Minute)), func(s *sighting) { s.current = 8 }, 0, time.Time{},
		},
		"paused: whoever scales now may": {
			contentionOf(2, noon.Add(-time.Minute)), func(s *sighting) { s.held = true }, 0, time.Time{},
		},
		"set by a clock that ran ahead": {
			contentionOf(2, noon.Add(time.Hour)), func(s *sighting) { s.current = 8 }, 2, noon.Add(time.Minute),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen()
			tc.change(s)
			got := nextContention(tc.was, s)
			if tc.changes == 0 {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, tc.changes, got.Changes)
			assert.True(t, tc.retry.Equal(got.RetryTime.Time), "%s", got.RetryTime)
		})
	}
}

func TestALateChangeIsTheFirstOfItsRow(t *testing.T) {
	got := nextContention(contentionOf(6, noon.Add(-time.Hour)), seen())

	assert.Equal(t, int32(1), got.Changes)
}

// TestAFightIsBounded plays a writer that undoes every write at once or after a
// while, whatever its habits, against an AutoScaler that writes whenever it may.
func TestAFightIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		poll := time.Duration(rapid.IntRange(5, 120).Draw(t, "poll")) * time.Second
		habit := rapid.SliceOfN(rapid.IntRange(0, 600), 1, 8).Draw(t, "seconds until each change")
		const wanted, applied = 8, 1
		var c *v1alpha1.Contention
		current, baseline, writes := int32(wanted), int32(wanted), 0
		next := 0
		undoAt := noon.Add(time.Duration(habit[0]) * time.Second)
		end := noon.Add(6 * time.Hour)
		for now := noon; now.Before(end); now = now.Add(poll) {
			undone := false
			if current == wanted && !now.Before(undoAt) {
				current, undone = applied, true
			}
			c = nextContention(c, &sighting{now: now, poll: poll, baseline: &baseline, current: current, setBy: "helm"})
			if undone {
				require.NotNil(t, c)
				assert.Greater(t, c.RetryTime.Sub(now), time.Duration(0), "a change is never undone at once")
			}
			baseline = current
			if current != wanted && (c == nil || !now.Before(c.RetryTime.Time)) {
				current, baseline = wanted, wanted
				writes++
				next++
				undoAt = now.Add(time.Duration(habit[next%len(habit)]) * time.Second)
			}
		}
		// One that comes back every time meets the longest wait soon: 6 h / 15 min, and
		// the short ones before. To be forgotten in between takes a quarter of an hour,
		// so at worst, with the shortest poll, there are 5 writes in 20 min.
		limit := 6*60/20*5 + 8
		if len(habit) == 1 {
			limit = 24 + 8
		}
		assert.LessOrEqual(t, writes, limit)
	})
}

func TestTheBaselineSaysNothingWhereTheAutoScalerMayHaveBeenOutOfCharge(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		known  bool
	}{
		"in charge all the time":                              {func(*evaluation) {}, true},
		"another Deployment":                                  {func(e *evaluation) { e.target.uid = "new" }, false},
		"one edit of the spec":                                {func(e *evaluation) { e.before.Generation = 4 }, true},
		"two edits of the spec: a pause and its end, perhaps": {func(e *evaluation) { e.before.Generation = 5 }, false},
		"a spec that was refused": {func(e *evaluation) {
			meta.SetStatusCondition(&e.before.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonInvalidSpec})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(time.Minute)
			e.target.uid = "d"
			e.record.baseline = &count{target: "d", replicas: 8}
			e.before.Generation, e.before.Status.ObservedGeneration = 3, 3
			tc.change(e)
			assert.Equal(t, tc.known, e.baseline() != nil)
		})
	}
}

func TestARestartedOperatorKnowsTheBaselineOnlyOfOneThatWasInCharge(t *testing.T) {
	for name, tc := range map[string]struct {
		bound metav1.ConditionStatus
		able  string
		want  bool
	}{
		"able to scale":              {metav1.ConditionTrue, v1alpha1.ReasonScaleReady, true},
		"contended":                  {metav1.ConditionTrue, v1alpha1.ReasonContended, true},
		"a failed write":             {metav1.ConditionTrue, v1alpha1.ReasonScaleFailed, true},
		"paused":                     {metav1.ConditionTrue, v1alpha1.ReasonPaused, false},
		"at 0":                       {metav1.ConditionTrue, v1alpha1.ReasonTargetSuspended, false},
		"not bound":                  {metav1.ConditionFalse, v1alpha1.ReasonNotBound, false},
		"a failure before the claim": {metav1.ConditionUnknown, v1alpha1.ReasonEvaluationFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := builders.MakeAutoScaler("production", "web").UID("a").Obj()
			a.Status = v1alpha1.AutoScalerStatus{
				TargetUID: "d", TargetReplicas: number(8), Contention: contentionOf(3, noon),
				Conditions: []metav1.Condition{
					{Type: v1alpha1.ConditionBound, Status: tc.bound},
					{Type: v1alpha1.ConditionAbleToScale, Reason: tc.able},
				},
			}
			var r records
			rec := r.of(a)
			assert.Equal(t, tc.want, rec.baseline != nil)
			assert.Equal(t, a.Status.Contention, rec.contention, "so that it does not start over")
		})
	}
}

func TestTheCacheIsOutdatedUntilItHasSeenTheLastWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		uid     types.UID
		want    bool
	}{
		"an older version":                {"99", "d", true},
		"the version of the write":        {"100", "d", false},
		"a newer version":                 {"1000", "d", false},
		"another Deployment":              {"99", "new", false},
		"a version that does not compare": {"x", "d", false},
	} {
		t.Run(name, func(t *testing.T) {
			rec := record{version: "100", applied: &count{target: "d", at: noon}}
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: tc.uid, ResourceVersion: tc.version}}
			assert.Equal(t, tc.want, rec.outdated(d))
		})
	}
	assert.False(t, (&record{}).outdated(&appsv1.Deployment{}), "nothing was written")
}

func TestOnlyAScaleWriteOfOursIsOurs(t *testing.T) {
	replicas := metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
	other := metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}},"f:status":{"f:replicas":{}}}`)
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"by our manager, through scale":      {[]metav1.ManagedFieldsEntry{{Manager: FieldManager, Subresource: "scale", FieldsV1: replicas}}, true},
		"by another, through scale":          {[]metav1.ManagedFieldsEntry{{Manager: "kubectl", Subresource: "scale", FieldsV1: replicas}}, false},
		"under our name, not through scale":  {[]metav1.ManagedFieldsEntry{{Manager: FieldManager, FieldsV1: replicas}}, false},
		"by our manager, but not that field": {[]metav1.ManagedFieldsEntry{{Manager: FieldManager, Subresource: "scale", FieldsV1: other}}, false},
		"by nobody":                          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := builders.Deployment("production", "web", 3)
			d.ManagedFields = tc.entries
			assert.Equal(t, tc.want, scaledByUs(d))
		})
	}
}

func TestThePhaseOfAContentionEndsWhenOurWriteHasLasted(t *testing.T) {
	e := evaluationAt(time.Minute)
	e.holding = &binding.Holding{}
	e.record.contention = contentionOf(2, noon.Add(10*time.Second))
	at := func(after time.Duration) (waits, contended bool) {
		e.now = noon.Add(after)
		return e.backsOff(), e.contended()
	}
	for _, tc := range []struct {
		after            time.Duration
		waits, contended bool
		next             time.Duration
	}{
		{0, true, true, 10 * time.Second},
		{10 * time.Second, false, true, time.Minute}, // it writes, and watches
		{69 * time.Second, false, true, time.Second},
		{70 * time.Second, false, false, time.Hour}, // it lasted
	} {
		waits, contended := at(tc.after)
		e.after = time.Hour
		assert.Equal(t, tc.waits, waits, "after %s", tc.after)
		assert.Equal(t, tc.contended, contended, "after %s", tc.after)
		assert.Equal(t, tc.next, e.contentionEnds(e.record.contention), "after %s", tc.after)
	}
}
