package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds and defaults of a MetricProfile.
const (
	// DefaultTimeoutSeconds is the deadline of one query.
	DefaultTimeoutSeconds = 5
	// DefaultMaxRangeSeconds is how far a query may look back.
	DefaultMaxRangeSeconds = 3600
	// MaxRangeSecondsCeiling is the largest maxRangeSeconds.
	MaxRangeSecondsCeiling = 2592000
	// AllNamespaces in allowedNamespaces allows every namespace.
	AllNamespaces NamespaceName = "*"
)

// MetricProfile is an administrator's definition of one metric: where it is
// asked, the query, what the number means and who may use it. No AutoScaler
// holds a URL or a query of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=mp,categories=autoscaling
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Semantics",type=string,JSONPath=`.spec.semantics`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.allowedNamespaces`
// +kubebuilder:printcolumn:name="Query",type=string,JSONPath=`.spec.query`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MetricProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec of the metric.
	// +required
	Spec MetricProfileSpec `json:"spec"`

	// DecodeError is set when the stored object does not fit this type; see
	// AutoScaler.
	DecodeError string `json:"-"`
}

// MetricProfileList is a list of MetricProfiles.
//
// +kubebuilder:object:root=true
type MetricProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MetricProfile `json:"items"`
}

// MetricSemantics says what the number of a query means.
//
// +kubebuilder:validation:Enum=Total
type MetricSemantics string

// SemanticsTotal is the load of the whole service: N = ceil(total / targetPerReplica),
// independent of the current count.
const SemanticsTotal MetricSemantics = "Total"

// NamespaceName is the name of a namespace, or "*" for all.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
type NamespaceName string

// MetricProfileSpec defines one metric.
type MetricProfileSpec struct {
	// endpoint is the name of a Prometheus endpoint in the operator's
	// configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Endpoint string `json:"endpoint"`

	// query is a PromQL expression that gives one number. $namespace and $target
	// stand for the AutoScaler's namespace and Deployment, each substituted as a
	// quoted string: write namespace=$namespace, without quotes of your own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`

	// semantics says what the number means. Total: the load of the whole service.
	// +required
	Semantics MetricSemantics `json:"semantics"`

	// allowedNamespaces lists the namespaces whose AutoScalers may use this
	// profile; "*" is all of them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +listType=set
	// +required
	AllowedNamespaces []NamespaceName `json:"allowedNamespaces"`

	// maxRangeSeconds bounds how far the query may look back: the longest sum of
	// range, offset and subquery, 1 to 2592000 (30 days).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	// +kubebuilder:default=3600
	// +optional
	MaxRangeSeconds int32 `json:"maxRangeSeconds,omitempty"`

	// requireNamespaceMatcher refuses a query in which any selector lacks
	// namespace=$namespace: without it a series of another namespace counts.
	// +optional
	RequireNamespaceMatcher bool `json:"requireNamespaceMatcher,omitempty"`

	// timeoutSeconds is the deadline of one query, 1 to 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	// +kubebuilder:default=5
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
}

// Allows says whether AutoScalers of a namespace may use the profile.
func (p *MetricProfile) Allows(namespace string) bool {
	for _, allowed := range p.Spec.AllowedNamespaces {
		if allowed == AllNamespaces || string(allowed) == namespace {
			return true
		}
	}
	return false
}
