package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// MaxParameters is the largest number of parameters of one metric.
	MaxParameters = 16
	// MaxPauseReasonLength bounds spec.pauseReason, in characters.
	MaxPauseReasonLength = 256
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
// +kubebuilder:printcolumn:name="Shadow",type=integer,JSONPath=`.status.shadow.replicas`,priority=1
// +kubebuilder:printcolumn:name="Min-Now",type=integer,JSONPath=`.status.lastDecision.minReplicas`,priority=1
// +kubebuilder:printcolumn:name="Max-Now",type=integer,JSONPath=`.status.lastDecision.maxReplicas`,priority=1
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
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || self.fallback.floorReplicas <= self.maxReplicas",message="floorReplicas must be at most maxReplicas",fieldPath=".fallback.floorReplicas"
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

	// pausedUntil is when a pause ends by itself, as "2026-11-27T06:00:00Z". It has no
	// effect unless paused is set. Not set: the pause lasts until paused is unset.
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$`
	// +kubebuilder:validation:Type=string
	// +optional
	PausedUntil *metav1.Time `json:"pausedUntil,omitempty"`

	// pauseReason tells others why, and whom to ask; at most 256 characters. It is
	// repeated in the conditions while paused.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PauseReason string `json:"pauseReason,omitempty"`

	// dryRun only recommends: it takes no claim, never writes, and may stand
	// beside another autoscaler of the same Deployment. It keeps a count of its own,
	// status.shadow, as if it had written each of its decisions.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// claimPolicy says what happens while another AutoScaler holds the Deployment, or an
	// HPA or another replica manager scales it. Reject: this one is not admitted. Wait:
	// it is, stands by, and takes over when that goes; so a rename may create before it
	// deletes, and a Deployment is handed over from an HPA. Not set: the platform's
	// default, else Reject.
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

	// fallback raises the count when no metric has been usable for long. Not set:
	// the count is held, from minReplicas on.
	// +optional
	Fallback *Fallback `json:"fallback,omitempty"`

	// schedules move the bounds, or freeze the count, at times that are known before:
	// warm-up ahead of an event, a cap at night, a maintenance window. At most 20.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Schedules []Schedule `json:"schedules,omitempty"`
}

// PausedAt says whether the AutoScaler is paused at a time: a pause with an end is
// over at that instant.
func (a *AutoScaler) PausedAt(now time.Time) bool {
	return a.Spec.Paused && (a.Spec.PausedUntil == nil || now.Before(a.Spec.PausedUntil.Time))
}

// ClaimPolicy says what happens while another AutoScaler holds the Deployment, or
// another replica manager scales it.
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

	// maxAgeSeconds is the age from which a sample counts as stale when it arrives, 1
	// to 3600. It may then be used until the next one is overdue: for the poll interval
	// and the query's timeout, if that is longer. An instant query is stamped with its
	// evaluation time, so this bounds the age of the answer, not of the scrape behind
	// it; for that a MetricProfile has freshness. Not set: the platform's default, else
	// 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	MaxAgeSeconds int32 `json:"maxAgeSeconds,omitempty"`

	// parameters are values for the placeholders that the profile declares beside
	// $namespace and $target; each goes into the query as a quoted string. At most 16;
	// names as "queue_name", values of 1 to 253 characters that the profile allows.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 63 && size(self[k]) >= 1 && size(self[k]) <= 253)",message="a name has at most 63 characters, and a value 1 to 253"
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// behavior replaces the common behavior, as a whole, for this metric's
	// recommendation.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`
}
