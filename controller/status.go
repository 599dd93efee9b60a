package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

const (
	// refreshPolls is at how many polls a status is written of which only what
	// wavers with the load has changed: it must not become a write at every poll.
	refreshPolls = 4
	// checkpointsPerWindow is how often a pending scale-down's memory is written.
	checkpointsPerWindow = 12
)

func (e *evaluation) setTrue(condition, reason, message string) {
	e.set(condition, metav1.ConditionTrue, reason, message)
}

func (e *evaluation) setFalse(condition, reason, message string) {
	e.set(condition, metav1.ConditionFalse, reason, message)
}

func (e *evaluation) set(condition string, status metav1.ConditionStatus, reason, message string) {
	e.looked = append(e.looked, condition)
	meta.SetStatusCondition(&e.autoscaler.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: shortened(message, maxMessage),
		ObservedGeneration: e.autoscaler.Generation, LastTransitionTime: metav1.NewTime(e.now),
	})
}

// notEvaluated takes back what an evaluation that ends early did not look at, so
// that nothing old stands as if it were so.
func (e *evaluation) notEvaluated() {
	for _, c := range []string{
		v1alpha1.ConditionTargetAvailable, v1alpha1.ConditionBound,
		v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionScalingLimited,
	} {
		if !slices.Contains(e.looked, c) {
			e.set(c, metav1.ConditionUnknown, v1alpha1.ReasonNotEvaluated, "not looked at; see the Ready condition")
		}
	}
}

// nothingDecided takes the numbers of the last decision back.
func (e *evaluation) nothingDecided() {
	s := &e.autoscaler.Status
	s.RecommendedReplicas, s.DesiredReplicas, s.LastDecision = nil, nil, nil
}

// maxMessage bounds a condition's message, well below what the API server takes:
// a hostile value must not make the status that reports it unwritable.
const maxMessage = 4096

