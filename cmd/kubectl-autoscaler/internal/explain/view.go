package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// View is all that is told of an AutoScaler. Its JSON is stable.
type View struct {
	Namespace   string `json:"namespace"`
	AutoScaler  string `json:"autoscaler"`
	Target      string `json:"target"`
	MinReplicas int32  `json:"minReplicas"`
	MaxReplicas int32  `json:"maxReplicas"`
	PollSeconds int32  `json:"pollIntervalSeconds"`
	// Why nothing is written, in a word; empty where writes are allowed.
	Still string `json:"still,omitempty"`
	// Deployment is what is there; absent where it is not.
	Deployment *Deployment `json:"deployment,omitempty"`
	Binding    *Binding    `json:"binding,omitempty"`
	// Decision is the last one, as the status explains it.
	Decision   *v1alpha1.DecisionTrace `json:"lastDecision,omitempty"`
	Shadow     *v1alpha1.Shadow        `json:"shadow,omitempty"`
	Contention *v1alpha1.Contention    `json:"contention,omitempty"`
	// LastWrite is the last one that really happened.
	LastWrite  *Write             `json:"lastWrite,omitempty"`
	Conditions []metav1.Condition `json:"conditions"`
	// SilentSeconds is for how long the operator has not looked, where it should have;
	// what is told of then holds once it is back.
	SilentSeconds int64 `json:"operatorSilentSeconds,omitempty"`
	// Next is what will be done if the load stays as it is; Unknown says why it
	// cannot be told.
	Next    []Move `json:"next"`
	Unknown string `json:"nextUnknown,omitempty"`
	// Unread says of the parts that could not be read why: deployment, binding, guard.
	Unread map[string]string `json:"unread,omitempty"`
}

// unread leaves a part out, and says why where there is an error.
func (v *View) unread(part string, err error) {
	if err == nil {
		return
	}
	if v.Unread == nil {
		v.Unread = map[string]string{}
	}
	v.Unread[part] = err.Error()
}

// Deployment is what the target has.
type Deployment struct {
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"readyReplicas"`
}

// Write is a change of the count; From is absent where the status does not tell it.
type Write struct {
	From *int32      `json:"from,omitempty"`
	To   int32       `json:"to"`
	Time metav1.Time `json:"time"`
}

// Binding is who holds the count.
type Binding struct {
	Owner string `json:"owner,omitempty"`
	Mine  bool   `json:"mine"`
	// WaitsFor is what has the count, where this AutoScaler has no more than claimed it.
	WaitsFor string                     `json:"waitsFor,omitempty"`
	Phase    v1alpha1.ScaleBindingPhase `json:"phase"`
	Epoch    int64                      `json:"epoch"`
	Guard    v1alpha1.GuardState        `json:"guard"`
	// Indexed says whether the API server has been told to refuse others.
	Indexed bool `json:"indexed"`
}

// gatherer reads what a view is made of.
type gatherer struct{ reader client.Reader }

// view reads an AutoScaler and what is around it. What a person may not read is left
// out, and said.
func (g *gatherer) view(ctx context.Context, namespace, name string, now time.Time) (*View, error) {
	a := &v1alpha1.AutoScaler{}
	switch err := g.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, a); {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster has no AutoScalers: the operator's CRDs are not installed there (see docs/install.md)")
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no AutoScaler %s in namespace %s (kubectl get autoscalers -A lists them)", name, namespace)
	case err != nil:
		return nil, fmt.Errorf("read AutoScaler %s/%s: %w", namespace, name, err)
	}
	if a.DecodeError != "" {
		return nil, fmt.Errorf("AutoScaler %s/%s does not fit its type: %s", namespace, name, cli.Plain(a.DecodeError))
	}
	v := &View{
		Namespace: namespace, AutoScaler: name, Target: a.Spec.TargetRef.Name,
		MinReplicas: a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas, PollSeconds: cmp.Or(a.Spec.PollIntervalSeconds, v1alpha1.DefaultPollIntervalSeconds),
		Decision: a.Status.LastDecision, Shadow: a.Status.Shadow, Contention: a.Status.Contention, Conditions: a.Status.Conditions,
		LastWrite: lastWrite(a), Next: []Move{}, Still: still(a),
	}
	g.deployment(ctx, v)
	g.binding(ctx, v, a)
	g.next(ctx, v, a, now)
	return v, ctx.Err()
}

// still is why an AutoScaler writes nothing, whatever the load.
func still(a *v1alpha1.AutoScaler) string {
	for _, c := range a.Status.Conditions {
		if c.Type == v1alpha1.ConditionAbleToScale && c.Status != metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// lastWrite is the last real one. Where it began is told by the decision that asked for
// it, or by the step that began with it.
func lastWrite(a *v1alpha1.AutoScaler) *Write {
	s := &a.Status
	if s.AppliedReplicas == nil || s.LastSuccessfulScaleTime == nil {
		return nil
	}
	w := &Write{To: *s.AppliedReplicas, Time: *s.LastSuccessfulScaleTime}
	then := func(t time.Time) bool { return t.Truncate(time.Second).Equal(w.Time.Time) }
	if d := s.LastDecision; d != nil && then(d.Time.Time) && d.Result == w.To && d.Current != w.To {
		w.From = &d.Current
	} else if m := s.Memory; m != nil && m.StepUp != nil && then(m.StepUp.Time.Time) && m.StepUp.Base < w.To {
		w.From = &m.StepUp.Base
	} else if m != nil && m.StepDown != nil && then(m.StepDown.Time.Time) && m.StepDown.Base > w.To {
		w.From = &m.StepDown.Base
	}
	return w
}

// awaited finds the manager in what the condition Bound says.
var awaited = regexp.MustCompile(`: ([A-Za-z0-9]+) "([^"]+)"`)

