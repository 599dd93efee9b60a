package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

const (
	// A profile is narrowed under those that use it.
	warnUsersLost = "%s: this takes the metric from %d AutoScaler(s), which are then not scaled down: %s"
	// namedUsers is how many of them are named.
	namedUsers = 3
)

// usersWarnings names those who may use a profile as it is and not as it will be. It
// looks into the cache only, and only where namespaces or parameters change.
func (v *MetricProfileValidator) usersWarnings(ctx context.Context, old, p *v1alpha1.MetricProfile) []string {
	if apiequality.Semantic.DeepEqual(old.Spec.AllowedNamespaces, p.Spec.AllowedNamespaces) &&
		apiequality.Semantic.DeepEqual(old.Spec.Parameters, p.Spec.Parameters) {
		return nil
	}
	var users v1alpha1.AutoScalerList
	// There may be thousands, and they are only looked at.
	if err := v.Cached.List(ctx, &users, client.MatchingFields{binding.AutoScalerProfile: p.Name}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "the AutoScalers of a MetricProfile could not be looked up for warnings")
		return nil
	}
	var namespaces, parameters []string
	for i := range users.Items {
		a := &users.Items[i]
		switch {
		case !loses(a, old, p):
		case !p.Allows(a.Namespace):
			namespaces = append(namespaces, a.Namespace+"/"+a.Name)
		default:
			parameters = append(parameters, a.Namespace+"/"+a.Name)
		}
	}
	return append(usersLost("spec.allowedNamespaces", namespaces), usersLost("spec.parameters", parameters)...)
}

// loses says whether an AutoScaler has a metric that the profile no longer allows it.
func loses(a *v1alpha1.AutoScaler, old, p *v1alpha1.MetricProfile) bool {
	for i := range a.Spec.Metrics {
		if a.Spec.Metrics[i].MetricProfileRef == p.Name && len(profileErrors(a, i, old)) == 0 && len(profileErrors(a, i, p)) > 0 {
			return true
		}
	}
	return false
}

func usersLost(path string, users []string) []string {
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	named := strings.Join(users[:min(namedUsers, len(users))], ", ")
	if more := len(users) - namedUsers; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf(warnUsersLost, path, len(users), named)}
}
