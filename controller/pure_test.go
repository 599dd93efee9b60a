package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func number(n int32) *int32 { return &n }

// evaluationAt gives an evaluation whose status was written age ago.
func evaluationAt(age time.Duration) *evaluation {
	a := builders.MakeAutoScaler("production", "web").Obj()
	a.Status = v1alpha1.AutoScalerStatus{
		RecommendedReplicas: number(9), DesiredReplicas: number(9), TargetReplicas: number(9),
		LastDecision: &v1alpha1.DecisionTrace{Time: metav1.NewTime(noon.Add(-age)), Current: 9, Result: 9},
	}
	return &evaluation{now: noon, before: a, autoscaler: a.DeepCopy()}
}

func TestAStatusIsWrittenWhenItSaysSomethingNew(t *testing.T) {
	for name, tc := range map[string]struct {
		age    time.Duration
		change func(s *v1alpha1.AutoScalerStatus)
		want   bool
	}{
		"nothing changed": {time.Hour, func(*v1alpha1.AutoScalerStatus) {}, false},
		"the time of the decision alone": {time.Hour, func(s *v1alpha1.AutoScalerStatus) {
			s.LastDecision.Time = metav1.NewTime(noon)
		}, false},
		"a wavering recommendation, just written": {30 * time.Second, func(s *v1alpha1.AutoScalerStatus) {
			s.RecommendedReplicas = number(8)
			s.LastDecision.Time = metav1.NewTime(noon)
		}, false},
		"a wavering recommendation, wrong for a while": {time.Minute, func(s *v1alpha1.AutoScalerStatus) {
			s.RecommendedReplicas = number(8)
			s.LastDecision.Time = metav1.NewTime(noon)
		}, true},
		"another count": {time.Second, func(s *v1alpha1.AutoScalerStatus) { s.TargetReplicas = number(8) }, true},
		"another aim that nothing was written for": {time.Second, func(s *v1alpha1.AutoScalerStatus) { s.DesiredReplicas = number(8) }, false},
		"other schedules in force":                 {time.Second, func(s *v1alpha1.AutoScalerStatus) { s.LastDecision.Schedules = []string{"night"} }, true},
		"a condition": {time.Second, func(s *v1alpha1.AutoScalerStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Ready"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(tc.age)
			tc.change(&e.autoscaler.Status)
			assert.Equal(t, tc.want, e.worthWriting())
		})
	}
}

func TestMemoryIsStoredAboutTwelveTimesPerWindowAndOnlyWhileAScaleDownIsPending(t *testing.T) {
	pending := func(last time.Duration, change func(e *evaluation)) bool {
		e := evaluationAt(time.Minute)
		e.record.memory = scaling.Memory{Target: "d", Observed: noon.UnixMicro()}
		e.target.uid = "d"
		e.decision.PendingDown = true
		e.holding = holdingOf("d")
		e.policy = scaling.Policy{PollInterval: 15 * time.Second, Metrics: []scaling.Metric{{Behavior: scaling.Behavior{DownStabilization: 5 * time.Minute}}}}
		stored := &v1alpha1.DecisionMemory{TargetUID: "d", ObservedTime: metav1.NewMicroTime(noon.Add(-last))}
		change(e)
		return e.scalesOrWaits(stored)
	}
	as := func(*evaluation) {}
	assert.False(t, pending(24*time.Second, as))
	assert.True(t, pending(25*time.Second, as), "300 s / 12")
	assert.False(t, pending(time.Hour, func(e *evaluation) { e.decision.PendingDown = false }), "steady")
	assert.False(t, pending(time.Hour, func(e *evaluation) { e.record.busy = e.now.Add(-24 * time.Second) }), "it has just begun")
	assert.True(t, pending(time.Hour, func(e *evaluation) { e.record.busy = e.now.Add(-25 * time.Second) }))
	assert.False(t, pending(time.Hour, func(e *evaluation) { e.holding = nil }), "not ours to scale")
	assert.False(t, pending(time.Hour, func(e *evaluation) { e.paused = true }), "a pause may last for ever")
	assert.False(t, pending(time.Hour, func(e *evaluation) { e.decision.Rule = scaling.RuleFrozen }), "a freeze may last for days")
	assert.True(t, pending(0, func(e *evaluation) {
		e.decision.Rule, e.record.memory.AllInvalidSince = scaling.RuleFrozen, 1
	}), "the fallback's time begins all the same")
	assert.True(t, pending(0, func(e *evaluation) { e.record.memory.Target = "new" }), "another Deployment")
	held := func(e *evaluation) { e.decision.PendingDown, e.decision.PendingUp = false, true }
	assert.True(t, pending(15*time.Second, held), "a scale-up that is held has no window here, but a poll")
	assert.False(t, pending(time.Hour, func(e *evaluation) { held(e); e.record.still = e.now.Add(-time.Second) }), "it has just begun, too")
	assert.True(t, pending(0, func(e *evaluation) { e.record.memory.AllInvalidSince = 1 }), "the fallback's time begins")
	assert.True(t, pending(0, func(e *evaluation) { e.autoscaler.Status.Shadow = &v1alpha1.Shadow{} }), "a dry run begins")
	assert.False(t, pending(0, func(e *evaluation) { e.holding, e.record.shadow = nil, &count{} }), "a dry run is no reason by itself")
	assert.True(t, pending(time.Minute, func(e *evaluation) { e.holding, e.record.shadow = nil, &count{} }), "but its window is one")
	assert.True(t, pending(0, func(e *evaluation) { e.record.untold = &scaleEvent{} }))
}

