//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// The rows of the acceptance table: min 2, max 20, 100 per replica, 2 replicas to
// begin with, steps of 4 up and 1 down.

func accepted(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Steps(4, 1).Window(60).DownInterval(30).Obj())
	return h
}

func TestTotal900IsRecommendedAs9AndReachedByTheStepsOfScaleUp(t *testing.T) {
	h := accepted(t)
	h.metrics.Value(900)

	a := h.poll()
	assert.Equal(t, int32(6), h.replicas(), "2 + 4")
	assert.Equal(t, int32(9), *a.Status.RecommendedReplicas)
	assert.Equal(t, int32(9), *a.Status.DesiredReplicas)
	assert.Equal(t, int32(6), *a.Status.AppliedReplicas)
	assert.Equal(t, int32(6), *a.Status.TargetReplicas)
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonScaleUpStepLimited)
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionTrue, v1alpha1.ReasonClaimHeld)
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)

	h.advance(15 * time.Second)
	a = h.poll()
	assert.Equal(t, int32(9), h.replicas())
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionFalse, v1alpha1.ReasonNotLimited)
	assert.Equal(t, []string{
		"Normal Scaled scaled Deployment web from 2 to 6 (recommended 9, rule ScaleUpStep)",
		"Normal Scaled scaled Deployment web from 6 to 9 (recommended 9)",
	}, only(h.events.take(), "Scaled"))

	h.pollFor(2 * time.Minute)
	assert.Equal(t, int32(2), h.scaleWrites.Load(), "nothing is written once the count is right")
}

func TestTotal10000ExceedsTheMaximumAndIsCappedAt20(t *testing.T) {
	h := accepted(t)
	h.metrics.Value(10000)

	a := h.pollFor(2 * time.Minute)

	assert.Equal(t, int32(20), h.replicas())
	assert.Equal(t, int32(100), *a.Status.RecommendedReplicas, "the raw demand is told, not the cap")
	assert.Equal(t, int32(20), *a.Status.DesiredReplicas)
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonAtMaxReplicas)
	assert.Len(t, only(h.events.take(), v1alpha1.ReasonAtMaxReplicas), 1, "one event on the transition, none after it")
	assert.Equal(t, int32(5), h.scaleWrites.Load(), "6, 10, 14, 18, 20")
}

func TestTotal0WaitsTheWindowAndThenGoesDownStepByStepTo2(t *testing.T) {
	h := accepted(t)
	h.metrics.Value(500)
	h.pollFor(time.Minute)
	require.Equal(t, int32(5), h.replicas())

	h.metrics.Value(0)
	last := h.clock.Now()
	var changes []time.Duration
	for before := h.replicas(); h.replicas() > 2; before = h.replicas() {
		h.advance(15 * time.Second)
		a := h.poll()
		if now := h.replicas(); now != before {
			require.Equal(t, before-1, now, "one step at a time")
			changes = append(changes, h.clock.Now().Sub(last))
		} else {
			require.Equal(t, int32(0), *a.Status.RecommendedReplicas, "no load, below the minimum")
		}
		require.Less(t, h.clock.Now().Sub(last), 10*time.Minute)
	}
	require.Len(t, changes, 3, "4, 3, 2")
	assert.GreaterOrEqual(t, changes[0], 60*time.Second, "the last 500 is within the window until then")
	assert.LessOrEqual(t, changes[0], 90*time.Second)
	assert.Equal(t, []time.Duration{30 * time.Second, 30 * time.Second},
		[]time.Duration{changes[1] - changes[0], changes[2] - changes[1]}, "the minimum interval")

	h.pollFor(time.Minute)
	assert.Equal(t, int32(2), h.replicas(), "never below the minimum")
}

func TestAnswersThatAreNoLoadAreNotTakenForZeroLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		fail   func(h *harness)
		reason string
	}{
		"empty vector":    {func(h *harness) { h.metrics.Empty() }, "NoData"},
		"several series":  {func(h *harness) { h.metrics.Series(2) }, "MultipleSeries"},
		"NaN":             {func(h *harness) { h.metrics.Text("NaN") }, "InvalidValue"},
		"positive Inf":    {func(h *harness) { h.metrics.Text("+Inf") }, "InvalidValue"},
		"negative Inf":    {func(h *harness) { h.metrics.Text("-Inf") }, "InvalidValue"},
		"negative":        {func(h *harness) { h.metrics.Value(-1) }, "InvalidValue"},
		"stale":           {func(h *harness) { h.metrics.Stale(time.Minute) }, "StaleSample"},
		"no answer":       {func(h *harness) { h.metrics.Hang() }, "Timeout"},
		"forbidden":       {func(h *harness) { h.metrics.Status(403) }, "Unauthorized"},
		"bad request":     {func(h *harness) { h.metrics.Status(400) }, "QueryRejected"},
		"server error":    {func(h *harness) { h.metrics.Status(500) }, "ServerError"},
		"not JSON":        {func(h *harness) { h.metrics.Raw("<html>sign in</html>", 200, "text/html") }, "BadResponse"},
		"source is down":  {func(h *harness) { h.metrics.Close() }, "Unreachable"},
		"profile deleted": {func(h *harness) { h.deleteProfile("total") }, "ProfileNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			h.deployment(8)
			h.create(h.autoscaler().Obj()) // no window, no step: a zero would act at once
			h.metrics.Value(800)
			h.poll()
			tc.fail(h)

			h.advance(15 * time.Second)
			a := h.poll()

			assert.Equal(t, int32(8), h.replicas())
			assert.Zero(t, h.scaleWrites.Load())
			message := h.requireCondition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, tc.reason)
			assert.Contains(t, message, `metric "load"`)
			h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, tc.reason)
			h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonAllMetricsInvalid)
			assert.Nil(t, a.Status.RecommendedReplicas, "nothing is recommended from nothing")
			assert.Len(t, only(h.events.take(), tc.reason), 1)

			h.advance(15 * time.Second)
			writes := h.statusWrites.Load()
			h.poll()
			assert.Equal(t, writes, h.statusWrites.Load(), "a lasting failure is written once")
		})
	}
}

