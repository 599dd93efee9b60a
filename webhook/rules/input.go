package rules

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Variables of a rule.
const (
	// VariableObject is the AutoScaler as it would be stored, without status and
	// managedFields.
	VariableObject = "object"
	// VariableOldObject is the stored AutoScaler; null on create.
	VariableOldObject = "oldObject"
	// VariableNamespace is the AutoScaler's Namespace: name, labels and annotations.
	VariableNamespace = "namespaceObject"
	// VariableRequest says who asks for what.
	VariableRequest = "request"
	// VariableOthers are the other enabled AutoScalers of the namespace.
	VariableOthers = "others"
)

// maxRemembered bounds the memory of others, which takes about 6 KB for each.
const maxRemembered = 5000

// Input is what the rules look at. Namespace and Others may be left out where
// [Set.Uses] says that no rule reads them.
type Input struct {
	// Object is the AutoScaler that is to be stored, and OldObject the one that is
	// (nil on create). In these and in Others the rules find the platform's defaults
	// filled in.
	Object, OldObject *v1alpha1.AutoScaler
	// Namespace is that of the object.
	Namespace *Namespace
	// Request says who asks for what.
	Request Request
	// Others are AutoScalers of the object's namespace. Those that are not enabled
	// and the object itself are left out by the rules. UID and resource version,
	// where both are set, must identify the content.
	Others []v1alpha1.AutoScaler
}

// Namespace is what rules may read of a Namespace.
type Namespace struct {
	Name                string
	Labels, Annotations map[string]string
}

// Request is what rules may read of an admission request.
type Request struct {
	// Operation is CREATE or UPDATE.
	Operation string
	// Username and Groups are those of the requester.
	Username string
	Groups   []string
	// DryRun says that nothing will be stored.
	DryRun bool
}

// evaluated is an input with the platform's defaults, and what expressions see of it.
type evaluated struct {
	object, old *v1alpha1.AutoScalerSpec // old is nil on create
	vars        map[string]any
}

// stops says whether an update does nothing to a spec but pause it, prolong its pause
// or make it a dry run.
func (e *evaluated) stops() bool {
	if e.old == nil {
		return false
	}
	before := *e.old
	before.Paused = before.Paused || e.object.Paused
	before.DryRun = before.DryRun || e.object.DryRun
	changed := before.Paused != e.old.Paused || before.DryRun != e.old.DryRun || e.prolongs()
	if changed && e.object.Paused {
		before.PausedUntil, before.PauseReason = e.object.PausedUntil, e.object.PauseReason
	}
	return changed && apiequality.Semantic.DeepEqual(&before, e.object)
}

// prolongs says whether a pause, which may be over, is given a later end or none.
func (e *evaluated) prolongs() bool {
	end := e.old.PausedUntil
	return e.old.Paused && e.object.Paused && end != nil &&
		(e.object.PausedUntil == nil || end.Before(e.object.PausedUntil))
}

// claims says whether an update asks for a Deployment that the stored object does
// not ask for.
func (e *evaluated) claims() bool {
	return e.old != nil && !e.object.DryRun && (e.old.DryRun || e.old.TargetRef.Name != e.object.TargetRef.Name)
}

// evaluated fills in the defaults and makes the input what expressions are evaluated
// over. The others are what costs, so they are made only where a rule reads them.
func (s *Set) evaluated(in *Input) (*evaluated, error) {
	object := s.defaulted(in.Object)
	vars := map[string]any{
		VariableOldObject: nil,
		VariableNamespace: nil,
		VariableRequest:   in.request(),
		VariableOthers:    []any{},
	}
	out := &evaluated{object: &object.Spec, vars: vars}
	var err error
	if vars[VariableObject], err = content(object); err != nil {
		return nil, err
	}
	if in.OldObject != nil {
		old := s.defaulted(in.OldObject)
		out.old = &old.Spec
		if vars[VariableOldObject], err = content(old); err != nil {
			return nil, err
		}
	}
	if in.Namespace != nil {
		vars[VariableNamespace] = in.Namespace.content()
	}
	if s.Uses(VariableOthers) {
		if vars[VariableOthers], err = s.others(in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// defaulted is a copy with the platform's defaults, which may have been others, or
// not there, when the object was stored. It has no status.
func (s *Set) defaulted(a *v1alpha1.AutoScaler) *v1alpha1.AutoScaler {
	copied := &v1alpha1.AutoScaler{ObjectMeta: a.ObjectMeta, Spec: *a.Spec.DeepCopy(), DecodeError: a.DecodeError}
	v1alpha1.Default(copied, s.defaults)
	return copied
}

// others leaves out what takes no part in scaling: shadows, what is being
// deleted, and what cannot be read.
func (s *Set) others(in *Input) ([]any, error) {
	out := make([]any, 0, len(in.Others))
	for i := range in.Others {
		other := &in.Others[i]
		if other.Namespace != in.Object.Namespace || other.Name == in.Object.Name ||
			other.Spec.DryRun || other.DeletionTimestamp != nil || other.DecodeError != "" {
			continue
		}
		converted, err := s.remembered(other)
		if err != nil {
			return nil, err
		}
		out = append(out, converted)
	}
	return out, nil
}

// memory keeps the content of stored AutoScalers: making it is most of what a
// rule over others costs, and they seldom change. Expressions cannot change it.
type memory struct{ cache *lru.Cache }

// version is one state of one stored object.
type version struct {
	uid             types.UID
	resourceVersion string
}

func newMemory() memory { return memory{lru.New(maxRemembered)} }

// remembered gives the content of a stored AutoScaler with the defaults, which are
// the same for as long as the memory lasts.
func (s *Set) remembered(a *v1alpha1.AutoScaler) (map[string]any, error) {
	key := version{a.UID, a.ResourceVersion}
	if key.uid == "" || key.resourceVersion == "" {
		return content(s.defaulted(a))
	}
	if known, ok := s.memory.cache.Get(key); ok {
		return known.(map[string]any), nil
	}
	converted, err := content(s.defaulted(a))
	if err == nil {
		s.memory.cache.Add(key, converted)
	}
	return converted, err
}

func (in *Input) request() map[string]any {
	groups := make([]any, len(in.Request.Groups))
	for i, group := range in.Request.Groups {
		groups[i] = group
	}
	return map[string]any{
		"operation": in.Request.Operation,
		"name":      in.Object.Name,
		"namespace": in.Object.Namespace,
		"dryRun":    in.Request.DryRun,
		"userInfo":  map[string]any{"username": in.Request.Username, "groups": groups},
	}
}

func (n *Namespace) content() map[string]any {
	metadata := map[string]any{"name": n.Name}
	for field, values := range map[string]map[string]string{"labels": n.Labels, "annotations": n.Annotations} {
		if len(values) == 0 {
			continue // absent, as in the stored object
		}
		converted := make(map[string]any, len(values))
		for key, value := range values {
			converted[key] = value
		}
		metadata[field] = converted
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}

// content gives an AutoScaler as JSON has it. Status and managed fields are no
// business of a rule, and are most of an object's size.
func content(a *v1alpha1.AutoScaler) (map[string]any, error) {
	slim := v1alpha1.AutoScaler{ObjectMeta: a.ObjectMeta, Spec: a.Spec}
	slim.ManagedFields = nil
	slim.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("AutoScaler"))
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&slim)
	if err != nil {
		return nil, fmt.Errorf("AutoScaler %s/%s: %w", a.Namespace, a.Name, err)
	}
	delete(converted, "status")
	return converted, nil
}
