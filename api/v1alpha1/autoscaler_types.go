package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds and defaults of an AutoScaler. The CRD schema states the same numbers;
// a test compares them.
const (
	// MaxReplicasCeiling is the largest maxReplicas the schema accepts. The
	// operator's configuration sets a lower platform bound.
	MaxReplicasCeiling = 100000
	// MaxMetrics is the largest number of metrics of one AutoScaler.
	MaxMetrics = 10
	// DefaultPollIntervalSeconds is the time between two evaluations.
	DefaultPollIntervalSeconds = 15
	// DefaultMaxAgeSeconds is the age from which a sample counts as stale.
	DefaultMaxAgeSeconds = 60
	// DefaultScaleDownStabilizationSeconds is the length of the scale-down
	// window where none is given; it is the HPA's.
	DefaultScaleDownStabilizationSeconds = 300
)

// AutoScaler keeps the replica count of one Deployment of its namespace at what
// its metrics demand, within bounds, and only while it holds the Deployment's
// ScaleBinding.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=asc,categories=autoscaling
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxReplicas`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.targetReplicas`
// +kubebuilder:printcolumn:name="Recommended",type=integer,JSONPath=`.status.recommendedReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Limited",type=string,JSONPath=`.status.conditions[?(@.type=="ScalingLimited")].reason`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`,priority=1
// +kubebuilder:printcolumn:name="Metrics",type=string,JSONPath=`.status.conditions[?(@.type=="MetricsAvailable")].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AutoScaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the owner of the service asks for.
	// +required
	Spec AutoScalerSpec `json:"spec"`
	// status is what the operator saw and decided.
	// +optional
	Status AutoScalerStatus `json:"status,omitempty"`

	// DecodeError is set when the stored object does not fit this type (it was
	// stored under another schema, or past the API server). Spec is then empty
	// and the object is treated as invalid; the objects beside it in a list are
	// not affected.
	DecodeError string `json:"-"`
}

// AutoScalerList is a list of AutoScalers.
//
// +kubebuilder:object:root=true
type AutoScalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AutoScaler `json:"items"`
}

// AutoScalerSpec is the contract between a service and the autoscaler.
//
// +kubebuilder:validation:XValidation:rule="self.maxReplicas >= self.minReplicas",message="maxReplicas must be at least minReplicas",fieldPath=".maxReplicas"
type AutoScalerSpec struct {
	// targetRef names the apps/v1 Deployment of the same namespace whose replica
	// count is managed.
	// +required
	TargetRef TargetReference `json:"targetRef"`

	// minReplicas is the lowest count the autoscaler sets. At least 1: scaling to
	// zero is not offered. A Deployment that a person scaled to 0 is left alone.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MinReplicas int32 `json:"minReplicas"`

	// maxReplicas is the highest count the autoscaler sets. The operator's
	// configuration holds a platform bound for it (default 1000).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +required
	MaxReplicas int32 `json:"maxReplicas"`

	// pollIntervalSeconds is the time between two evaluations, 5 to 3600. One
	// scaling step is granted per interval. Not set: the platform's default, else 15.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	// +optional
	PollIntervalSeconds int32 `json:"pollIntervalSeconds,omitempty"`

	// paused keeps the claim on the Deployment and keeps recommending, but never
	// writes: pause first, then scale by hand.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// dryRun only recommends: it takes no claim, never writes, and may stand
	// beside another autoscaler of the same Deployment.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// claimPolicy says what happens while another AutoScaler holds the Deployment.
	// Reject: this one is not admitted. Wait: it is, stands by, and takes over when
	// the holder goes; so a rename may create before it deletes. Not set: the
	// platform's default, else Reject.
	// +optional
	ClaimPolicy ClaimPolicy `json:"claimPolicy,omitempty"`

	// metrics are the demands; the highest of the usable ones counts.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	Metrics []MetricSpec `json:"metrics"`

	// behavior limits how fast the count moves, for every metric that has no
	// behavior of its own.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`
}

// ClaimPolicy says what happens while another AutoScaler holds the Deployment.
//
// +kubebuilder:validation:Enum=Reject;Wait
type ClaimPolicy string

