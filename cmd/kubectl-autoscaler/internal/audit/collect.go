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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// pageSize is the number of objects that one list asks for.
const pageSize = 500

// managerLister tells of other replica managers.
type managerLister interface {
	EachLive(ctx context.Context, namespace string, f func(*binding.ManagerError)) error
}

// collector reads what an audit is about.
type collector struct {
	reader   client.Reader
	managers managerLister
}

// collect gives an entry for each Deployment of a namespace, or of all where it is empty.
// Partial tells what could not be read: the entries know nothing of it.
func (c *collector) collect(ctx context.Context, namespace string, selector labels.Selector) (entries []Entry, partial, err error) {
	var deployments []*appsv1.Deployment
	err = each(ctx, c.reader, &appsv1.DeploymentList{}, func(l *appsv1.DeploymentList) {
		for i := range l.Items {
			deployments = append(deployments, &l.Items[i])
		}
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
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
		f := known[client.ObjectKeyFromObject(d)]
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
	bindings := explained("ScaleBindings", each(ctx, c.reader, &v1alpha1.ScaleBindingList{}, func(l *v1alpha1.ScaleBindingList) {
		for i := range l.Items {
			b := &l.Items[i]
			add(b.Namespace, b.Name, func(f *facts) { f.binding = b })
		}
	}, client.InNamespace(namespace)))
	autoscalers := each(ctx, c.reader, &v1alpha1.AutoScalerList{}, func(l *v1alpha1.AutoScalerList) {
		for i := range l.Items {
			a := &l.Items[i]
			add(a.Namespace, a.Spec.TargetRef.Name, func(f *facts) { f.autoscalers = append(f.autoscalers, a) })
		}
	}, client.InNamespace(namespace))
	managers := c.managers.EachLive(ctx, namespace, func(m *binding.ManagerError) {
		add(m.Namespace, m.Target, func(f *facts) { f.managers = append(f.managers, m) })
	})
	return known, bindings != nil, errors.Join(bindings, explained("AutoScalers", autoscalers), managers)
}

// explained says what it means that a list has failed. Of a kind that is not served there
// are no objects: the operator is not installed, and nobody holds anything.
func explained(kind string, err error) error {
	if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("list %s: %w", kind, err)
}

// each lists in pages.
func each[L client.ObjectList](ctx context.Context, reader client.Reader, list L, page func(L), options ...client.ListOption) error {
	options = append(options, client.Limit(pageSize))
	for next := ""; ; {
		if err := reader.List(ctx, list, append(options, client.Continue(next))...); err != nil {
			return err
		}
		page(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
