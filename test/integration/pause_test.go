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
	"example.com/platform/autoscale-operator/test/builders"
)

// pause has the AutoScaler "web" paused for a time.
func (h *harness) pause(d time.Duration) {
	h.Helper()
	until := metav1.NewTime(h.clock.Now().Add(d).Truncate(time.Second))
	h.edit(func(a *v1alpha1.AutoScaler) {
		a.Spec.Paused, a.Spec.PausedUntil, a.Spec.PauseReason = true, &until, "migration, ask Ada"
	})
}

func TestAPauseEndsByItself(t *testing.T) {
	h := bound(t)
	h.pause(time.Minute)
	a := h.poll()
	message := h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	assert.Contains(t, message, "until "+a.Spec.PausedUntil.UTC().Format(time.RFC3339))
	assert.Contains(t, message, "migration, ask Ada")
	assert.Equal(t, v1alpha1.GuardOpen, h.binding().Spec.Guard)
	assert.Len(t, only(h.events.take(), v1alpha1.ReasonPaused), 1)
	h.scaleByHand(5)
	h.metrics.Value(900)

	h.advance(50 * time.Second)
	result, err := h.reconcile("web")
	require.NoError(t, err)
	require.Equal(t, int32(5), h.replicas())
	assert.LessOrEqual(t, result.RequeueAfter, 10*time.Second, "no poll is waited for")
	assert.Empty(t, h.events.take(), "once is enough")

	h.advance(result.RequeueAfter)
	a = h.poll()

	assert.Equal(t, int32(9), h.replicas())
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
	assert.Equal(t, v1alpha1.GuardClosed, h.binding().Spec.Guard)
	assert.Nil(t, a.Status.Contention, "who scaled in the pause might")
	assert.Equal(t, []string{"Normal Resumed the pause is over"}, only(h.events.take(), "Resumed"))
}

func TestAPauseThatPassedWhileTheOperatorWasDownStillAllowedPeopleToScale(t *testing.T) {
	h := bound(t)
	h.pause(30 * time.Second)
	h.scaleByHand(5)
	h.advance(time.Minute)
	h.restart()
	h.metrics.Value(900)

	a := h.poll()

	assert.Nil(t, a.Status.Contention)
	assert.Equal(t, int32(9), h.replicas())
}

func TestAPauseIsNotHiddenByAnHPAAndItsEndWarnsOfThat(t *testing.T) {
	h := bound(t)
	h.pause(time.Minute)
	h.poll()
	h.create(builders.HPA(h.namespace, "meanwhile", "web"))
	h.advance(15 * time.Second)
	a := h.poll()
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonConflictingHPA)
	h.events.take()

	h.advance(time.Minute)
	h.poll()

	events := only(h.events.take(), "Resumed")
	require.Len(t, events, 1)
	assert.Contains(t, events[0], "Warning Resumed the pause is over, but nothing is written")
	assert.Contains(t, events[0], "meanwhile")
	assert.Zero(t, h.scaleWrites.Load())
}

func TestWhoStoodByIsToldByAnEventThatItHasTakenOver(t *testing.T) {
	h := bound(t)
	h.second("other", v1alpha1.ClaimWait)
	message := h.requireCondition(h.pollNamed("other"), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)
	assert.Contains(t, message, `held by AutoScaler "web"`)
	assert.NotContains(t, message, "claimPolicy", "it waits already")
	h.delete("web")
	h.events.take()

	h.advance(time.Second)
	h.pollNamed("other")

	assert.Len(t, only(h.events.take(), v1alpha1.ReasonClaimHeld), 1)
}

func TestAnotherHolderIsNamedAtOnce(t *testing.T) {
	h := bound(t)
	for _, name := range []string{"b", "c"} {
		h.second(name, v1alpha1.ClaimWait)
		h.pollNamed(name)
	}
	h.delete("web")
	// Created within one second they stand in the line by their UIDs: one of them takes
	// over, also if the other was evaluated first.
	h.pollNamed("b")
	h.pollNamed("c")
	holder, waiter := "b", "c"
	if h.binding().Spec.OwnerRef.Name == "c" {
		holder, waiter = "c", "b"
	}

	message := h.requireCondition(h.pollNamed(waiter), v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonWaitingForRelease)

	assert.Contains(t, message, fmt.Sprintf("held by AutoScaler %q", holder))
}
