package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// check gives the errors of what an AutoScaler says and names, in the order of the
// fields. The second result says that something could not be looked up.
func (v *AutoScalerValidator) check(ctx context.Context, a *v1alpha1.AutoScaler) (field.ErrorList, error) {
	errs := spec.ValidateAutoScaler(a, v.Limits)
	if a.DecodeError != "" {
		return errs, nil
	}
	for i := range a.Spec.Metrics {
		more, err := v.againstProfile(ctx, a, i)
		if err != nil {
			return nil, err
		}
		errs = append(errs, more...)
	}
	return errs, nil
}

// againstProfile holds a metric to its profile. What a cached profile refuses may be
// allowed since a moment ago, so the API server is asked before that is said.
func (v *AutoScalerValidator) againstProfile(ctx context.Context, a *v1alpha1.AutoScaler, i int) (field.ErrorList, error) {
	var profile v1alpha1.MetricProfile
	key := types.NamespacedName{Name: a.Spec.Metrics[i].MetricProfileRef}
	err := v.get(ctx, key, &profile)
	errs := profileErrors(a, i, &profile)
	if err == nil && len(errs) > 0 {
		var latest v1alpha1.MetricProfile
		err = v.Live.Get(ctx, key, &latest)
		errs = profileErrors(a, i, &latest)
	}
	switch {
	case apierrors.IsNotFound(err):
		return field.ErrorList{field.Invalid(profilePath(i), key.Name, "there is no such MetricProfile; kubectl get metricprofiles lists them")}, nil
	case err != nil:
		return nil, err
	}
	return errs, nil
}

func profileErrors(a *v1alpha1.AutoScaler, i int, p *v1alpha1.MetricProfile) field.ErrorList {
	if !p.Allows(a.Namespace) {
		return field.ErrorList{field.Forbidden(profilePath(i), fmt.Sprintf("MetricProfile %q does not allow namespace %q; ask its administrator to add it to allowedNamespaces", p.Name, a.Namespace))}
	}
	return spec.CheckParameters(a, i, p)
}

func profilePath(i int) *field.Path {
	return field.NewPath("spec", "metrics").Index(i).Child("metricProfileRef")
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get

// applyRules adds what the platform's rules say. The namespace and its other
// AutoScalers are only looked up where a rule reads them.
func (v *AutoScalerValidator) applyRules(ctx context.Context, old, a *v1alpha1.AutoScaler, r *verdict) error {
	if v.Rules == nil || a.DecodeError != "" {
		return nil
	}
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	in := rules.Input{Object: a, Request: rules.Request{
		Operation: string(req.Operation),
		Username:  req.UserInfo.Username, Groups: req.UserInfo.Groups,
		DryRun: isDryRun(req),
	}}
	if old != nil && old.DecodeError == "" {
		in.OldObject = old
	}
	if v.Rules.Uses(rules.VariableNamespace) {
		var ns corev1.Namespace
		if err := v.Live.Get(ctx, types.NamespacedName{Name: a.Namespace}, &ns); err != nil {
			return err
		}
		in.Namespace = &rules.Namespace{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}
	}
	if v.Rules.Uses(rules.VariableOthers) {
		var list v1alpha1.AutoScalerList
		if err := v.Cached.List(ctx, &list, client.InNamespace(a.Namespace)); err != nil {
			return err
		}
		in.Others = list.Items
	}
	errs, hints := v.Rules.Check(ctx, in)
	r.errs = append(r.errs, errs...)
	r.hints = hints
	return nil
}

func isDryRun(req admission.Request) bool { return req.DryRun != nil && *req.DryRun }
