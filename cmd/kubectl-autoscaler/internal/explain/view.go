package explain

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
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
	Conditions []metav1.Condition      `json:"conditions"`
	// Next is what will be done if the load stays as it is; Unknown says why it
	// cannot be told.
	Next    []Move `json:"next"`
	Unknown string `json:"nextUnknown,omitempty"`
}

// Deployment is what the target has.
type Deployment struct {
	Replicas int32 `json:"replicas"`
	Ready    int32 `json:"readyReplicas"`
}

// Binding is who holds the count.
type Binding struct {
	Owner string                     `json:"owner,omitempty"`
	Mine  bool                       `json:"mine"`
	Phase v1alpha1.ScaleBindingPhase `json:"phase"`
	Epoch int64                      `json:"epoch"`
	Guard v1alpha1.GuardState        `json:"guard"`
	// Indexed says whether the API server has been told to refuse others.
	Indexed bool `json:"indexed"`
}

// gatherer reads what a view is made of.
type gatherer struct{ reader client.Reader }

// view reads an AutoScaler and what is around it. What a person may not read is left
// out, and said.
func (g *gatherer) view(ctx context.Context, namespace, name string, now time.Time) (*View, error) {
	a := &v1alpha1.AutoScaler{}
	if err := g.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, a); err != nil {
		return nil, err
	}
	if a.DecodeError != "" {
		return nil, fmt.Errorf("AutoScaler %s/%s does not fit its type: %s", namespace, name, a.DecodeError)
	}
	v := &View{
		Namespace: namespace, AutoScaler: name, Target: a.Spec.TargetRef.Name,
		MinReplicas: a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas, PollSeconds: a.Spec.PollIntervalSeconds,
		Decision: a.Status.LastDecision, Shadow: a.Status.Shadow, Contention: a.Status.Contention, Conditions: a.Status.Conditions,
		Next: []Move{}, Still: still(a),
	}
	if err := errors.Join(g.deployment(ctx, v), g.binding(ctx, v, a)); err != nil {
		return nil, err
	}
	v.Next, v.Unknown = g.next(ctx, a, now)
	return v, nil
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

func (g *gatherer) deployment(ctx context.Context, v *View) error {
	var d appsv1.Deployment
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v.Target}, &d)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	v.Deployment = &Deployment{Replicas: 1, Ready: d.Status.ReadyReplicas}
	if d.Spec.Replicas != nil {
		v.Deployment.Replicas = *d.Spec.Replicas
	}
	return nil
}

func (g *gatherer) binding(ctx context.Context, v *View, a *v1alpha1.AutoScaler) error {
	var b v1alpha1.ScaleBinding
	err := g.reader.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v.Target}, &b)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	v.Binding = &Binding{Phase: b.Phase(), Epoch: b.Spec.Epoch, Guard: v1alpha1.GuardOpen, Mine: !b.Free() && b.Spec.OwnerUID == a.UID}
	if b.Spec.OwnerRef != nil {
		v.Binding.Owner = b.Spec.OwnerRef.Name
	}
	if !b.Closed() {
		return nil
	}
	v.Binding.Guard = v1alpha1.GuardClosed
	var guards v1alpha1.ScaleGuardList
	if err := g.reader.List(ctx, &guards, client.InNamespace(v.Namespace)); err != nil {
		return err
	}
	for i := range guards.Items {
		if _, held := guards.Items[i].HolderOf(v.Target); held {
			v.Binding.Indexed = true
		}
	}
	return nil
}

// next foretells, or says why it cannot.
func (g *gatherer) next(ctx context.Context, a *v1alpha1.AutoScaler, now time.Time) (moves []Move, unknown string) {
	moves = []Move{}
	if a.Status.LastDecision == nil {
		return moves, "nothing has been decided yet"
	}
	profiles := make([]*v1alpha1.MetricProfile, len(a.Spec.Metrics))
	for i := range a.Spec.Metrics {
		name := a.Spec.Metrics[i].MetricProfileRef
		p := &v1alpha1.MetricProfile{}
		switch err := g.reader.Get(ctx, client.ObjectKey{Name: name}, p); {
		case apierrors.IsForbidden(err):
			return moves, fmt.Sprintf("you may not read MetricProfile %s (kubectl get metricprofile %s)", name, name)
		case err != nil:
			return moves, fmt.Sprintf("MetricProfile %s: %s", name, err)
		}
		profiles[i] = p
	}
	if len(profiles) != len(a.Status.LastDecision.Metrics) {
		return moves, "the metrics have changed since the last decision"
	}
	found, err := foretell(a, profiles, now)
	if err != nil {
		return moves, err.Error()
	}
	return append(moves, found...), ""
}
