package validate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// world is what the webhooks look at: the objects of the given files, as if those before
// were stored, and who holds what by them. It is read as the cluster is.
type world struct {
	profiles    map[string]*v1alpha1.MetricProfile
	deployments map[types.NamespacedName]*appsv1.Deployment
	namespaces  map[string]*corev1.Namespace
	// autoscalers that were admitted, and those that were refused and will ask for their
	// Deployment when they are mended; ofTarget and ofNamespace have them in order.
	autoscalers map[types.NamespacedName]*v1alpha1.AutoScaler
	ofTarget    map[types.NamespacedName][]*v1alpha1.AutoScaler
	ofNamespace map[string][]*v1alpha1.AutoScaler
	refused     map[types.UID]bool
	// asks is the arbiter's opinion.
	asks     func(*v1alpha1.AutoScaler) bool
	bindings map[types.NamespacedName]*v1alpha1.ScaleBinding
	stored   int
}

func newWorld() *world {
	return &world{
		profiles: map[string]*v1alpha1.MetricProfile{}, deployments: map[types.NamespacedName]*appsv1.Deployment{},
		namespaces: map[string]*corev1.Namespace{}, bindings: map[types.NamespacedName]*v1alpha1.ScaleBinding{},
		autoscalers: map[types.NamespacedName]*v1alpha1.AutoScaler{}, ofTarget: map[types.NamespacedName][]*v1alpha1.AutoScaler{},
		ofNamespace: map[string][]*v1alpha1.AutoScaler{}, refused: map[types.UID]bool{},
	}
}

// Get reads one object.
func (w *world) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	var found bool
	switch obj := obj.(type) {
	case *v1alpha1.AutoScaler:
		found = into(w.autoscalers, key, obj)
	case *v1alpha1.MetricProfile:
		found = into(w.profiles, key.Name, obj)
	case *v1alpha1.ScaleBinding:
		found = into(w.bindings, key, obj)
	case *appsv1.Deployment:
		found = into(w.deployments, key, obj)
	case *corev1.Namespace:
		found = into(w.namespaces, key.Name, obj)
	default:
		return fmt.Errorf("a %T is not looked up in files", obj)
	}
	if !found {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, key.String())
	}
	return nil
}

// into copies what is stored under a key.
func into[K comparable, T interface{ DeepCopyInto(T) }](from map[K]T, key K, obj T) bool {
	stored, found := from[key]
	if found {
		stored.DeepCopyInto(obj)
	}
	return found
}

// List reads AutoScalers of a namespace: all that were admitted, or the first one in line for
// a Deployment, since who is asked about comes last and only has to know of one before it.
func (w *world) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	all, ok := list.(*v1alpha1.AutoScalerList)
	if !ok {
		return fmt.Errorf("a %T is not looked up in files", list)
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	var target string
	var ofTarget bool
	if o.FieldSelector != nil {
		target, ofTarget = o.FieldSelector.RequiresExactMatch(binding.AutoScalerTarget)
	}
	if ofTarget {
		line := w.ofTarget[types.NamespacedName{Namespace: o.Namespace, Name: target}]
		if first := slices.IndexFunc(line, w.asks); first >= 0 {
			all.Items = append(all.Items, *line[first].DeepCopy())
		}
		return nil
	}
	for _, a := range w.ofNamespace[o.Namespace] {
		if !w.refused[a.UID] {
			all.Items = append(all.Items, *a.DeepCopy())
		}
	}
	return nil
}

// identify gives an object the UID that it would be stored under.
func (w *world) identify(obj metav1.Object) {
	w.stored++
	obj.SetUID(types.UID(strconv.Itoa(w.stored)))
}

// store keeps an AutoScaler.
func (w *world) store(a *v1alpha1.AutoScaler, refused bool, began time.Time) {
	w.refused[a.UID] = refused
	a.CreationTimestamp = metav1.NewTime(began.Add(time.Duration(w.stored) * time.Second))
	w.autoscalers[client.ObjectKeyFromObject(a)] = a
	w.ofTarget[targetOf(a)] = append(w.ofTarget[targetOf(a)], a)
	w.ofNamespace[a.Namespace] = append(w.ofNamespace[a.Namespace], a)
}

// hold makes an AutoScaler the holder of its target.
func (w *world) hold(a *v1alpha1.AutoScaler) {
	key := targetOf(a)
	w.bindings[key] = &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.ScaleBindingSpec{
			TargetRef: a.Spec.TargetRef, OwnerRef: &v1alpha1.OwnerReference{Name: a.Name}, OwnerUID: a.UID, Epoch: 1,
		},
		Status: v1alpha1.ScaleBindingStatus{Phase: v1alpha1.PhaseHeld, Epoch: 1},
	}
}

// forget takes away the AutoScaler of a name, which another one of that name replaces.
func (w *world) forget(key types.NamespacedName) {
	a := w.autoscalers[key]
	if a == nil {
		return
	}
	if b := w.bindings[targetOf(a)]; b != nil && b.Spec.OwnerUID == a.UID {
		delete(w.bindings, targetOf(a))
	}
	delete(w.autoscalers, key)
	is := func(other *v1alpha1.AutoScaler) bool { return other == a }
	w.ofTarget[targetOf(a)] = slices.DeleteFunc(w.ofTarget[targetOf(a)], is)
	w.ofNamespace[a.Namespace] = slices.DeleteFunc(w.ofNamespace[a.Namespace], is)
}

func targetOf(a *v1alpha1.AutoScaler) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}
}
