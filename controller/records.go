package controller

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// record is what this process knows of an AutoScaler between two evaluations. It
// runs ahead of the status, which gets it with a scale event and while a
// scale-down is pending; a restart goes on from the status, or waits a full
// window where that is too old.
type record struct {
	uid    types.UID
	memory scaling.Memory
	// applied is the last count written; the status gets it with its next write,
	// also when the write right after the scale was lost.
	applied *count
	// seen is the count before a write that may have happened unrecorded: one that
	// an earlier process made, or one whose answer was lost.
	seen *count
	// version is the Deployment's resourceVersion after that write.
	version string
	// baseline is the count that was seen or written last, while in charge; what it
	// is compared with tells of other writers.
	baseline *count
	// contention is what the comparisons found.
	contention *v1alpha1.Contention
	// shadow is the count that a dry run has come to; nil where there is none.
	shadow *count
	// ready is, for each metric, the count of Ready replicas when its newest sample was
	// first seen, and when the one before was: an average is over those, not over the
	// ones that became Ready since.
	ready [v1alpha1.MaxMetrics][2]count
	// busy and still are when this process last found no scale-down and no scale-up
	// pending; zero: not yet.
	busy, still time.Time
	// untold is the last scale until an event has told of it.
	untold *scaleEvent
}

// count is a Deployment's replica count at a time.
type count struct {
	target   types.UID
	replicas int32
	at       time.Time
}

// records holds the record of each AutoScaler by name. The zero value is ready.
type records struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]record
}

// of gives the record of an AutoScaler. Where this process has none yet it comes
// from the status, which a later status of this process must not replace: what
// the earlier process left is told by the difference.
func (r *records) of(a *v1alpha1.AutoScaler) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byName[nameOf(a)]; ok && known.uid == a.UID {
		return known
	}
	rec := record{uid: a.UID, memory: spec.Memory(a.Status.Memory)}
	still := heldStill(&a.Status)
	if still || !pendedDown(a.Status.LastDecision) {
		// Unless a scale-down was pending the memory is as old as the last that was, and
		// the demand was high until the earlier process ended. On the way up likewise.
		rec.memory = rec.memory.Unwatched()
	}
	for i := range rec.memory.Windows {
		if still || !pendedUp(a.Status.LastDecision, i) {
			rec.memory = rec.memory.UnwatchedUp(i)
		}
	}
	if s := &a.Status; s.TargetReplicas != nil {
		rec.seen = &count{target: s.TargetUID, replicas: *s.TargetReplicas}
		if inCharge(s) {
			rec.baseline = rec.seen
		}
		rec.contention = s.Contention.DeepCopy()
	}
	if s := a.Status.Shadow; s != nil {
		rec.shadow = &count{target: s.TargetUID, replicas: s.Replicas, at: s.Time.Time}
	}
	r.set(nameOf(a), rec)
	return rec
}

// heldStill says of a stored status that the AutoScaler was paused or frozen: nothing
// was pending that a demand could have ended, so none was written down.
func heldStill(s *v1alpha1.AutoScalerStatus) bool {
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonPaused || s.LastDecision != nil && s.LastDecision.Freeze != ""
}

func (r *records) put(a *v1alpha1.AutoScaler, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(nameOf(a), rec)
}

func (r *records) set(key types.NamespacedName, rec record) {
	if r.byName == nil {
		r.byName = map[types.NamespacedName]record{}
	}
	r.byName[key] = rec
}

func (r *records) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, key)
}

func nameOf(a *v1alpha1.AutoScaler) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
}

// scaled records a write that succeeded, from the count that the decision saw, and
// the Deployment's version after it.
func (rec *record) scaled(e *evaluation, to int32, version string) {
	rec.memory = rec.memory.Scaled(e.now, e.target.replicas, to, e.policy.PollInterval)
	rec.wrote(e, e.target.replicas, to)
	rec.version = version
	if usable(&e.decision) {
		rec.untold.recommended = new(e.decision.Recommended)
	}
	if e.decision.Rule != scaling.RuleNone {
		rec.untold.rule = e.decision.Rule.String()
	}
}

// wrote notes a write that happened.
func (rec *record) wrote(e *evaluation, from, to int32) {
	rec.applied = &count{target: e.target.uid, replicas: to, at: e.now}
	rec.seen, rec.baseline = nil, rec.applied
	rec.untold = &scaleEvent{target: e.target.key.Name, from: from, to: to}
}

// recoverWrite counts a write that nobody recorded: an earlier process was killed
// before its status, or the answer to the write was lost. The Deployment tells:
// the last change of its replica count is a /scale write of ours, and the count
// is not the one seen before. managedFields gives no time for such a write, so it
// counts as made now. One who does not hold the count wrote nothing, and what the
// holder wrote meanwhile is not its either.
func (rec *record) recoverWrite(e *evaluation) {
	if r := e.condition(v1alpha1.ConditionBound).Reason; r == v1alpha1.ReasonDryRun || r == v1alpha1.ReasonHeldByAnother {
		rec.seen = nil
	}
	seen := rec.seen
	if seen == nil || e.holding == nil || seen.target == e.target.uid && seen.replicas == e.target.replicas {
		return // the cache may not show it yet
	}
	rec.seen = nil
	if seen.target != e.target.uid || !e.target.scaledByUs {
		return
	}
	if rec.memory.Target != string(e.target.uid) {
		rec.memory = scaling.Memory{Target: string(e.target.uid)}
	}
	rec.memory = rec.memory.Discovered(e.now, seen.replicas, e.target.replicas)
	rec.wrote(e, seen.replicas, e.target.replicas)
}

// sawReady is how many replicas were Ready with the answer that a metric's sample is
// from: the newest, or the one before.
func (rec *record) sawReady(metric int, t target, at prometheus.Arrival) int32 {
	newest, before := &rec.ready[metric][0], &rec.ready[metric][1]
	if newest.target != t.uid || !newest.at.Equal(at.Newest) {
		*before, *newest = *newest, count{target: t.uid, replicas: t.ready, at: at.Newest}
	}
	if before.target == t.uid && before.at.Equal(at.Used) {
		return before.replicas
	}
	return newest.replicas
}

// outdated says whether the cache has yet to see this AutoScaler's last write.
func (rec *record) outdated(d *appsv1.Deployment) bool {
	if rec.version == "" || rec.applied.target != d.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(d.ResourceVersion, rec.version)
	return err == nil && order < 0
}

// noTarget forgets what is of a Deployment.
func (rec *record) noTarget() { rec.baseline, rec.contention = nil, nil }

// show puts the last write into the status, in whole seconds, as storage keeps it.
func (rec *record) show(s *v1alpha1.AutoScalerStatus, target types.UID) {
	if rec.applied == nil || rec.applied.target != target {
		return
	}
	replicas, at := rec.applied.replicas, metav1.NewTime(rec.applied.at.Truncate(time.Second))
	s.AppliedReplicas, s.LastSuccessfulScaleTime = &replicas, &at
}