// waitsFor is the replica manager that an AutoScaler waits for, which has claimed the
// count already; empty where it does not wait.
func waitsFor(a *v1alpha1.AutoScaler) string {
	bound := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionBound)
	if bound == nil || bound.Reason != v1alpha1.ReasonWaitingForRelease {
		return ""
	}
	if found := awaited.FindStringSubmatch(bound.Message); found != nil {
		return found[1] + "/" + found[2]
	}
	return "another replica manager"
}

func (g *gatherer) deployment(ctx context.Context, v *View) {
	var d appsv1.Deployment
	if err := g.reader.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v.Target}, &d); err != nil {
		v.unread("deployment", client.IgnoreNotFound(err))
		return
	}
	v.Deployment = &Deployment{Replicas: ptr.Deref(d.Spec.Replicas, 1), Ready: d.Status.ReadyReplicas}
}

func (g *gatherer) binding(ctx context.Context, v *View, a *v1alpha1.AutoScaler) {
	var b v1alpha1.ScaleBinding
	if err := g.reader.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v.Target}, &b); err != nil {
		v.unread("binding", client.IgnoreNotFound(err))
		return
	}
	v.Binding = &Binding{Phase: b.Phase(), Epoch: b.Spec.Epoch, Guard: v1alpha1.GuardOpen, Mine: !b.Free() && b.Spec.OwnerUID == a.UID}
	if b.Spec.OwnerRef != nil {
		v.Binding.Owner = b.Spec.OwnerRef.Name
	}
	if v.Binding.Mine {
		v.Binding.WaitsFor = waitsFor(a)
	}
	if !b.Closed() {
		return
	}
	v.Binding.Guard = v1alpha1.GuardClosed
	var guards v1alpha1.ScaleGuardList
	if err := g.reader.List(ctx, &guards, client.InNamespace(v.Namespace)); err != nil {
		v.unread("guard", err)
		return
	}
	for i := range guards.Items {
		if _, held := guards.Items[i].HolderOf(v.Target); held {
			v.Binding.Indexed = true
		}
	}
}

// next foretells, or says why it cannot.
func (g *gatherer) next(ctx context.Context, v *View, a *v1alpha1.AutoScaler, now time.Time) {
	if a.Status.LastDecision == nil {
		v.Unknown = "nothing has been decided yet"
		return
	}
	profiles, unknown := g.profiles(ctx, a)
	if unknown != "" {
		v.Unknown = unknown
		return
	}
	if len(profiles) != len(a.Status.LastDecision.Metrics) {
		v.Unknown = "the metrics have changed since the last decision"
		return
	}
	gone, overdue, err := silence(a, profiles, now)
	switch {
	case err != nil:
		v.Unknown = err.Error()
		return
	case overdue != nil:
		v.SilentSeconds, v.Next = int64(gone/time.Second), []Move{*overdue}
		return
	case gone > 0:
		v.SilentSeconds, v.Unknown = int64(gone/time.Second), "the operator has not looked for "+duration.HumanDuration(gone)
		return
	}
	moves, err := foretell(a, profiles, now)
	if err != nil {
		v.Unknown = err.Error()
		return
	}
	v.Next = append(v.Next, moves...)
}

// profiles are those of the metrics, or why they cannot be read.
func (g *gatherer) profiles(ctx context.Context, a *v1alpha1.AutoScaler) (profiles []*v1alpha1.MetricProfile, unknown string) {
	for i := range a.Spec.Metrics {
		name := a.Spec.Metrics[i].MetricProfileRef
		p := &v1alpha1.MetricProfile{}
		switch err := g.reader.Get(ctx, client.ObjectKey{Name: name}, p); {
		case apierrors.IsForbidden(err):
			return nil, fmt.Sprintf("you may not read MetricProfile %s (kubectl get metricprofile %s)", name, name)
		case err != nil:
			return nil, fmt.Sprintf("MetricProfile %s: %s", name, err)
		}
		profiles = append(profiles, p)
	}
	return profiles, ""
}
