package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MaxEpoch is the largest epoch: the largest number that every JSON reader keeps.
const MaxEpoch = 1<<53 - 1

// MaxTransitions is how many changes of owner a ScaleBinding remembers.
const MaxTransitions = 10

// ScaleBinding says who owns the replica count of one Deployment. It bears the
// Deployment's name, so the API server's uniqueness of names is the lock, and
// ownership is in its spec, because a status cannot be set by the create call.
// Only the operator writes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sb,categories=autoscaling
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.targetRef.name`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.spec.ownerRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Guard",type=string,JSONPath=`.spec.guard`
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.spec.epoch`
// +kubebuilder:printcolumn:name="Claimed-By",type=string,JSONPath=`.spec.claimedBy`
// +kubebuilder:printcolumn:name="Target-UID",type=string,JSONPath=`.spec.targetUID`,priority=1
// +kubebuilder:printcolumn:name="Owner-UID",type=string,JSONPath=`.spec.ownerUID`,priority=1
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.transitions[0].reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.targetRef.name",message="a ScaleBinding bears the name of its Deployment"
type ScaleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the ownership.
	// +required
	Spec ScaleBindingSpec `json:"spec"`
	// status is what the operator saw of it.
	// +optional
	Status ScaleBindingStatus `json:"status,omitempty"`

	// DecodeError is set when the stored object does not fit this type; see
	// AutoScaler.
	DecodeError string `json:"-"`
}

// ScaleBindingList is a list of ScaleBindings.
//
// +kubebuilder:object:root=true
type ScaleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ScaleBinding `json:"items"`
}

// ScaleBindingSpec is the ownership of a Deployment's replica count.
//
// +kubebuilder:validation:XValidation:rule="has(self.ownerUID) == has(self.ownerRef)",message="ownerRef and ownerUID are set together"
// +kubebuilder:validation:XValidation:rule="self.epoch >= oldSelf.epoch",message="epoch never falls"
type ScaleBindingSpec struct {
	// targetRef names the Deployment.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="targetRef cannot change"
	// +required
	TargetRef TargetReference `json:"targetRef"`
	// targetUID is the Deployment the owner was confirmed for; empty until then.
	// +optional
	TargetUID types.UID `json:"targetUID,omitempty"`
	// ownerRef names the AutoScaler that owns the replica count.
	// +optional
	OwnerRef *OwnerReference `json:"ownerRef,omitempty"`
	// ownerUID is that AutoScaler's UID; empty means the binding is free.
	// +optional
	OwnerUID types.UID `json:"ownerUID,omitempty"`
	// claimedBy is the user whose request made the claim.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ClaimedBy string `json:"claimedBy,omitempty"`
	// claimedAt is when. A claim made at admission counts as alive for a grace
	// period even if its owner is not in storage yet.
	// +optional
	ClaimedAt *metav1.Time `json:"claimedAt,omitempty"`
	// epoch grows by one at every change of owner: the fencing token that the
	// owner checks right before each write.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Epoch int64 `json:"epoch"`
	// guard says whether the API server refuses changes of the replica count by
	// anyone but the operator. Open, also when not set: it does not, because the
	// operator itself would not write now: free, unconfirmed, paused, scaled to 0 by a
	// person, without a Deployment, beside another replica manager, or with a spec that
	// cannot be used. Closed bindings are indexed in the namespace's ScaleGuard.
	// +optional
	Guard GuardState `json:"guard,omitempty"`
}

// GuardState says whether foreign changes of a replica count are refused.
//
// +kubebuilder:validation:Enum=Open;Closed
type GuardState string

// States of a guard.
const (
	// GuardOpen: anyone with the permission may change the replica count.
	GuardOpen GuardState = "Open"
	// GuardClosed: only the operator changes it, on behalf of the owner.
	GuardClosed GuardState = "Closed"
)

// OwnerReference names an AutoScaler of the binding's namespace.
type OwnerReference struct {
	// name of the AutoScaler.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ScaleBindingPhase is the state of a binding.
//
// +kubebuilder:validation:Enum=Free;Pending;Held;Orphaned;Contended
type ScaleBindingPhase string

// Phases of a ScaleBinding.
const (
	// PhaseFree: nobody owns the replica count.
	PhaseFree ScaleBindingPhase = "Free"
	// PhasePending, also when no phase is set for the epoch: claimed, and not
	// confirmed yet; nothing has been written for the owner.
	PhasePending ScaleBindingPhase = "Pending"
	// PhaseHeld: the claim is confirmed; the owner may write.
	PhaseHeld ScaleBindingPhase = "Held"
	// PhaseOrphaned: the owner is stored, but there is no Deployment to own; the
	// claim is confirmed when one appears.
	PhaseOrphaned ScaleBindingPhase = "Orphaned"
	// PhaseContended: claimed, but another writer changes the replica count, so that the
	// owner backs off; or another replica manager targets the Deployment, beside which
	// it does not write.
	PhaseContended ScaleBindingPhase = "Contended"
)

// ScaleBindingStatus is what the operator saw of the ownership.
type ScaleBindingStatus struct {
	// phase of the epoch below.
	// +optional
	Phase ScaleBindingPhase `json:"phase,omitempty"`
	// epoch that phase speaks of. Smaller than spec.epoch: the owner has changed
	// since.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// transitions are the last changes, newest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Transitions []BindingTransition `json:"transitions,omitempty"`
}

// BindingTransition is one change of a binding.
type BindingTransition struct {
	// epoch after the change.
	Epoch int64 `json:"epoch"`
	// phase after the change.
	Phase ScaleBindingPhase `json:"phase"`
	// owner after the change, empty when free.
	// +optional
	Owner string `json:"owner,omitempty"`
	// by is the user who caused it.
	// +optional
	By string `json:"by,omitempty"`
	// reason for the change.
	Reason string `json:"reason"`
	// time of the change.
	Time metav1.Time `json:"time"`
}

// Free says whether nobody owns the replica count.
func (b *ScaleBinding) Free() bool { return b.Spec.OwnerUID == "" }

// Phase is that of the current epoch. One that was written for an earlier owner says
// nothing of this one.
func (b *ScaleBinding) Phase() ScaleBindingPhase {
	switch {
	case b.Status.Epoch == b.Spec.Epoch && b.Status.Phase != "":
		return b.Status.Phase
	case b.Free():
		return PhaseFree
	}
	return PhasePending
}

// Seen says whether the operator has seen the owner of the current epoch in storage.
func (b *ScaleBinding) Seen() bool {
	switch b.Phase() {
	case PhaseHeld, PhaseContended, PhaseOrphaned:
		return true
	}
	return false
}

// Confirmed says whether the owner of the current epoch has been confirmed for
// the Deployment with this UID.
func (b *ScaleBinding) Confirmed(target types.UID) bool {
	held := b.Phase() == PhaseHeld || b.Phase() == PhaseContended
	return held && b.Spec.TargetUID == target
}

// Closed says whether changes of the replica count by others are to be refused.
func (b *ScaleBinding) Closed() bool { return !b.Free() && b.Spec.Guard == GuardClosed }