// A window of five minutes is stored every 25 s.
func TestADemandBeyondWhatTheStoredWindowKnowsOfLateIsStoredAtOnce(t *testing.T) {
	type demanded struct {
		ago      time.Duration
		replicas int32
	}
	history := func(demands []demanded) scaling.History {
		h := scaling.History{Since: noon.Add(-time.Hour).UnixMicro()}
		for i, d := range demands {
			h.At[i], h.Replicas[i] = noon.Add(-d.ago).UnixMicro(), d.replicas
		}
		return h
	}
	fallen, risen := decided(10, 3), decided(2, 3)
	for name, tc := range map[string]struct {
		was         *v1alpha1.DecisionTrace
		stored, now []demanded
		peak, dip   bool // it is stored while a scale-down, or a scale-up, is pending
	}{
		"a peak":                  {fallen, []demanded{{15 * time.Second, 3}}, []demanded{{0, 9}}, true, false},
		"a dip":                   {risen, []demanded{{15 * time.Second, 9}}, []demanded{{0, 3}}, false, true},
		"the same again":          {fallen, []demanded{{15 * time.Second, 9}}, []demanded{{0, 9}}, false, false},
		"a lower peak than once":  {fallen, []demanded{{4 * time.Minute, 9}, {15 * time.Second, 3}}, []demanded{{4 * time.Minute, 9}, {0, 4}}, true, false},
		"a smaller dip than once": {risen, []demanded{{4 * time.Minute, 3}, {15 * time.Second, 9}}, []demanded{{4 * time.Minute, 3}, {0, 8}}, false, true},
		"less than of late":       {fallen, []demanded{{15 * time.Second, 9}}, []demanded{{15 * time.Second, 9}, {0, 3}}, false, false},
		"more than of late":       {risen, []demanded{{15 * time.Second, 3}}, []demanded{{15 * time.Second, 3}, {0, 9}}, false, false},
		"a restart would not go on from what is stored": {decided(3, 3), []demanded{{15 * time.Second, 3}}, []demanded{{0, 9}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			behavior := scaling.Behavior{DownStabilization: 5 * time.Minute, UpStabilization: 5 * time.Minute}
			e := evaluationAt(time.Minute)
			e.policy = scaling.Policy{Metrics: []scaling.Metric{{Behavior: behavior}}}
			e.before.Status.LastDecision = tc.was
			stored := scaling.Memory{Target: "d"}
			stored.Windows[0] = scaling.Window{Key: 1, Down: history(tc.stored), Up: history(tc.stored)}
			e.record.memory.Windows[0] = scaling.Window{Key: 1, Down: history(tc.now), Up: history(tc.now)}
			e.decision.PendingDown = true
			assert.Equal(t, tc.peak, e.outgrows(spec.MemoryStatus(&stored, 1)))
			e.decision.PendingDown, e.decision.PendingUp = false, true
			assert.Equal(t, tc.dip, e.outgrows(spec.MemoryStatus(&stored, 1)))
		})
	}
}

