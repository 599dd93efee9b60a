package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
)

// State says in a word who has a Deployment's replica count.
type State string

// The states, the most urgent first.
const (
	// Contested: more than one has it, or somebody writes it against its owner.
	Contested State = "contested"
	// Unowned: nobody has it; people and pipelines set it.
	Unowned State = "unowned"
	// Unknown: nobody was found who has it, and not everything could be read.
	Unknown State = "unknown"
	// Pending: an AutoScaler has claimed it and may not write yet.
	Pending State = "pending"
	// Managed: one other replica manager has it, such as an HPA.
	Managed State = "managed"
	// Held: an AutoScaler has it.
	Held State = "held"
)

// states in the order in which they are listed.
var states = []State{Contested, Unowned, Unknown, Pending, Managed, Held}

// Entry is what there is to know of one Deployment. Its JSON is stable.
type Entry struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Replicas   int32  `json:"replicas"`
	Ready      int32  `json:"readyReplicas"`
	State      State  `json:"state"`
	// Why the state is what it is, and what else is worth knowing.
	Why []string `json:"why,omitempty"`
	// Binding is who holds it; absent where nobody does.
	Binding *Binding `json:"binding,omitempty"`
	// Managers are the other replica managers that target it.
	Managers []Manager `json:"managers,omitempty"`
	// Writers are the field managers that own spec.replicas, the newest first.
	Writers []Writer `json:"writers,omitempty"`
	// LastForeignWrite is the newest write that was not the operator's, as far as
	// managedFields and the AutoScaler tell.
	LastForeignWrite *Writer `json:"lastForeignWrite,omitempty"`
}

// Binding is the ownership, as the ScaleBinding has it.
type Binding struct {
	AutoScaler string                     `json:"autoscaler"`
	Phase      v1alpha1.ScaleBindingPhase `json:"phase"`
	Epoch      int64                      `json:"epoch"`
	// Guard is closed where the API server refuses the writes of others.
	Guard v1alpha1.GuardState `json:"guard"`
	// StandsBy: it has claimed the count, and waits for another manager to go.
	StandsBy  bool         `json:"standsBy,omitempty"`
	ClaimedBy string       `json:"claimedBy,omitempty"`
	ClaimedAt *metav1.Time `json:"claimedAt,omitempty"`
}

// Manager is another replica manager.
type Manager struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// MadeBy is the object that made it, and would again.
	MadeBy string `json:"madeBy,omitempty"`
}

func (m Manager) String() string { return m.Kind + "/" + m.Name }

// Writer is who wrote the count, and when. Of a write through the scale subresource the
// API server keeps no time.
type Writer struct {
	Manager string    `json:"manager"`
	Time    time.Time `json:"time,omitzero"`
}

// deployment is what an entry needs of one: a cluster may have very many.
type deployment struct {
	types.NamespacedName
	uid             types.UID
	replicas, ready int32
	writers         []Writer
}

func deploymentOf(d *appsv1.Deployment) *deployment {
	return &deployment{
		NamespacedName: client.ObjectKeyFromObject(d), uid: d.UID,
		replicas: ptr.Deref(d.Spec.Replicas, 1), ready: d.Status.ReadyReplicas, writers: writers(d),
	}
}

// facts are what an entry is made of.
type facts struct {
	deployment *deployment
	binding    *v1alpha1.ScaleBinding
	// autoscalers that target it, by name.
	autoscalers []*v1alpha1.AutoScaler
	managers    []*binding.ManagerError
	// unread: the ScaleBindings could not be read.
	unread bool
}

// judge makes the entry of a Deployment.
func judge(f *facts) Entry {
	d := f.deployment
	e := Entry{Namespace: d.Namespace, Deployment: d.Name, Replicas: d.replicas, Ready: d.ready, Writers: d.writers}
	for _, m := range f.managers {
		e.Managers = append(e.Managers, Manager{Kind: m.Kind, Name: m.Name, MadeBy: m.MadeBy})
	}
	if b := f.binding; b != nil && !b.Free() {
		e.Binding = &Binding{
			AutoScaler: ownerName(b), Phase: b.Phase(), Epoch: b.Spec.Epoch, Guard: v1alpha1.GuardOpen,
			StandsBy: standsBy(f), ClaimedBy: b.Spec.ClaimedBy, ClaimedAt: b.Spec.ClaimedAt,
		}
		if b.Closed() {
			e.Binding.Guard = v1alpha1.GuardClosed
		}
	}
	e.State, e.Why = state(f, &e)
	e.LastForeignWrite = lastForeign(f, e.Writers)
	return e
}

func ownerName(b *v1alpha1.ScaleBinding) string {
	if b.Spec.OwnerRef == nil {
		return ""
	}
	return b.Spec.OwnerRef.Name
}

