//go:build integration

package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// inTwoMinutes is a schedule of two minutes that begins at the whole minute after next,
// and the time until then.
func (h *harness) inTwoMinutes() (v1alpha1.Schedule, time.Duration) {
	now := h.clock.Now().UTC()
	start := now.Truncate(time.Minute).Add(2 * time.Minute)
	return v1alpha1.Schedule{
		Name: "sale", Start: fmt.Sprintf("%d %d * * *", start.Minute(), start.Hour()), DurationSeconds: 120,
	}, start.Sub(now)
}

func TestASchedulesFloorIsThereInTimeAndGoesAfterIt(t *testing.T) {
	h := bound(t)
	s, wait := h.inTwoMinutes()
	s.MinReplicas = new(int32(6))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Schedules = []v1alpha1.Schedule{s} })
	h.poll()
	h.events.take()
	h.advance(wait - 5*time.Second)
	result, err := h.reconcile("web")
	require.NoError(t, err)
	require.Equal(t, int32(2), h.replicas())
	assert.Equal(t, 5*time.Second, result.RequeueAfter, "no poll is waited for")

	h.advance(result.RequeueAfter)
	a := h.poll()

	assert.Equal(t, int32(6), h.replicas())
	assert.Equal(t, []string{"sale"}, a.Status.LastDecision.Schedules)
	assert.Equal(t, int32(6), a.Status.LastDecision.MinReplicas)
	assert.Equal(t, []string{"Normal Scheduled in force by schedule: sale"}, only(h.events.take(), "Scheduled"))

	h.advance(110 * time.Second)
	result, err = h.reconcile("web")
	require.NoError(t, err)
	require.Equal(t, int32(6), h.replicas())
	h.advance(result.RequeueAfter)
	a = h.poll()
	assert.Equal(t, int32(2), h.replicas())
	assert.Empty(t, a.Status.LastDecision.Schedules)
	assert.Equal(t, []string{"Normal Scheduled no schedule is in force any more"}, only(h.events.take(), "Scheduled"))
}

func TestAScheduleInForceIsSaidAlsoWhereTheCountStays(t *testing.T) {
	h := bound(t)
	s, wait := h.inTwoMinutes()
	s.MaxReplicas = new(int32(15))
	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Schedules = []v1alpha1.Schedule{s} })
	h.poll()
	h.advance(wait)

	a := h.poll()

	assert.Equal(t, []string{"sale"}, a.Status.LastDecision.Schedules, "at once, not when something else is written")
	assert.Equal(t, int32(15), a.Status.LastDecision.MaxReplicas)
}

func TestAFreezeHoldsTheCountAndSaysSo(t *testing.T) {
	for freeze, tc := range map[v1alpha1.ScheduleFreeze]struct {
		load float64
		want int32
	}{
		v1alpha1.FreezeAll:       {900, 5},
		v1alpha1.FreezeScaleDown: {200, 5},
	} {
		t.Run(string(freeze), func(t *testing.T) {
			h := bound(t)
			h.metrics.Value(500)
			h.advance(15 * time.Second)
			h.poll()
			s, wait := h.inTwoMinutes()
			s.Freeze = freeze
			h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Schedules = []v1alpha1.Schedule{s} })
			h.advance(wait)
			h.metrics.Value(tc.load)

			a := h.poll()

			assert.Equal(t, tc.want, h.replicas())
			h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonFrozen)
			assert.Equal(t, string(freeze), a.Status.LastDecision.Freeze)
			h.advance(2 * time.Minute)
			h.poll()
			assert.Equal(t, int32(tc.load/100), h.replicas(), "when it is over")
		})
	}
}

func TestAStoredScheduleThatCannotBeReadHoldsUpNoWaiter(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	broken := h.autoscaler().Obj()
	broken.Spec.Schedules = []v1alpha1.Schedule{{Name: "never", Start: "61 * * * *", DurationSeconds: 60, Freeze: v1alpha1.FreezeAll}}
	h.create(broken)
	h.requireCondition(h.poll(), v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec)
	h.second("other", v1alpha1.ClaimWait)
	h.metrics.Value(900)

	h.requireCondition(h.pollNamed("other"), v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	assert.Equal(t, int32(9), h.replicas())
}