func TestWhatPassesBeforeAnIntervalIsOverNeedNotBeStored(t *testing.T) {
	for passed, want := range map[time.Duration]bool{
		10 * time.Minute: false, 54 * time.Minute: false, // the window has 5 min, and passes before
		55 * time.Minute: true, 2 * time.Hour: true,
	} {
		e := evaluationAt(time.Minute)
		e.policy = scaling.Policy{Metrics: []scaling.Metric{
			{Behavior: scaling.Behavior{DownStabilization: 5 * time.Minute}}, {Behavior: scaling.Behavior{DownMinInterval: time.Hour}},
		}}
		e.before.Status.LastDecision, e.decision.PendingDown = decided(10, 3), true
		e.record.memory.LastDown = noon.Add(-passed).UnixMicro()
		w := &e.record.memory.Windows[0]
		w.Key, w.Down.Since, w.Down.At[0], w.Down.Replicas[0] = 1, 1, noon.UnixMicro(), 9
		assert.Equal(t, want, e.outgrows(spec.MemoryStatus(&scaling.Memory{Target: "d"}, 1)), passed)
	}
}

func TestAWriteIsRememberedInTheStatusAlsoByAnEvaluationThatEndsEarly(t *testing.T) {
	e := evaluationAt(time.Minute)
	e.record.memory = scaling.Memory{Target: "d", Observed: noon.UnixMicro(), LastDown: noon.UnixMicro()}
	e.record.untold = &scaleEvent{target: "web", from: 9, to: 5}
	e.lookAgain()
	e.checkpoint(&e.autoscaler.Status)
	require.NotNil(t, e.autoscaler.Status.Memory, "the event is told with this status, and then the memory has no reason to be stored")
	assert.Equal(t, noon.UnixMicro(), e.autoscaler.Status.Memory.LastScaleDownTime.UnixMicro())
	assert.Len(t, e.autoscaler.Status.Memory.Windows, len(e.before.Spec.Metrics))
}

// notes keeps what is told in events.
type notes []string

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	*n = append(*n, fmt.Sprintf(note, args...))
}

func TestAnEvaluationThatDecidesNothingEndsNoSchedule(t *testing.T) {
	told := func(change func(s *v1alpha1.AutoScalerStatus)) []string {
		var n notes
		e := evaluationAt(time.Minute)
		e.before.Status.LastDecision.Schedules = []string{"night"}
		change(&e.autoscaler.Status)
		(&Reconciler{Events: &n}).tellOfSchedules(e)
		return n
	}
	assert.Empty(t, told(func(s *v1alpha1.AutoScalerStatus) { s.LastDecision = nil }), "the Deployment is gone")
	assert.Equal(t, []string{"no schedule is in force any more"}, told(func(s *v1alpha1.AutoScalerStatus) { s.LastDecision.Schedules = nil }))
}

func TestAScaleThatWasFoundIsToldOfWithoutARecommendation(t *testing.T) {
	s := scaleEvent{target: "web", from: 2, to: 9}
	assert.Equal(t, "scaled Deployment web from 2 to 9", s.String())
	s.recommended = number(0)
	assert.Equal(t, "scaled Deployment web from 2 to 9 (recommended 0)", s.String())
}

func TestAScaleIsToldOfWithTheRuleThatLimitsIt(t *testing.T) {
	e := evaluationAt(time.Minute)
	e.decision = scaling.Decision{Recommended: 9, Rule: scaling.RuleScaleUpStep, TotalMetrics: 1}
	e.decision.Metrics[0].Validity = scaling.Valid
	told := func() string {
		e.target.key.Name, e.target.replicas = "web", 2
		e.record.scaled(e, 6, "")
		return e.record.untold.String()
	}
	assert.Equal(t, "scaled Deployment web from 2 to 6 (recommended 9, rule ScaleUpStep)", told())
	e.decision.Rule = scaling.RuleNone
	assert.Equal(t, "scaled Deployment web from 2 to 6 (recommended 9)", told())
	e.decision = scaling.Decision{Rule: scaling.RuleFallbackFloor, TotalMetrics: 1}
	assert.Equal(t, "scaled Deployment web from 2 to 6 (rule FallbackFloor)", told())
}

