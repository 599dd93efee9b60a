package binding

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HPATarget is the index of HorizontalPodAutoscalers by the Deployment they
// target.
const HPATarget = "binding.hpaTarget"

// IndexHPA gives the index value of an HPA: the name of its Deployment, or
// nothing when it targets another kind or is being deleted.
func IndexHPA(obj client.Object) []string {
	hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || hpa.DeletionTimestamp != nil || !isDeployment(hpa.Spec.ScaleTargetRef) {
		return nil
	}
	return []string{hpa.Spec.ScaleTargetRef.Name}
}

// isDeployment compares the group and not the version. An empty group and
// "extensions" are old names of apps for a Deployment, which the HPA controller
// still resolves.
func isDeployment(ref autoscalingv2.CrossVersionObjectReference) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || ref.Kind != "Deployment" {
		return false
	}
	return gv.Group == "apps" || gv.Group == "extensions" || gv.Group == ""
}

// HPAError says that an HPA targets the Deployment.
type HPAError struct {
	Namespace, Target, HPA string
}

// Error names the HPA and the way out.
func (e *HPAError) Error() string {
	return fmt.Sprintf("HorizontalPodAutoscaler %q already scales Deployment %q; delete it first (kubectl -n %s delete hpa %s), or set dryRun to compare beside it", e.HPA, e.Target, e.Namespace, e.HPA)
}

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch

// FindHPA gives a *HPAError when an HPA targets the Deployment, and nil when none
// does; one that is being deleted is no conflict. With a cached reader pass
// client.MatchingFields{HPATarget: target} to look it up by index.
func FindHPA(ctx context.Context, r client.Reader, namespace, target string, opts ...client.ListOption) error {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := r.List(ctx, &list, append(opts, client.InNamespace(namespace))...); err != nil {
		return fmt.Errorf("looking for HorizontalPodAutoscalers of Deployment %s/%s: %w", namespace, target, err)
	}
	for i := range list.Items {
		for _, name := range IndexHPA(&list.Items[i]) {
			if name == target {
				return &HPAError{Namespace: namespace, Target: target, HPA: list.Items[i].Name}
			}
		}
	}
	return nil
}
