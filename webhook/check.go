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
	"example.com/platform/autoscale-operator/webhook/rules"
)

// check gives the errors of what an AutoScaler says and names, in the order of the
// fields. The second result says that something could not be looked up.
func (v *AutoScalerValidator) check(ctx context.Context, a *v1alpha1.AutoScaler) (field.ErrorList, error) {
	errs := v1alpha1.ValidateAutoScaler(a, v.Limits)
	if a.DecodeError != "" {
		return errs, nil
	}
	for i := range a.Spec.Metrics {
		path := field.NewPath("spec", "metrics").Index(i).Child("metricProfileRef")
		name := a.Spec.Metrics[i].MetricProfileRef
		allowed, err := v.allowed(ctx, name, a.Namespace)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, field.Invalid(path, name, "there is no such MetricProfile; kubectl get metricprofiles lists them"))
		case err != nil:
			return nil, err
		case !allowed:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("MetricProfile %q does not allow namespace %q; ask its administrator to add it to allowedNamespaces", name, a.Namespace)))
		}
	}
	return errs, nil
}

// allowed says whether a profile allows a namespace. A cached profile that does
// not may have been changed a moment ago.
func (v *AutoScalerValidator) allowed(ctx context.Context, name, namespace string) (bool, error) {
	var profile v1alpha1.MetricProfile
	key := types.NamespacedName{Name: name}
	err := v.get(ctx, key, &profile)
	if err != nil || profile.Allows(namespace) {
		return err == nil, err
	}
	err = v.Live.Get(ctx, key, &profile)
	return err == nil && profile.Allows(namespace), err
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