func condition(kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func TestAnEventIsATransition(t *testing.T) {
	metrics, limited := v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionScalingLimited
	for name, tc := range map[string]struct {
		was, now *metav1.Condition
		want     bool
	}{
		"a problem appears":             {nil, condition(metrics, "False", "NoData"), true},
		"a problem lasts":               {condition(metrics, "False", "NoData"), condition(metrics, "False", "NoData"), false},
		"a problem changes":             {condition(metrics, "False", "NoData"), condition(metrics, "False", "Timeout"), true},
		"a problem is mended":           {condition(metrics, "False", "NoData"), condition(metrics, "True", "SamplesValid"), true},
		"all is well at first":          {nil, condition(metrics, "True", "SamplesValid"), false},
		"all stays well":                {condition(metrics, "True", "SamplesValid"), condition(metrics, "True", "SamplesValid"), false},
		"demand exceeds the cap":        {condition(limited, "False", "NotLimited"), condition(limited, "True", v1alpha1.ReasonAtMaxReplicas), true},
		"another limit takes its place": {condition(limited, "True", v1alpha1.ReasonAtMaxReplicas), condition(limited, "True", v1alpha1.ReasonAllMetricsInvalid), false},
		"a step limits":                 {condition(limited, "False", "NotLimited"), condition(limited, "True", v1alpha1.ReasonScaleUpStepLimited), false},
		"who stood by takes over":       {condition(v1alpha1.ConditionBound, "False", v1alpha1.ReasonWaitingForRelease), condition(v1alpha1.ConditionBound, "True", v1alpha1.ReasonClaimHeld), true},
		"who stands by waits on":        {condition(v1alpha1.ConditionBound, "False", v1alpha1.ReasonWaitingForRelease), condition(v1alpha1.ConditionBound, "Unknown", "NotEvaluated"), false},
		"a new question mends nothing":  {condition(metrics, "False", "NoData"), condition(metrics, "Unknown", v1alpha1.ReasonAwaitingSamples), false},
		"the fallback raises the count": {condition(limited, "True", v1alpha1.ReasonAllMetricsInvalid), condition(limited, "True", v1alpha1.ReasonFallbackFloor), true},
		"a dry run was asked for":       {nil, condition(v1alpha1.ConditionBound, "False", v1alpha1.ReasonDryRun), false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, transition(tc.was, tc.now)) })
	}
}

func TestADeploymentWakesForWhatBearsOnADecision(t *testing.T) {
	base := builders.Deployment("production", "web", 3)
	for name, tc := range map[string]struct {
		change func(d *appsv1.Deployment)
		want   bool
	}{
		"a new image":        {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "new" }, false},
		"a pod became ready": {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, false},
		"another count":      {func(d *appsv1.Deployment) { d.Spec.Replicas = number(4) }, true},
		"no count":           {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, true},
		"going":              {func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"replaced":           {func(d *appsv1.Deployment) { d.UID = "new" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			next := base.DeepCopy()
			tc.change(next)
			assert.Equal(t, tc.want, countChanged.Update(event.UpdateEvent{ObjectOld: base, ObjectNew: next}))
		})
	}
}

func TestAnHPAWakesWhenItsTargetChangesAndNotForItsStatus(t *testing.T) {
	was := builders.HPA("production", "old", "web")
	status := was.DeepCopy()
	status.Status.CurrentReplicas = 7
	moved := was.DeepCopy()
	moved.Spec.ScaleTargetRef.Name = "api"
	changed := func(now *autoscalingv2.HorizontalPodAutoscaler) bool {
		return retargeted.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: now})
	}
	assert.False(t, changed(status))
	assert.True(t, changed(moved))
}

func TestABindingFreedWithoutARecordStillBelongsToItsLastOwner(t *testing.T) {
	b := &v1alpha1.ScaleBinding{}
	b.Spec.Epoch = 3
	b.Status = v1alpha1.ScaleBindingStatus{Epoch: 2, Transitions: []v1alpha1.BindingTransition{{Owner: "web"}}}
	assert.Equal(t, []string{"web"}, ownerOf(client.Object(b)))
	b.Status.Epoch = 3
	assert.Empty(t, ownerOf(client.Object(b)))
}

func holdingOf(uid types.UID) *binding.Holding { return &binding.Holding{TargetUID: uid} }