// shortened cuts a text to a number of bytes, between characters.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// condition gives a condition, or an empty one where it is not set.
func (e *evaluation) condition(name string) metav1.Condition {
	if c := meta.FindStatusCondition(e.autoscaler.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (e *evaluation) ableToScale() {
	e.setTrue(v1alpha1.ConditionAbleToScale, v1alpha1.ReasonScaleReady, "the replica count can be written")
	if !usable(&e.decision) {
		message := "no metric is usable; the replica count is held"
		switch f := &e.policy.Fallback; {
		case f.FloorReplicas == 0:
		case e.now.Before(time.UnixMicro(e.record.memory.AllInvalidSince).Add(f.After)):
			message = "no metric is usable; the replica count is held, and raised to fallback.floorReplicas after fallback.afterSeconds"
		default:
			message = "no metric has been usable for fallback.afterSeconds; the replica count is held, at no less than fallback.floorReplicas"
		}
		e.setFalse(v1alpha1.ConditionReady, e.condition(v1alpha1.ConditionMetricsAvailable).Reason, message)
		return
	}
	e.setTrue(v1alpha1.ConditionReady, v1alpha1.ReasonManaging, "the replica count follows the metrics")
}

// describe puts the decision into the status.
func (e *evaluation) describe(o *scaling.Observation) {
	s, d := &e.autoscaler.Status, &e.decision
	e.describeSamples()
	recommended, desired := d.Recommended, d.Desired
	s.RecommendedReplicas, s.DesiredReplicas = &recommended, &desired
	if !usable(d) {
		s.RecommendedReplicas = nil
	}
	s.LastDecision = spec.Trace(&e.policy, e.schedule, o, d)
	limit := limits[d.Rule]
	if limit.reason == "" {
		e.setFalse(v1alpha1.ConditionScalingLimited, v1alpha1.ReasonNotLimited, "no rule keeps the decision from being the recommendation")
		return
	}
	e.setTrue(v1alpha1.ConditionScalingLimited, limit.reason, limit.message)
}

// usable says whether at least one metric said something.
func usable(d *scaling.Decision) bool {
	for i := range d.TotalMetrics {
		if d.Metrics[i].Validity != scaling.Invalid {
			return true
		}
	}
	return false
}

// limits are the conditions of the rules that limit a decision.
var limits = map[scaling.Rule]struct{ reason, message string }{
	scaling.RuleMinReplicas:            {v1alpha1.ReasonAtMinReplicas, "the demand is below minReplicas, the spec's or that of a schedule in force"},
	scaling.RuleMaxReplicas:            {v1alpha1.ReasonAtMaxReplicas, "the demand is above maxReplicas, the spec's or that of a schedule in force: the service lacks capacity"},
	scaling.RuleScaleUpStep:            {v1alpha1.ReasonScaleUpStepLimited, "scaleUpMaxStep limits the move of one poll interval"},
	scaling.RuleScaleDownStep:          {v1alpha1.ReasonScaleDownStepLimited, "scaleDownMaxStep limits the move of one poll interval"},
	scaling.RuleScaleDownStabilization: {v1alpha1.ReasonScaleDownStabilized, "the demand was higher within the scale-down window, or the window is not complete yet"},
	scaling.RuleScaleDownMinInterval:   {v1alpha1.ReasonScaleDownInterval, "scaleDownMinIntervalSeconds has not passed since the last scale-down"},
	scaling.RuleSomeMetricsInvalid:     {v1alpha1.ReasonSomeMetricsInvalid, "a metric is not valid, so nothing is scaled down"},
	scaling.RuleAllMetricsInvalid:      {v1alpha1.ReasonAllMetricsInvalid, "no metric is usable; the replica count is held"},
	scaling.RuleOutOfBounds:            {v1alpha1.ReasonOutOfBounds, "the replica count is above maxReplicas and held there, because not all metrics are valid"},
	scaling.RuleBelowMinimum:           {v1alpha1.ReasonBelowMinimum, "no metric is usable, and the replica count is below minReplicas, the spec's or that of a schedule in force: it is raised to that"},
	scaling.RuleSuspended:              {v1alpha1.ReasonTargetSuspended, "the Deployment was scaled to 0"},
	scaling.RuleTolerance:              {v1alpha1.ReasonWithinTolerance, "the demand is near enough to the replica count: toleranceUp and toleranceDown"},
	scaling.RuleScaleUpStabilization:   {v1alpha1.ReasonScaleUpStabilized, "the demand was lower within the scale-up window, or that window is not complete yet"},
	scaling.RuleScaleUpRate:            {v1alpha1.ReasonScaleUpRateLimited, "scaleUpRate limits what is added within its period"},
	scaling.RuleFallbackFloor:          {v1alpha1.ReasonFallbackFloor, "no metric has been usable for fallback.afterSeconds: the replica count is raised to fallback.floorReplicas"},
	scaling.RuleFrozen:                 {v1alpha1.ReasonFrozen, "a schedule's freeze forbids the move"},
	scaling.RuleInvalidPolicy:          {v1alpha1.ReasonInvalidSpec, "the policy cannot be evaluated"},
}

// writeStatus patches the status if it says something new, and then tells of it
// in events. The patch names the resourceVersion it was computed from.
func (r *Reconciler) writeStatus(ctx context.Context, e *evaluation) error {
	next := &e.autoscaler.Status
	e.showWrite(next)
	e.checkpoint(next)
	if !e.worthWriting() {
		return nil
	}
	if e.decision.PendingDown || e.decision.PendingUp {
		e.keepMemory(next) // so that a stored decision that pends is as old as the memory
	}
	patch := client.MergeFromWithOptions(e.before, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, e.autoscaler.DeepCopy(), patch, client.FieldOwner(FieldManager)); err != nil {
		// The API server refuses every write to an object that it cannot evaluate the
		// schema's rules on; events are then the only way to say what is wrong.
		if !apierrors.IsInvalid(err) || e.autoscaler.DecodeError == "" {
			return client.IgnoreNotFound(fmt.Errorf("writing the status of AutoScaler %s: %w", nameOf(e.autoscaler), err))
		}
	}
	r.tell(e)
	e.record.untold = nil
	r.records.put(e.autoscaler, e.record)
	return nil
}

// showWrite puts the last write of this AutoScaler into the status.
func (e *evaluation) showWrite(s *v1alpha1.AutoScalerStatus) {
	e.record.show(s, e.target.uid)
	if e.scaled {
		s.TargetReplicas = s.AppliedReplicas
	}
}

// checkpoint puts the memory into the status with a scale event, also when the
// status right after the scale was lost, about twelve times per window while a
// scale-down or a held scale-up is pending, and when the time without any usable metric
// begins or ends; else the status keeps the memory that it has.
func (e *evaluation) checkpoint(s *v1alpha1.AutoScalerStatus) {
	if e.scalesOrWaits(s.Memory) {
		e.keepMemory(s)
	}
}

func (e *evaluation) keepMemory(s *v1alpha1.AutoScalerStatus) {
	// Of the spec's metrics: an evaluation that ends early has no policy yet.
	if n := min(len(e.before.Spec.Metrics), scaling.MaxMetrics); n > 0 && e.record.memory.Target != "" {
		s.Memory = spec.MemoryStatus(&e.record.memory, n)
	}
}

// pendedDown says whether a stored decision had a scale-down pending, so that the
// memory beside it is of no earlier time; see scaling.Decision.PendingDown.
func pendedDown(t *v1alpha1.DecisionTrace) bool {
	if t == nil || len(t.Metrics) == 0 {
		return false
	}
	for i := range t.Metrics {
		if m := &t.Metrics[i]; m.Validity != scaling.Valid.String() || m.Bounded >= t.Result {
			return false
		}
	}
	return true
}

// pendedUp says whether a stored decision had a scale-up pending by the metric at that
// place, so that the memory beside it knows of each lower demand; see
// scaling.Decision.PendingUp.
func pendedUp(t *v1alpha1.DecisionTrace, i int) bool {
	return t != nil && i < len(t.Metrics) && t.Metrics[i].Bounded > t.Result
}

// waitsNoMore says whether something that was pending in the stored decision is not in
// this one. A next process must not go on with the window of what was.
func (e *evaluation) waitsNoMore(was, is *v1alpha1.DecisionTrace) bool {
	if pendedDown(was) && !pendedDown(is) {
		return true
	}
	for i := range e.policy.Metrics {
		if e.policy.Metrics[i].Behavior.UpStabilization > 0 && pendedUp(was, i) && !pendedUp(is, i) {
			return true
		}
	}
	return false
}

func (e *evaluation) scalesOrWaits(stored *v1alpha1.DecisionMemory) bool {
	shadow := e.record.shadow != nil
	switch {
	case e.record.untold != nil, e.shadowChanged():
		return true
	case e.paused, e.holding == nil && !shadow:
		return false // which may last for ever
	case e.silenceChanged(stored):
		return true
	case !e.decision.PendingDown && !e.decision.PendingUp, e.decision.Rule == scaling.RuleFrozen:
		return false // a freeze may last for days, and nothing moves in it
	case stored == nil || string(stored.TargetUID) != e.record.memory.Target:
		return true
	case e.outgrows(stored):
		return true
	}
	// What has just begun to pend has nothing to lose, and a load that wavers about the
	// count must not become a write at every poll.
	part := e.longestWait() / checkpointsPerWindow
	return e.now.Sub(stored.ObservedTime.Time) >= part && e.now.Sub(e.pendsSince()) >= part
}

// pendsSince is when nothing was pending last: one excludes the other.
func (e *evaluation) pendsSince() time.Time {
	if e.decision.PendingUp {
		return e.record.still
	}
	return e.record.busy
}

// outgrows says whether a metric's demand is now higher, or lower, than what the stored
// memory of a wait that is still pending knows of late: a restart would go on from that,
// and scale down, or up, too far, be it only when the older part of the window has
// passed. A demand that the last checkpoint knows too is remembered nearly as long.
func (e *evaluation) outgrows(stored *v1alpha1.DecisionMemory) bool {
	known, was := spec.Memory(stored), e.before.Status.LastDecision
	held := e.heldUntil()
	for i := range e.policy.Metrics {
		b := &e.policy.Metrics[i].Behavior
		late := b.DownStabilization / checkpointsPerWindow
		// Until an interval is over that is longer than the window, all of it has passed.
		waits := e.now.Add(b.DownStabilization).Before(held)
		if e.decision.PendingDown && pendedDown(was) && !waits && e.record.memory.Floor(i, e.now, late) > known.Floor(i, e.now, late) {
			return true
		}
		late = b.UpStabilization / checkpointsPerWindow
		if e.decision.PendingUp && pendedUp(was, i) && e.record.memory.Ceiling(i, e.now, late) < known.Ceiling(i, e.now, late) {
			return true
		}
	}
	return false
}

// heldUntil is when the longest minimum interval after the last scale-down is over.
func (e *evaluation) heldUntil() time.Time {
	if e.record.memory.LastDown == 0 {
		return time.Time{}
	}
	longest := time.Duration(0)
	for i := range e.policy.Metrics {
		longest = max(longest, e.policy.Metrics[i].Behavior.DownMinInterval)
	}
	return time.UnixMicro(e.record.memory.LastDown).Add(longest)
}

// longestWait is that of the windows and intervals that hold the count.
func (e *evaluation) longestWait() time.Duration {
	window := e.policy.PollInterval
	for i := range e.policy.Metrics {
		b := &e.policy.Metrics[i].Behavior
		if e.decision.PendingDown {
			window = max(window, b.DownStabilization, b.DownMinInterval)
		}
		if e.decision.PendingUp {
			window = max(window, b.UpStabilization)
		}
	}
	return window
}

// shadowChanged says whether a dry run has come to another count, has begun or ended:
// what it has simulated, or no longer counts, is in the memory.
func (e *evaluation) shadowChanged() bool {
	was, is := e.before.Status.Shadow, e.autoscaler.Status.Shadow
	if was == nil || is == nil {
		return was != is
	}
	return was.TargetUID != is.TargetUID || was.Replicas != is.Replicas || !was.Time.Equal(&is.Time)
}

// silenceChanged says whether the time without any usable metric has begun or ended.
func (e *evaluation) silenceChanged(stored *v1alpha1.DecisionMemory) bool {
	known := stored != nil && string(stored.TargetUID) == e.record.memory.Target && stored.AllInvalidSince != nil
	return known != (e.record.memory.AllInvalidSince != 0)
}

// worthWriting compares with the status as read. What wavers with the load is
// written with something else, or when it has been wrong for a while. The time of
// a decision that decided the same is kept, unless the status is written anyway. That
// something is pending no more is written at once.
func (e *evaluation) worthWriting() bool {
	before, next := &e.before.Status, &e.autoscaler.Status
	latest := next.LastDecision
	if sameTrace(before.LastDecision, latest) {
		next.LastDecision = before.LastDecision
	}
	if apiequality.Semantic.DeepEqual(before, next) {
		return false
	}
	next.LastDecision = latest
	return before.LastDecision == nil || e.waitsNoMore(before.LastDecision, latest) || !e.onlyWavers() || e.now.Sub(before.LastDecision.Time.Time) >= refreshPolls*spec.PollInterval(e.autoscaler)
}

// onlyWavers says whether nothing but the load's wavering sets the status apart
// from the one that was read.
func (e *evaluation) onlyWavers() bool {
	before := &e.before.Status
	if schedulesChanged(before.LastDecision, e.autoscaler.Status.LastDecision) {
		return false
	}
	steady := e.autoscaler.Status.DeepCopy()
	steady.LastDecision, steady.RecommendedReplicas = before.LastDecision, before.RecommendedReplicas
	steady.DesiredReplicas = before.DesiredReplicas // a count that was written shows by itself
	for i := range steady.Conditions {
		if was := meta.FindStatusCondition(before.Conditions, steady.Conditions[i].Type); was != nil && wavers(was, &steady.Conditions[i]) {
			steady.Conditions[i] = *was
		}
	}
	return apiequality.Semantic.DeepEqual(before, steady)
}

// wavers says whether a condition's change is no more than the load's: another
// wording of the same reason, or another limit that is no problem. So a demand that
// exceeds the cap is said at once, and taken back at leisure; and who holds the count
// instead is said whenever it is another.
func wavers(was, now *metav1.Condition) bool {
	if was.ObservedGeneration != now.ObservedGeneration {
		return false
	}
	if now.Reason == v1alpha1.ReasonHeldByAnother || now.Reason == v1alpha1.ReasonWaitingForRelease {
		return *was == *now
	}
	limit := now.Type == v1alpha1.ConditionScalingLimited && !isProblem(now)
	return limit || was.Status == now.Status && was.Reason == now.Reason
}

// schedulesChanged says whether other schedules are in force than before.
func schedulesChanged(was, now *v1alpha1.DecisionTrace) bool {
	return was != nil && now != nil && !slices.Equal(was.Schedules, now.Schedules)
}

// sameTrace compares two decisions but for their time.
func sameTrace(a, b *v1alpha1.DecisionTrace) bool {
	if a == nil || b == nil {
		return a == b
	}
	undated := *b
	undated.Time = a.Time
	return apiequality.Semantic.DeepEqual(*a, undated)
}
