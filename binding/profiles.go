package binding

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// AutoScalerProfile is the index of AutoScalers by the MetricProfiles they use. It is
// here since reconciler and webhooks, which do not know each other, look into it.
const AutoScalerProfile = "binding.autoscalerProfile"

// IndexProfiles gives the index values of an AutoScaler: the names of its profiles.
func IndexProfiles(obj client.Object) []string {
	a, ok := obj.(*v1alpha1.AutoScaler)
	if !ok {
		return nil
	}
	var names []string
	for i := range a.Spec.Metrics {
		names = append(names, a.Spec.Metrics[i].MetricProfileRef)
	}
	return names
}
