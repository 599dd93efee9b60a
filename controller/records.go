package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// record is what this process knows of an AutoScaler between two evaluations. It
// runs ahead of the status, which gets it with a scale event and while a
// scale-down is pending; a restart goes on from the status, or waits a full
// window where that is too old.
type record struct {
	uid    types.UID
	memory scaling.Memory
	// applied is the last count written to target, and when; the status gets them
	// with its next write, also when the write right after the scale was lost.
	applied *scaleRecord
	// restored: the record was just taken from the status.
	restored bool
}

type scaleRecord struct {
	target   types.UID
	replicas int32
	at       time.Time
}

// records holds the record of each AutoScaler by name. The zero value is ready.
type records struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]record
}

// of gives the record of an AutoScaler, from its status when this process has
// none yet.
func (r *records) of(a *v1alpha1.AutoScaler) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byName[nameOf(a)]; ok && known.uid == a.UID {
		return known
	}
	return record{uid: a.UID, memory: spec.Memory(a.Status.Memory), restored: true}
}

func (r *records) put(a *v1alpha1.AutoScaler, rec record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[types.NamespacedName]record{}
	}
	rec.restored = false
	r.byName[nameOf(a)] = rec
}

func (r *records) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, key)
}

func nameOf(a *v1alpha1.AutoScaler) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Name}
}

// scaled records a successful write.
func (rec *record) scaled(at time.Time, target types.UID, from, to int32, poll time.Duration) {
	rec.memory = rec.memory.Scaled(at, from, to, poll)
	rec.applied = &scaleRecord{target: target, replicas: to, at: at}
}

// recoverWrite counts a write of an earlier process whose status was lost. The
// Deployment tells: the last change of its replica count is a /scale write of
// ours, and the status was written before it. managedFields gives no time for
// such a write, so it counts as made now.
func (rec *record) recoverWrite(e *evaluation) {
	s := &e.before.Status
	if !rec.restored || !e.target.scaledByUs || s.TargetUID != e.target.uid || s.TargetReplicas == nil || *s.TargetReplicas == e.target.replicas {
		return
	}
	if rec.memory.Target != string(e.target.uid) {
		rec.memory = scaling.Memory{Target: string(e.target.uid)}
	}
	rec.scaled(e.now, e.target.uid, *s.TargetReplicas, e.target.replicas, e.policy.PollInterval)
}

// show puts the last write into the status.
func (rec *record) show(s *v1alpha1.AutoScalerStatus, target types.UID) {
	if rec.applied == nil || rec.applied.target != target {
		return
	}
	replicas, at := rec.applied.replicas, metav1.NewTime(rec.applied.at)
	s.AppliedReplicas, s.LastSuccessfulScaleTime = &replicas, &at
}
