package binding

import (
	"context"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// HPAKind is the kind of the replica manager that is built in.
	HPAKind = "HorizontalPodAutoscaler"
	// HPATarget is the index of HorizontalPodAutoscalers by the Deployment they
	// target.
	HPATarget = "binding.hpaTarget"
)

// IndexHPA gives the index value of an HPA: the name of its Deployment, or
// nothing when it targets another kind or is being deleted.
func IndexHPA(obj client.Object) []string {
	hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || hpa.DeletionTimestamp != nil {
		return nil
	}
	ref := hpa.Spec.ScaleTargetRef
	if group, err := groupOf(ref.APIVersion); err != nil || !isDeployment(group, ref.Kind) {
		return nil
	}
	return []string{ref.Name}
}

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch

// hpas are the HorizontalPodAutoscalers.
type hpas struct {
	cached, live client.Reader
}

func (h *hpas) find(ctx context.Context, namespace, target string) (*ManagerError, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := h.cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{HPATarget: target}); err != nil {
		return nil, lookFailure(h, namespace, target, err)
	}
	var least *autoscalingv2.HorizontalPodAutoscaler
	for i := range list.Items {
		if least == nil || list.Items[i].Name < least.Name {
			least = &list.Items[i]
		}
	}
	if least == nil {
		return nil, nil
	}
	return hpaConflict(least, target), nil
}

func (h *hpas) eachLive(ctx context.Context, namespace string, found func(*ManagerError) bool) error {
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := &autoscalingv2.HorizontalPodAutoscalerList{}
		return list, h.live.List(ctx, list, client.InNamespace(namespace), client.Limit(o.Limit), client.Continue(o.Continue))
	}
	return eachItem(ctx, page, func(obj runtime.Object) bool {
		hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		return ok && slices.ContainsFunc(IndexHPA(hpa), func(target string) bool { return found(hpaConflict(hpa, target)) })
	})
}

func (h *hpas) resource() string { return HPAKind + "s" }

func hpaConflict(hpa *autoscalingv2.HorizontalPodAutoscaler, target string) *ManagerError {
	e := &ManagerError{Namespace: hpa.Namespace, Target: target, Kind: HPAKind, Resource: "hpa", Name: hpa.Name}
	if by := metav1.GetControllerOf(hpa); by != nil {
		e.MadeBy = fmt.Sprintf("%s %q", by.Kind, by.Name)
	}
	return e
}