// state is the state of an entry whose other fields are filled in, and why.
func state(f *facts, e *Entry) (State, []string) {
	contested := conflicts(f, e)
	notes := others(f)
	switch {
	case len(contested) > 0:
		return Contested, append(contested, notes...)
	case e.Binding != nil && f.binding.Confirmed(f.deployment.uid):
		return Held, notes
	case e.Binding != nil && e.Binding.StandsBy && len(e.Managers) > 0:
		return Managed, append([]string{fmt.Sprintf("AutoScaler %s stands by", e.Binding.AutoScaler)}, notes...)
	case e.Binding != nil:
		return Pending, append([]string{fmt.Sprintf("AutoScaler %s has claimed it: %s", e.Binding.AutoScaler, e.Binding.Phase)}, notes...)
	case len(e.Managers) > 0:
		return Managed, notes
	}
	return Unowned, notes
}

// conflicts are the reasons why a Deployment is contested.
func conflicts(f *facts, e *Entry) []string {
	var why []string
	managers := independent(e.Managers)
	switch {
	case e.Binding != nil && len(managers) > 0 && (len(managers) > 1 || !e.Binding.StandsBy):
		target := "targets"
		if len(managers) > 1 {
			target = "target"
		}
		why = append(why, fmt.Sprintf("AutoScaler %s has claimed it, and %s %s it", e.Binding.AutoScaler, named(managers), target))
	case len(managers) > 1:
		why = append(why, named(managers)+" target it")
	}
	for _, a := range f.autoscalers {
		if c := a.Status.Contention; c != nil && e.Binding != nil && a.Name == e.Binding.AutoScaler {
			by := c.Manager
			if by == "" {
				by = "somebody"
			}
			why = append(why, fmt.Sprintf("%s changed it from %d to %d against AutoScaler %s, %d in a row", by, c.From, c.To, a.Name, c.Changes))
		}
	}
	return why
}

// standsBy says whether the AutoScaler that has claimed the count waits for another
// manager to go, as the operator sees it: it is to wait, and has not had the count yet.
func standsBy(f *facts) bool {
	return !f.binding.Confirmed(f.deployment.uid) && slices.ContainsFunc(f.autoscalers, func(a *v1alpha1.AutoScaler) bool {
		return a.UID == f.binding.Spec.OwnerUID && a.Spec.ClaimPolicy == v1alpha1.ClaimWait
	})
}

// others tells of AutoScalers that do not hold the Deployment.
func others(f *facts) []string {
	var notes []string
	for _, a := range f.autoscalers {
		switch holds := f.binding != nil && f.binding.Spec.OwnerUID == a.UID; {
		case holds:
		case a.Spec.DryRun:
			notes = append(notes, fmt.Sprintf("AutoScaler %s is a dry run", a.Name))
		case f.unread:
			notes = append(notes, fmt.Sprintf("whether AutoScaler %s holds it cannot be read", a.Name))
		case a.Spec.ClaimPolicy == v1alpha1.ClaimWait:
			notes = append(notes, fmt.Sprintf("AutoScaler %s stands by", a.Name))
		default:
			notes = append(notes, fmt.Sprintf("AutoScaler %s does not hold it", a.Name))
		}
	}
	return notes
}

// independent leaves out managers that another one of them has made: a ScaledObject
// and its HPA are one.
func independent(all []Manager) []Manager {
	return slices.DeleteFunc(slices.Clone(all), func(m Manager) bool {
		return m.MadeBy != "" && slices.ContainsFunc(all, func(o Manager) bool { return m.MadeBy == fmt.Sprintf("%s %q", o.Kind, o.Name) })
	})
}

// writers are the field managers that own the count, the newest first.
func writers(d *appsv1.Deployment) []Writer {
	var found []Writer
	for i := range d.ManagedFields {
		m := &d.ManagedFields[i]
		if !binding.OwnsReplicas(m) {
			continue
		}
		w := Writer{Manager: m.Manager}
		if m.Time != nil {
			w.Time = m.Time.UTC()
		}
		found = append(found, w)
	}
	slices.SortStableFunc(found, func(a, b Writer) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Manager, b.Manager)) })
	return found
}

// lastForeign is the newest write that was not the operator's. One that has been undone
// since is in no managedFields; the AutoScaler remembers it for a while.
func lastForeign(f *facts, writers []Writer) *Writer {
	var last *Writer
	for i := range writers {
		if writers[i].Manager != controller.FieldManager {
			last = &writers[i]
			break
		}
	}
	for _, a := range f.autoscalers {
		if c := a.Status.Contention; c != nil && (last == nil || c.Time.After(last.Time)) {
			last = &Writer{Manager: c.Manager, Time: c.Time.UTC()}
		}
	}
	return last
}
