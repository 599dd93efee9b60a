package webhook

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// +kubebuilder:rbac:groups=autoscale.example.com,resources=autoscalers;metricprofiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

// AutoScalerValidator admits AutoScalers. As its last step, and only when nothing
// else is wrong, it claims the Deployment's ScaleBinding for the UID that is
// about to be stored; on a dry run it only looks.
type AutoScalerValidator struct {
	// Cached looks up objects by name and index; Live is asked when it misses.
	Cached, Live client.Reader
	Arbiter      *binding.Arbiter
	Limits       v1alpha1.Limits
}

// warnTargetMissing is said when the AutoScaler is admitted before its Deployment.
const warnTargetMissing = "spec.targetRef.name: Deployment %q does not exist in namespace %q yet; the AutoScaler waits for it"

// ValidateCreate checks a new AutoScaler and claims its target.
func (v *AutoScalerValidator) ValidateCreate(ctx context.Context, a *v1alpha1.AutoScaler) (admission.Warnings, error) {
	errs, err := v.create(ctx, a)
	return v.answer(ctx, a, errs, err)
}

// ValidateUpdate checks a changed spec.
func (v *AutoScalerValidator) ValidateUpdate(ctx context.Context, old, a *v1alpha1.AutoScaler) (admission.Warnings, error) {
	if a.DeletionTimestamp != nil || old.DecodeError == a.DecodeError && apiequality.Semantic.DeepEqual(old.Spec, a.Spec) {
		return nil, nil
	}
	errs, err := v.update(ctx, old, a)
	return v.answer(ctx, a, errs, err)
}

func (v *AutoScalerValidator) create(ctx context.Context, a *v1alpha1.AutoScaler) (field.ErrorList, error) {
	exists, err := v.exists(ctx, a)
	if exists || err != nil {
		return nil, err // a name that is taken must end in AlreadyExists, and claims nothing
	}
	errs, err := v.check(ctx, a)
	if err != nil || !asks(a) {
		return errs, err
	}
	return v.claim(ctx, a, errs)
}

// update claims only where the AutoScaler now asks for a Deployment that it did
// not ask for before, so that whoever lost a claim can still edit its object.
func (v *AutoScalerValidator) update(ctx context.Context, old, a *v1alpha1.AutoScaler) (field.ErrorList, error) {
	errs, err := v.check(ctx, a)
	if err != nil {
		return nil, err
	}
	if len(errs) > 0 {
		stored, err := v.check(ctx, old)
		if err != nil {
			return nil, err
		}
		errs = added(errs, stored)
	}
	if !asks(a) || asks(old) && old.Spec.TargetRef.Name == a.Spec.TargetRef.Name {
		return errs, nil
	}
	return v.claim(ctx, a, errs)
}

// asks says whether an AutoScaler wants to own its target's replica count.
func asks(a *v1alpha1.AutoScaler) bool { return !a.Spec.DryRun && a.DecodeError == "" }

// answer refuses, or admits with warnings. Where something could not be looked up
// the requester is told that and no more: it is neither the requester's fault nor
// business what the API server said to the operator.
func (v *AutoScalerValidator) answer(ctx context.Context, a *v1alpha1.AutoScaler, errs field.ErrorList, err error) (admission.Warnings, error) {
	var broken *binding.BrokenError
	switch {
	case errors.As(err, &broken):
		return nil, apierrors.NewInternalError(broken)
	case err != nil:
		log.FromContext(ctx).Error(err, "an AutoScaler could not be checked")
		return nil, apierrors.NewInternalError(errors.New("the operator could not look up what it has to check; try again, and look into its log if this lasts"))
	case len(errs) > 0:
		return nil, refuse("AutoScaler", a.Name, errs)
	}
	return v.warnings(ctx, a), nil
}

// ValidateDelete never objects: whoever may delete may stop the autoscaler.
func (v *AutoScalerValidator) ValidateDelete(context.Context, *v1alpha1.AutoScaler) (admission.Warnings, error) {
	return nil, nil
}

// check gives all errors but the claim's, in the order of the fields. The second
// result says that something could not be looked up.
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
	if a.Spec.DryRun {
		return errs, nil
	}
	return v.appendConflict(errs, v.findHPA(ctx, a))
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

// findHPA looks for an HPA of the target by index, and asks the API server only
// before it objects: the HPA may have been deleted a moment ago. One that was
// created a moment ago is found at the latest when the claim is confirmed.
func (v *AutoScalerValidator) findHPA(ctx context.Context, a *v1alpha1.AutoScaler) error {
	target := a.Spec.TargetRef.Name
	err := binding.FindHPA(ctx, v.Cached, a.Namespace, target, client.MatchingFields{binding.HPATarget: target})
	if err == nil {
		return nil
	}
	return binding.FindHPA(ctx, v.Live, a.Namespace, target)
}

// claim appends the conflict, if there is one. It writes only when nothing else
// is wrong and the request is no dry run.
func (v *AutoScalerValidator) claim(ctx context.Context, a *v1alpha1.AutoScaler, errs field.ErrorList) (field.ErrorList, error) {
	user, dryRun, err := requester(ctx)
	if err != nil {
		return nil, err
	}
	claimant := binding.ClaimantOf(a, user)
	claimant.Anew = true
	if dryRun || len(errs) > 0 {
		return v.appendConflict(errs, v.Arbiter.Check(ctx, claimant))
	}
	_, err = v.Arbiter.Claim(ctx, claimant)
	return v.appendConflict(errs, err)
}

// appendConflict makes a conflict over the target a field error and passes any
// other error on.
func (v *AutoScalerValidator) appendConflict(errs field.ErrorList, err error) (field.ErrorList, error) {
	var held *binding.HeldError
	var hpa *binding.HPAError
	if errors.As(err, &held) || errors.As(err, &hpa) {
		return append(errs, field.Forbidden(field.NewPath("spec", "targetRef", "name"), err.Error())), nil
	}
	return errs, err
}

func (v *AutoScalerValidator) exists(ctx context.Context, a *v1alpha1.AutoScaler) (bool, error) {
	var stored v1alpha1.AutoScaler
	err := v.Live.Get(ctx, client.ObjectKeyFromObject(a), &stored)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// warnings names what is legal but worth knowing. It never fails a request.
func (v *AutoScalerValidator) warnings(ctx context.Context, a *v1alpha1.AutoScaler) admission.Warnings {
	key := types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}
	if err := v.get(ctx, key, &appsv1.Deployment{}); apierrors.IsNotFound(err) {
		return admission.Warnings{fmt.Sprintf(warnTargetMissing, key.Name, key.Namespace)}
	}
	return nil
}

// get looks into the cache first and asks the API server when it misses: the
// object may have been created a moment ago.
func (v *AutoScalerValidator) get(ctx context.Context, key types.NamespacedName, obj client.Object) error {
	err := v.Cached.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return v.Live.Get(ctx, key, obj)
	}
	return err
}
