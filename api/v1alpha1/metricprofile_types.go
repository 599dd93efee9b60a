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
	// DefaultMaxSeries is how many series an answer for many targets may have.
	DefaultMaxSeries = 10000
	// MaxParameterValues is the largest number of values that a parameter may have.
	MaxParameterValues = 64
	// MaxParameterValueLength bounds the value of a parameter, in characters.
	MaxParameterValueLength = 253
	// MaxPatternLength bounds the pattern of a parameter, in bytes.
	MaxPatternLength = 256
	// DefaultNamespaceLabel and DefaultTargetLabel say whom a series is for where
	// seriesLabels does not.
	DefaultNamespaceLabel = "namespace"
	DefaultTargetLabel    = "deployment"
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
// +kubebuilder:validation:Enum=Total;PerReplicaAverage;Backlog
type MetricSemantics string

// Semantics of a query's number. t is targetPerReplica.
const (
	// SemanticsTotal is the load V of the whole service: N = ceil(V / t), independent
	// of the current count.
	SemanticsTotal MetricSemantics = "Total"
	// SemanticsPerReplicaAverage is the mean load V of the Ready replicas:
	// N = ceil(ready * V / t). With none Ready the metric is invalid.
	SemanticsPerReplicaAverage MetricSemantics = "PerReplicaAverage"
	// SemanticsBacklog is the number Q of items that wait. Lambda arrive per second, and
	// the backlog is to be worked off in T seconds: N = ceil((lambda + Q / T) / t).
	SemanticsBacklog MetricSemantics = "Backlog"
)

// SeriesMode says for how many AutoScalers one answer is.
//
// +kubebuilder:validation:Enum=Single;PerTarget
type SeriesMode string

// Modes of an answer's series.
const (
	// SeriesSingle: the query is rendered for each Deployment and gives one number.
	SeriesSingle SeriesMode = "Single"
	// SeriesPerTarget: one query gives a series for each Deployment; its labels say
	// which.
	SeriesPerTarget SeriesMode = "PerTarget"
)

// EmptyMode says what an answer without a series means.
//
// +kubebuilder:validation:Enum=Invalid;Zero
type EmptyMode string

// Meanings of an empty answer.
const (
	// EmptyInvalid: the load is not known.
	EmptyInvalid EmptyMode = "Invalid"
	// EmptyZero: there is no load.
	EmptyZero EmptyMode = "Zero"
)

// LabelName is the name of a Prometheus label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
type LabelName string

// SeriesLabels name the labels that say whom a series is for.
//
// +kubebuilder:validation:XValidation:rule="(has(self.namespace) ? self.namespace : 'namespace') != (has(self.target) ? self.target : 'deployment')",message="namespace and target must be different labels"
type SeriesLabels struct {
	// namespace is the label that holds the namespace. Not set: namespace.
	// +optional
	Namespace LabelName `json:"namespace,omitempty"`
	// target is the label that holds the Deployment's name. Not set: deployment.
	// +optional
	Target LabelName `json:"target,omitempty"`
}

// ParameterValue is a value that an AutoScaler may give a parameter.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type ParameterValue string

// ProfileParameter declares a placeholder that each AutoScaler gives a value for.
//
// +kubebuilder:validation:XValidation:rule="has(self.values) != has(self.pattern)",message="set either values or pattern: what an AutoScaler may ask for is the administrator's to say"
// +kubebuilder:validation:XValidation:rule="!has(self.values) || !has(self.default) || self.default in self.values",message="must be one of values",fieldPath=".default"
type ProfileParameter struct {
	// name of the placeholder, as queue_name for $queue_name in the query. Not
	// namespace and not target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="self != 'namespace' && self != 'target'",message="$namespace and $target are set by the operator; choose another name"
	// +required
	Name string `json:"name"`
	// values that are allowed, 1 to 64.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Values []ParameterValue `json:"values,omitempty"`
	// pattern that the whole value must match: an RE2 expression of at most 256
	// characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Pattern string `json:"pattern,omitempty"`
	// default is for AutoScalers that give no value; it must be allowed too. Not set:
	// each must give one.
	// +optional
	Default ParameterValue `json:"default,omitempty"`
}

