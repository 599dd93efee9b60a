package binding

import (
	"context"
	"fmt"

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
		return nil, hpaFailure(namespace, target, err)
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

func (h *hpas) findLive(ctx context.Context, namespace, target string) (*ManagerError, error) {
	page := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := &autoscalingv2.HorizontalPodAutoscalerList{}
		return list, h.live.List(ctx, list, client.InNamespace(namespace), client.Limit(o.Limit), client.Continue(o.Continue))
	}
	var conflict *ManagerError
	err := eachItem(ctx, page, func(obj runtime.Object) bool {
		hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok {
			return false
		}
		for _, name := range IndexHPA(hpa) {
			if name == target {
				conflict = hpaConflict(hpa, target)
			}
		}
		return conflict != nil
	})
	if err != nil {
		return nil, hpaFailure(namespace, target, err)
	}
	return conflict, nil
}

func hpaConflict(hpa *autoscalingv2.HorizontalPodAutoscaler, target string) *ManagerError {
	e := &ManagerError{Namespace: hpa.Namespace, Target: target, Kind: HPAKind, Resource: "hpa", Name: hpa.Name}
	if by := metav1.GetControllerOf(hpa); by != nil {
		e.MadeBy = fmt.Sprintf("%s %q", by.Kind, by.Name)
	}
	return e
}

func hpaFailure(namespace, target string, err error) error {
	return fmt.Errorf("looking for HorizontalPodAutoscalers of Deployment %s/%s: %w", namespace, target, err)
}