// Claim policies.
const (
	// ClaimReject refuses the AutoScaler at admission.
	ClaimReject ClaimPolicy = "Reject"
	// ClaimWait admits it and lets it stand by.
	ClaimWait ClaimPolicy = "Wait"
)

// TargetReference names a Deployment of the AutoScaler's namespace.
type TargetReference struct {
	// name of the Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Name string `json:"name"`
}

// MetricType is the kind of a metric source.
//
// +kubebuilder:validation:Enum=Prometheus
type MetricType string

// MetricTypePrometheus is a query answered by a Prometheus endpoint of the
// operator's configuration.
const MetricTypePrometheus MetricType = "Prometheus"

// MetricSpec is one demand: what a MetricProfile measures, divided by what one
// replica can carry.
type MetricSpec struct {
	// name of the metric, unique in this AutoScaler.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// type of the source.
	// +required
	Type MetricType `json:"type"`

	// metricProfileRef names the cluster-scoped MetricProfile that holds the
	// query; the profile must allow this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	MetricProfileRef string `json:"metricProfileRef"`

	// targetPerReplica is the load that one ready replica carries, in the unit of
	// the profile's query, measured by a load test. A decimal string above 0, as
	// "100" or "0.5"; a trailing m divides by 1000 ("100m" is 0.1).
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?m?$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]{0,11})([.][0-9]{1,6})?m?$') && self.matches('[1-9]')",message="must be a decimal number above 0 with at most 12 digits before and 6 after the point, as \"100\" or \"0.5\"; a trailing m divides by 1000, so \"100m\" is 0.1"
	// +required
	TargetPerReplica string `json:"targetPerReplica"`

	// maxAgeSeconds is the age from which a sample counts as stale, 1 to 3600. An
	// instant query is stamped with its evaluation time, so this bounds the age
	// of the answer, not of the scrape behind it. Not set: the platform's default,
	// else 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MaxAgeSeconds int32 `json:"maxAgeSeconds,omitempty"`

	// behavior replaces the common behavior, as a whole, for this metric's
	// recommendation.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`
}

// Behavior limits how fast the replica count moves.
type Behavior struct {
	// scaleUpMaxStep is the most replicas added per poll interval. Not set: no
	// limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ScaleUpMaxStep *int32 `json:"scaleUpMaxStep,omitempty"`

	// scaleDownMaxStep is the most replicas removed per poll interval. Not set:
	// no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ScaleDownMaxStep *int32 `json:"scaleDownMaxStep,omitempty"`

	// scaleDownStabilizationSeconds is the length of the window whose highest
	// recommendation counts when scaling down, 0 (none) to 86400. Not set: the
	// platform's default, else 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ScaleDownStabilizationSeconds *int32 `json:"scaleDownStabilizationSeconds,omitempty"`

	// scaleDownMinIntervalSeconds is the least time between two successful
	// scale-downs, 0 (none) to 86400.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ScaleDownMinIntervalSeconds *int32 `json:"scaleDownMinIntervalSeconds,omitempty"`
}

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
	// memory is what a restarted operator needs to go on without scaling down
	// early: written with a scale event, and about twelve times per window while
	// a scale-down is pending.
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

// DecisionTrace explains one decision.
type DecisionTrace struct {
	// time of the decision.
	Time metav1.Time `json:"time"`
	// current is spec.replicas as the decision saw it.
	Current int32 `json:"current"`
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
	// raw is ceil(value / targetPerReplica).
	Raw int32 `json:"raw"`
	// bounded is raw within minReplicas and maxReplicas.
	Bounded int32 `json:"bounded"`
	// stabilized is bounded after the scale-down window.
	Stabilized int32 `json:"stabilized"`
	// limited is stabilized after minimum interval and step.
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

// WindowMemory is one metric's scale-down window.
type WindowMemory struct {
	// key identifies what is measured and how.
	// +kubebuilder:validation:MaxLength=16
	Key string `json:"key"`
	// since is when the window began to be covered.
	Since metav1.MicroTime `json:"since"`
	// buckets hold the highest recommendation of a twelfth of the window each.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Buckets []BucketMemory `json:"buckets,omitempty"`
}

// BucketMemory is the highest recommendation of a part of the window and the
// time of the part's last one.
type BucketMemory struct {
	Time     metav1.MicroTime `json:"time"`
	Replicas int32            `json:"replicas"`
}