// Freshness tells whether the series behind an answer are fed at all. Exactly one of
// maxAgeSeconds and minHealthyShare says what the number of its query is.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxAgeSeconds) != has(self.minHealthyShare)",message="set exactly one bound: maxAgeSeconds where the query gives an age in seconds, minHealthyShare where it gives the share of healthy targets"
type Freshness struct {
	// query is a PromQL expression with the placeholders of the profile's, such as
	// max(time() - timestamp(requests_total{namespace=$namespace})) for an age, or
	// avg(up{namespace=$namespace}) for a share. With series PerTarget it gives a number
	// for each Deployment too. Without a series nothing is known of the source, and the
	// metric is invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`
	// maxAgeSeconds is the oldest that the query's number may be, 1 to 86400; above it
	// the metric is invalid.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	MaxAgeSeconds *int32 `json:"maxAgeSeconds,omitempty"`
	// minHealthyShare is the least that the query's number may be, a decimal string
	// from 0 to 1, as "0.8"; below it the metric is invalid.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(0(\.[0-9]{1,6})?|1(\.0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$`
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0([.][0-9]{1,6})?|1([.]0{1,6})?|(0|[1-9][0-9]{0,2}|1000)m)$')",message="must be a share from 0 to 1 with at most 6 digits after the point, as \"0.1\"; a trailing m divides by 1000, so \"100m\" is 0.1"
	// +optional
	MinHealthyShare string `json:"minHealthyShare,omitempty"`
}

// NamespaceName is the name of a namespace, or "*" for all.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
type NamespaceName string

// MetricProfileSpec defines one metric.
//
// +kubebuilder:validation:XValidation:rule="(self.semantics == 'Backlog') == has(self.arrivalRateQuery)",message="arrivalRateQuery is needed for semantics Backlog, and only there",fieldPath=".arrivalRateQuery"
// +kubebuilder:validation:XValidation:rule="(self.semantics == 'Backlog') == has(self.clearanceSeconds)",message="clearanceSeconds is needed for semantics Backlog, and only there",fieldPath=".clearanceSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.seriesLabels) || has(self.series) && self.series == 'PerTarget'",message="seriesLabels are for series PerTarget only",fieldPath=".seriesLabels"
// +kubebuilder:validation:XValidation:rule="!has(self.parameters) || !has(self.series) || self.series != 'PerTarget'",message="a query of series PerTarget is the same for all AutoScalers and takes no parameters",fieldPath=".parameters"
type MetricProfileSpec struct {
	// endpoint is the name of a Prometheus endpoint in the operator's
	// configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Endpoint string `json:"endpoint"`

	// query is a PromQL expression that gives one number. $namespace and $target
	// stand for the AutoScaler's namespace and Deployment, $name for a parameter of that
	// name, each substituted as a quoted string: write namespace=$namespace, without
	// quotes of your own. With series PerTarget it has no placeholders and gives a
	// number for each Deployment.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`

	// semantics says what the number means. Total: the load of the whole service.
	// PerReplicaAverage: the mean load of the Ready replicas. Backlog: how many items
	// wait; the count then suffices for what arrives and works the backlog off within
	// clearanceSeconds, and targetPerReplica is the items that one replica does in a
	// second.
	// +required
	Semantics MetricSemantics `json:"semantics"`

	// arrivalRateQuery gives the items that arrive per second, with the placeholders
	// of query; for Backlog, where it is needed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ArrivalRateQuery string `json:"arrivalRateQuery,omitempty"`

	// clearanceSeconds is the time in which a backlog is to be worked off, 1 to 86400;
	// for Backlog, where it is needed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	ClearanceSeconds int32 `json:"clearanceSeconds,omitempty"`

	// series says for how many AutoScalers one answer is. Single: the query is asked
	// for each Deployment. PerTarget: once for all of them; seriesLabels say which
	// series is whose. Not set: Single.
	// +optional
	Series SeriesMode `json:"series,omitempty"`

	// seriesLabels name the labels that say whom a series is for; for series PerTarget.
	// Not set: namespace and deployment.
	// +optional
	SeriesLabels *SeriesLabels `json:"seriesLabels,omitempty"`

	// onEmpty says what no series means. Invalid: the load is not known, and the count
	// is not lowered. Zero: there is no load; choose it only where a series goes away
	// with the load. Not set: Invalid.
	// +optional
	OnEmpty EmptyMode `json:"onEmpty,omitempty"`

	// parameters are placeholders that each AutoScaler gives a value for. At most 16;
	// not for series PerTarget.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Parameters []ProfileParameter `json:"parameters,omitempty"`

	// freshness is a second query that tells whether the first one's series are fed.
	// Not set: not asked.
	// +optional
	Freshness *Freshness `json:"freshness,omitempty"`

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

	// maxSeries is how many series an answer of series PerTarget may have, 1 to
	// 100000; more make every metric of the profile invalid. Not set: 10000.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxSeries int32 `json:"maxSeries,omitempty"`

	// maxResponseBytes is the largest answer that is read, 1024 to 67108864 bytes. Not
	// set: the endpoint's bound.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=67108864
	// +optional
	MaxResponseBytes int64 `json:"maxResponseBytes,omitempty"`

	// budget is the most queries per minute for this profile, over all Deployments, 1
	// to 60000. Where it does not suffice, each is asked less often. Not set: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +optional
	Budget int32 `json:"budget,omitempty"`
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
