package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxHeldBytes bounds spec.held of one ScaleGuard. A search in more than this
// would exceed what the API server lets one CEL call cost (1,000,000), for the
// longest name; a namespace that holds more has several ScaleGuards.
const MaxHeldBytes = 350_000

// ScaleGuard is a namespace's index of the Deployments whose guard is closed: the
// parameter of the admission policies that refuse foreign changes of a replica
// count. It is derived from the ScaleBindings, so it may be deleted at any time:
// that opens the guard until the operator has made it anew.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=sg,categories=autoscaling
// +kubebuilder:printcolumn:name="Closed",type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name="Held",type=string,JSONPath=`.spec.held`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ScaleGuard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the index.
	// +required
	Spec ScaleGuardSpec `json:"spec"`
}

// ScaleGuardList is a list of ScaleGuards.
//
// +kubebuilder:object:root=true
type ScaleGuardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ScaleGuard `json:"items"`
}

// ScaleGuardSpec is the index as one string, which CEL searches faster than a map.
type ScaleGuardSpec struct {
	// count is the number of entries in held.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=350000
	// +required
	Count int32 `json:"count"`
	// held lists Deployments and the AutoScalers that hold them, by the name of the
	// Deployment: "/web=/worker=queue/". An AutoScaler of the Deployment's own name is
	// left out. No name can hold "/" or "=", so a search for "/web=" finds that
	// Deployment and no other.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=350000
	// +required
	Held string `json:"held"`
}

// HeldEntry is a Deployment's entry in a ScaleGuard, without the "/" before it.
func HeldEntry(deployment, autoscaler string) string {
	if autoscaler == deployment {
		autoscaler = ""
	}
	return deployment + "=" + autoscaler + "/"
}

// HolderOf gives the AutoScaler that a ScaleGuard's index names for a Deployment.
func (g *ScaleGuard) HolderOf(deployment string) (string, bool) {
	_, rest, found := strings.Cut(g.Spec.Held, "/"+deployment+"=")
	holder, _, _ := strings.Cut(rest, "/")
	if found && holder == "" {
		holder = deployment
	}
	return holder, found
}
