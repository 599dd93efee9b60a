package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// managerLister tells of other replica managers.
type managerLister interface {
	EachLive(ctx context.Context, namespace string, f func(*binding.ManagerError)) error
}

// collector reads what an audit is about.
type collector struct {
	reader   client.Reader
	managers managerLister
	// absent: the operator's kinds are not served.
	absent bool
}

// collect gives an entry for each Deployment of a namespace, or of all where it is empty.
// Partial tells what could not be read: the entries know nothing of it.
func (c *collector) collect(ctx context.Context, namespace string, selector labels.Selector) (entries []Entry, partial, err error) {
	deployments, err := list(ctx, c.reader, func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, deploymentOf,
		client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, nil, fmt.Errorf("list Deployments: %w", err)
	}
	if len(deployments) == 0 && namespace != "" {
		if err := c.exists(ctx, namespace); err != nil {
			return nil, nil, err
		}
	}
	known, unread, partial := c.facts(ctx, namespace)
	for _, d := range deployments {
		f := known[d.NamespacedName]
		f.deployment, f.unread = d, unread
		e := judge(&f)
		if e.State == Unowned && partial != nil {
			e.State = Unknown
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(
			cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Deployment, b.Deployment),
		)
	})
	return entries, partial, nil
}

// exists tells a namespace without Deployments from one that is not there, of which the
// API server lists nothing all the same. Who may not look is not told.
func (c *collector) exists(ctx context.Context, namespace string) error {
	err := c.reader.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no namespace %s", namespace)
	case apierrors.IsForbidden(err):
		return nil
	}
	return err
}

// facts are what is known of each Deployment but itself. Unread says that it is not known
// who holds what.
func (c *collector) facts(ctx context.Context, namespace string) (known map[types.NamespacedName]facts, unread bool, partial error) {
	known = map[types.NamespacedName]facts{}
	add := func(namespace, name string, change func(*facts)) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		f := known[key]
		change(&f)
		known[key] = f
	}
	bindings, err := list(ctx, c.reader, func(l *v1alpha1.ScaleBindingList) []v1alpha1.ScaleBinding { return l.Items }, bindingOf, client.InNamespace(namespace))
	noBindings := explained("ScaleBindings", err)
	for _, b := range bindings {
		add(b.Namespace, b.Name, func(f *facts) { f.binding = b })
	}
	autoscalers, err := list(ctx, c.reader, func(l *v1alpha1.AutoScalerList) []v1alpha1.AutoScaler { return l.Items }, autoscalerOf, client.InNamespace(namespace))
	noAutoScalers := explained("AutoScalers", err)
	c.absent = err != nil && noAutoScalers == nil
	for _, a := range autoscalers {
		add(a.Namespace, a.Spec.TargetRef.Name, func(f *facts) { f.autoscalers = append(f.autoscalers, a) })
	}
	managers := c.managers.EachLive(ctx, namespace, func(m *binding.ManagerError) {
		add(m.Namespace, m.Target, func(f *facts) { f.managers = append(f.managers, m) })
	})
	return known, noBindings != nil, errors.Join(noBindings, noAutoScalers, managers)
}

// explained says what it means that a list has failed. Of a kind that is not served there
// are no objects: the operator is not installed, and nobody holds anything.
func explained(kind string, err error) error {
	if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("list %s: %w", kind, err)
}

// bindingOf is a ScaleBinding without what the API server keeps for itself.
func bindingOf(b *v1alpha1.ScaleBinding) *v1alpha1.ScaleBinding {
	kept := *b
	kept.ManagedFields = nil
	return &kept
}

// autoscalerOf is what an entry needs of an AutoScaler.
func autoscalerOf(a *v1alpha1.AutoScaler) *v1alpha1.AutoScaler {
	kept := &v1alpha1.AutoScaler{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name, UID: a.UID}}
	kept.Spec.TargetRef, kept.Spec.DryRun, kept.Spec.ClaimPolicy = a.Spec.TargetRef, a.Spec.DryRun, a.Spec.ClaimPolicy
	kept.Status.Contention = a.Status.Contention
	return kept
}

// list reads in pages, and all at once where those expire meanwhile. Of each object only
// what is made of it is kept.
func list[L, O, K any, P interface {
	*L
	client.ObjectList
}](ctx context.Context, reader client.Reader, items func(*L) []O, keep func(*O) K, options ...client.ListOption) ([]K, error) {
	var kept []K
	_, _, err := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		if page.Continue == "" {
			kept = nil
		}
		l := P(new(L))
		if err := reader.List(ctx, l, append(slices.Clip(options), client.Limit(page.Limit), client.Continue(page.Continue))...); err != nil {
			return nil, err
		}
		of := items(l)
		for i := range of {
			kept = append(kept, keep(&of[i]))
		}
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: l.GetContinue()}}, nil // which the pager goes on from
	}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return kept, nil
}