func twoMetrics(t *testing.T) (h *harness, second string) {
	t.Helper()
	h = newHarness(t)
	h.deployment(8)
	second = h.profile("second")
	h.create(h.autoscaler().Steps(4, 1).Metric("queue", second, "100").Obj())
	return h, second
}

func TestOneMetricFailsAndTheOtherRecommendsMoreIsAControlledScaleUp(t *testing.T) {
	h, second := twoMetrics(t)
	h.metrics.Value(1200)
	h.metrics.On(second).Status(500)

	a := h.poll()

	assert.Equal(t, int32(12), h.replicas())
	message := h.requireCondition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, "ServerError")
	assert.Contains(t, message, `metric "queue"`)
	assert.NotContains(t, message, `metric "load"`)
	h.requireCondition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
}

func TestFC8_OneMetricFailsAndTheOtherRecommendsFewerHolds(t *testing.T) {
	h, second := twoMetrics(t)
	h.metrics.Value(200)
	h.metrics.On(second).Status(500)

	a := h.pollFor(2 * time.Minute)

	assert.Equal(t, int32(8), h.replicas())
	assert.Zero(t, h.scaleWrites.Load())
	h.requireCondition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonSomeMetricsInvalid)

	h.metrics.Status(502)
	h.advance(15 * time.Second)
	message := h.requireCondition(h.poll(), v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, "ServerError")
	assert.Contains(t, message, `metric "load"`)
	assert.Contains(t, message, `metric "queue"`, "every failing metric is named")
}

func TestFC6_APartialAnswerScalesUpButNotDown(t *testing.T) {
	h := newHarness(t)
	h.deployment(8)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.metrics.Warnings("No StoreAPIs matched for this query")

	a := h.poll()
	assert.Equal(t, int32(8), h.replicas())
	h.requireCondition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, "PartialResponse")

	h.metrics.Value(1000)
	h.advance(15 * time.Second)
	h.poll()
	assert.Equal(t, int32(10), h.replicas())
}

func TestADryRunUpdatesTheRecommendationAndWritesNothing(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(builders.HPA(h.namespace, "web", "web")) // a dry run may stand beside it
	h.create(h.autoscaler().DryRun().Obj())
	h.metrics.Value(900)

	a := h.poll()

	assert.Equal(t, int32(9), *a.Status.RecommendedReplicas)
	assert.Equal(t, int32(2), *a.Status.TargetReplicas)
	assert.Nil(t, a.Status.AppliedReplicas)
	assert.Equal(t, int32(2), h.replicas())
	assert.Zero(t, h.scaleWrites.Load())
	h.requireCondition(a, v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonDryRun)
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonDryRun)
	assert.Empty(t, h.bindings(), "a dry run takes no claim")
}

func TestAPausedAutoScalerKeepsItsClaimRecommendsAndDoesNotWrite(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Paused().Obj())
	h.metrics.Value(900)

	a := h.poll()
	assert.Equal(t, int32(9), *a.Status.RecommendedReplicas)
	assert.Equal(t, int32(2), h.replicas())
	assert.Equal(t, a.UID, h.binding().Spec.OwnerUID)
	h.requireCondition(a, v1alpha1.ConditionAbleToScale, metav1.ConditionFalse, v1alpha1.ReasonPaused)

	h.scaleByHand(5)
	h.pollFor(time.Minute)
	assert.Equal(t, int32(5), h.replicas(), "paused, the count is the person's")

	h.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = false })
	h.poll()
	assert.Equal(t, int32(9), h.replicas())
	assert.Equal(t, int32(1), h.scaleWrites.Load())
}

func TestADeploymentRecreatedUnderTheSameNameIsConfirmedAgainAndItsWindowStartsAnew(t *testing.T) {
	h := newHarness(t)
	first := h.deployment(8)
	h.create(h.autoscaler().Window(60).Obj())
	h.metrics.Value(200)
	h.pollFor(45 * time.Second) // most of the window has passed
	require.Equal(t, first.UID, h.binding().Spec.TargetUID)
	epoch := h.binding().Spec.Epoch

	require.NoError(t, h.client.Delete(h.ctx, first))
	h.advance(15 * time.Second)
	h.requireCondition(h.poll(), v1alpha1.ConditionTargetAvailable, metav1.ConditionFalse, v1alpha1.ReasonTargetNotFound)

	second := h.deployment(8)
	begin := h.clock.Now()
	a := h.poll()
	assert.Equal(t, second.UID, a.Status.TargetUID)
	assert.Nil(t, a.Status.AppliedReplicas, "what was written to the old one is not this one's")
	assert.Equal(t, second.UID, h.binding().Spec.TargetUID, "confirmed again")
	assert.Equal(t, epoch, h.binding().Spec.Epoch, "the owner is the same")
	for h.replicas() == 8 {
		h.advance(15 * time.Second)
		h.poll()
		require.Less(t, h.clock.Now().Sub(begin), 5*time.Minute)
	}
	assert.GreaterOrEqual(t, h.clock.Now().Sub(begin), 60*time.Second, "a whole window of the new Deployment")
	assert.Equal(t, int32(2), h.replicas())
}
