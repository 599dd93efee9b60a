package webhook

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// outside refuses an AutoScaler of a namespace that the operator does not watch. The
// API server should not have asked: the webhooks' namespaceSelector names others than
// the operator's --watch-namespaces. To admit it would store what nobody manages.
func (v *AutoScalerValidator) outside(a *v1alpha1.AutoScaler) error {
	if len(v.Namespaces) == 0 || slices.Contains(v.Namespaces, a.Namespace) {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("autoscalers").GroupResource(), a.Name,
		fmt.Errorf("this operator watches %s, and not namespace %s; add it to the operator's watchNamespaces, or ask the operator that watches it",
			strings.Join(v.Namespaces, ", "), a.Namespace))
}

// An endpoint may be another operator's; the AutoScalers that this one manages would
// not be scaled by it.
const warnForeignEndpoint = "spec.endpoint: the operator that watches %s has no endpoint %q, it has %s; AutoScalers there hold their count with this profile"

func (v *MetricProfileValidator) foreignEndpoint(p *v1alpha1.MetricProfile) []string {
	if len(v.Namespaces) == 0 || !v.unknownEndpoint(p) {
		return nil
	}
	return []string{fmt.Sprintf(warnForeignEndpoint, strings.Join(v.Namespaces, ", "), p.Spec.Endpoint, strings.Join(v.Endpoints, ", "))}
}
