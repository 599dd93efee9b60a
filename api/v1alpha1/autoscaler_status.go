package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AutoScalerStatus is what the operator saw and decided. Each number belongs to
// one stage of the decision; none stands for another.
type AutoScalerStatus struct {
	// observedGeneration is the spec that this status speaks of. It says nothing
	// of the metrics, which are evaluated again at every poll.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// targetUID is the Deployment that was looked at. After a change of it
	// nothing is written until the claim is confirmed and a new window has
	// passed.
	// +optional
	TargetUID types.UID `json:"targetUID,omitempty"`
	// targetReplicas is the Deployment's spec.replicas after the last evaluation
	// that changed this status.
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`
	// readyReplicas is the Deployment's status.readyReplicas.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`
	// recommendedReplicas is the raw demand of the usable metrics. It may exceed
	// maxReplicas.
	// +optional
	RecommendedReplicas *int32 `json:"recommendedReplicas,omitempty"`
	// desiredReplicas is the demand after bounds and stabilization: the count the
	// steps move to.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`
	// appliedReplicas is the last count that this AutoScaler wrote.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`
	// lastSuccessfulScaleTime is when it was written.
	// +optional
	LastSuccessfulScaleTime *metav1.Time `json:"lastSuccessfulScaleTime,omitempty"`
	// lastDecision is the value after each stage and the rule that limited it.
	// +optional
	LastDecision *DecisionTrace `json:"lastDecision,omitempty"`
	// contention is set while another writer changes the replica count against this
	// AutoScaler, which holds it; nothing is written until its retryTime. It is kept for
	// a quarter of an hour after that, so that a writer that comes back meets a longer
	// back-off.
	// +optional
	Contention *Contention `json:"contention,omitempty"`
	// shadow is the count that a dry run keeps.
	// +optional
	Shadow *Shadow `json:"shadow,omitempty"`
	// memory is what a restarted operator needs to go on without scaling down
	// early: written with a scale event, and about twelve times per window while
	// a move is pending, and when a time without any usable metric begins or ends.
	// +optional
	Memory *DecisionMemory `json:"memory,omitempty"`
	// conditions: Ready, Bound, TargetAvailable, MetricsAvailable, AbleToScale and
	// ScalingLimited, each with a reason that docs/conditions.md explains.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Contention is another writer's change of a replica count that the operator holds.
type Contention struct {
	// manager is the field manager that set spec.replicas last; empty where
	// managedFields name none.
	// +kubebuilder:validation:MaxLength=1024
	Manager string `json:"manager"`
	// from is the count that was changed.
	From int32 `json:"from"`
	// to is the count that it was changed to.
	To int32 `json:"to"`
	// changes is how many of them came in a row: each after the back-off of the one
	// before, and within a quarter of an hour of its end.
	Changes int32 `json:"changes"`
	// time of the last one, as the operator saw it.
	Time metav1.Time `json:"time"`
	// retryTime is when the operator writes again.
	RetryTime metav1.Time `json:"retryTime"`
}

// Shadow is the count of a dry run: what the Deployment would have, had each of its
// decisions been written.
type Shadow struct {
	// targetUID is the Deployment that the count began with.
	TargetUID types.UID `json:"targetUID"`
	// replicas is the simulated count.
	Replicas int32 `json:"replicas"`
	// divergence is replicas less targetReplicas: above 0, this AutoScaler would run
	// more than there are.
	Divergence int32 `json:"divergence"`
	// time of the last change of replicas.
	Time metav1.Time `json:"time"`
}

// DecisionTrace explains one decision.
type DecisionTrace struct {
	// time of the decision.
	Time metav1.Time `json:"time"`
	// current is spec.replicas as the decision saw it; of a dry run, the count that it
	// keeps.
	Current int32 `json:"current"`
	// minReplicas in force, schedules included.
	// +optional
	MinReplicas int32 `json:"minReplicas"`
	// maxReplicas in force, schedules included.
	// +optional
	MaxReplicas int32 `json:"maxReplicas"`
	// schedules in force, by name, in the order of the spec.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Schedules []string `json:"schedules,omitempty"`
	// freeze in force: ScaleDown or All; empty where there is none.
	// +optional
	Freeze string `json:"freeze,omitempty"`
	// result is the count decided on.
	Result int32 `json:"result"`
	// rule that kept the result from being the recommendation, empty when none did.
	// +optional
	Rule string `json:"rule,omitempty"`
	// metrics, one entry each in the order of the spec.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Metrics []MetricTrace `json:"metrics,omitempty"`
}

// MetricTrace is one metric's way through the stages.
type MetricTrace struct {
	// name of the metric.
	Name string `json:"name"`
	// validity of its sample: Valid, ScaleUpOnly or Invalid.
	Validity string `json:"validity"`
	// reason why it is not Valid.
	// +optional
	Reason string `json:"reason,omitempty"`
	// ready, of a PerReplicaAverage alone, is how many replicas the average is over: those
	// that were Ready when it was taken.
	// +optional
	Ready int32 `json:"ready,omitempty"`
	// raw is the count that the sample asks for, by the profile's semantics, rounded up.
	Raw int32 `json:"raw"`
	// tolerated is raw, or current where that is within the tolerance.
	// +optional
	Tolerated int32 `json:"tolerated"`
	// bounded is tolerated within the minReplicas and maxReplicas in force.
	Bounded int32 `json:"bounded"`
	// stabilized is bounded after the windows.
	Stabilized int32 `json:"stabilized"`
	// limited is stabilized after minimum interval, step and rate.
	Limited int32 `json:"limited"`
	// rule that limited this metric's recommendation last.
	// +optional
	Rule string `json:"rule,omitempty"`
}

// DecisionMemory is the policy's memory as a restarted operator needs it.
type DecisionMemory struct {
	// targetUID is the Deployment the memory is of.
	TargetUID types.UID `json:"targetUID"`
	// observedTime is the last evaluation before it was written.
	ObservedTime metav1.MicroTime `json:"observedTime"`
	// lastScaleDownTime is the last successful scale-down.
	// +optional
	LastScaleDownTime *metav1.MicroTime `json:"lastScaleDownTime,omitempty"`
	// stepUp is the current interval's scale-up step.
	// +optional
	StepUp *StepMemory `json:"stepUp,omitempty"`
	// stepDown is the current interval's scale-down step.
	// +optional
	StepDown *StepMemory `json:"stepDown,omitempty"`
	// recentUps are the scale-ups that a rate may still count, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	RecentUps []UpMemory `json:"recentUps,omitempty"`
	// allInvalidSince is since when no metric has been usable.
	// +optional
	AllInvalidSince *metav1.MicroTime `json:"allInvalidSince,omitempty"`
	// windows of the metrics.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Windows []WindowMemory `json:"windows,omitempty"`
}

// StepMemory is the start of a poll interval's step and the count it started from.
type StepMemory struct {
	Time metav1.MicroTime `json:"time"`
	Base int32            `json:"base"`
}

// UpMemory is a scale-up and the number of replicas that it added.
type UpMemory struct {
	Time     metav1.MicroTime `json:"time"`
	Replicas int32            `json:"replicas"`
}

// WindowMemory is one metric's windows, for scaling down and for scaling up.
type WindowMemory struct {
	// key identifies what is measured and how.
	// +kubebuilder:validation:MaxLength=16
	Key string `json:"key"`
	// since is when the scale-down window began to be covered.
	Since metav1.MicroTime `json:"since"`
	// buckets hold the highest recommendation of a twelfth of the window each.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Buckets []BucketMemory `json:"buckets,omitempty"`
	// upSince is when the scale-up window began to be covered.
	// +optional
	UpSince *metav1.MicroTime `json:"upSince,omitempty"`
	// upBuckets hold the lowest recommendation of a part of the scale-up window each.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	UpBuckets []BucketMemory `json:"upBuckets,omitempty"`
}

// BucketMemory is the highest (or, for scaling up, the lowest) recommendation of a
// part of a window and the time of the part's last one.
type BucketMemory struct {
	Time     metav1.MicroTime `json:"time"`
	Replicas int32            `json:"replicas"`
}
