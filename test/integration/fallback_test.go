//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// silenced is a Deployment of 3 whose only metric has just gone, with a floor of 6 after
// a minute of that.
func silenced(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(3)
	a := h.autoscaler().Steps(1, 1).Obj()
	a.Spec.Fallback = &v1alpha1.Fallback{FloorReplicas: 6, AfterSeconds: 60}
	h.create(a)
	h.metrics.Value(300)
	h.poll()
	h.metrics.Empty()
	h.advance(15 * time.Second)
	h.poll()
	h.events.take()
	return h
}

func TestWhenNothingIsKnownForLongTheCountIsRaisedToTheFloorAtOnce(t *testing.T) {
	for name, restart := range map[string]bool{"same process": false, "under restarts": true} {
		t.Run(name, func(t *testing.T) {
			h := silenced(t)
			before := h.statusWrites.Load()
			for range 3 {
				if restart {
					h.restart()
				}
				h.advance(15 * time.Second)
				h.poll()
				require.Equal(t, int32(3), h.replicas())
			}
			assert.LessOrEqual(t, h.statusWrites.Load()-before, int32(1), "the beginning is stored once")
			h.advance(5 * time.Second)
			result, err := h.reconcile("web")
			require.NoError(t, err)
			assert.InDelta(t, 10*time.Second, result.RequeueAfter, float64(time.Millisecond), "no poll is waited for")
			h.advance(result.RequeueAfter)

			a := h.poll()

			assert.Equal(t, int32(6), h.replicas(), "not by steps")
			h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonFallbackFloor)
			assert.Len(t, only(h.events.take(), v1alpha1.ReasonFallbackFloor), 1)
			h.pollFor(time.Minute)
			assert.Equal(t, int32(6), h.replicas())
			assert.Empty(t, h.events.take(), "once is enough")
		})
	}
}

func TestAMetricThatComesBackInTimeEndsTheWayToTheFloor(t *testing.T) {
	h := silenced(t)
	require.NotNil(t, h.get("web").Status.Memory.AllInvalidSince)
	h.advance(30 * time.Second)
	h.metrics.Value(300)
	a := h.poll()
	assert.Nil(t, a.Status.Memory.AllInvalidSince, "so that a restart does not go on counting")
	h.metrics.Empty()
	h.advance(15 * time.Second)
	h.poll()
	h.restart()

	h.pollFor(45 * time.Second)

	assert.Equal(t, int32(3), h.replicas())
}

func TestTheFloorLowersNothing(t *testing.T) {
	h := silenced(t)
	h.scaleByHand(9)
	h.pollFor(2 * time.Minute)
	assert.Equal(t, int32(9), h.replicas())
}

func TestAFreezeHoldsAgainstTheFloor(t *testing.T) {
	h := silenced(t)
	h.edit(func(a *v1alpha1.AutoScaler) {
		a.Spec.Schedules = []v1alpha1.Schedule{{Name: "maintenance", Start: "* * * * *", DurationSeconds: 600, Freeze: v1alpha1.FreezeAll}}
	})
	h.pollFor(2 * time.Minute)
	assert.Equal(t, int32(3), h.replicas())
	h.requireCondition(h.get("web"), v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonFrozen)
}
