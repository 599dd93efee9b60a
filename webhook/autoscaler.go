package webhook

import (
	"context"
	"errors"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// +kubebuilder:rbac:groups=autoscale.example.com,resources=autoscalers;metricprofiles,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch

// AutoScalerValidator admits AutoScalers. As its last step, and only when nothing
// else is wrong, it claims the Deployment's ScaleBinding for the UID that is
// about to be stored; on a dry run it only looks.
//
// What it looks up is found by name or index in the cache, at a cost that does not
// depend on how many objects there are. The API server is asked where the cache is
// behind: before something is refused, or when a claim meets another.
type AutoScalerValidator struct {
	// Cached looks up objects by name and index; Live is asked when it misses.
	Cached, Live client.Reader
	Arbiter      *binding.Arbiter
	Managers     ManagerFinder
	Limits       v1alpha1.Limits
	// Defaults are the platform's, for what the object leaves open.
	Defaults v1alpha1.Defaults
	// Rules of the platform; nil: there are none.
	Rules *rules.Set
	// Access is asked whether a requester may take over a replica count; nil: a
	// take-over needs no permission.
	Access AccessReviewer
	// FieldManager is the name under which the operator itself writes.
	FieldManager string
	// Namespaces that the operator watches; none stands for all.
	Namespaces []string
}

// ManagerFinder finds other replica managers of a Deployment: a *ManagerError where
// there is one.
type ManagerFinder interface {
	// Find looks by index into the cache.
	Find(ctx context.Context, namespace, target string) error
	// FindLive asks the API server.
	FindLive(ctx context.Context, namespace, target string) error
}

// verdict collects what is to be said of one request.
type verdict struct {
	errs field.ErrorList
	// standsBy says that somebody else has the target and that the AutoScaler may
	// wait for it; it claims nothing.
	standsBy string
	// hints are the warnings of the platform's rules.
	hints []string
}

// ValidateCreate checks a new AutoScaler and claims its target.
func (v *AutoScalerValidator) ValidateCreate(ctx context.Context, a *v1alpha1.AutoScaler) (admission.Warnings, error) {
	if err := v.outside(a); err != nil {
		return nil, err
	}
	r, err := v.create(ctx, a)
	return v.answer(ctx, a, r, err)
}

// ValidateUpdate checks a changed spec.
func (v *AutoScalerValidator) ValidateUpdate(ctx context.Context, old, a *v1alpha1.AutoScaler) (admission.Warnings, error) {
	if a.DeletionTimestamp != nil || old.DecodeError == a.DecodeError && apiequality.Semantic.DeepEqual(old.Spec, a.Spec) {
		return nil, nil
	}
	if err := v.outside(a); err != nil {
		return nil, err
	}
	r, err := v.review(ctx, old, a)
	return v.answer(ctx, a, r, err)
}

// ValidateDelete never objects: whoever may delete may stop the autoscaler.
func (v *AutoScalerValidator) ValidateDelete(context.Context, *v1alpha1.AutoScaler) (admission.Warnings, error) {
	return nil, nil
}

// create reviews a new AutoScaler. A name that is taken gives the API server's own
// answer for it, whatever else is wrong; to let it pass and leave the answer to
// storage would let it in unchecked if the name became free meanwhile.
//
// The cache is asked first, so that a usual creation costs no read for it. Where it
// does not know of a name that was taken a moment ago, and nothing is refused, storage
// gives that answer. The claim then names an object that cannot be stored: it blocks
// nobody (see binding.Arbiter), and the AutoScaler that has the name frees it.
func (v *AutoScalerValidator) create(ctx context.Context, a *v1alpha1.AutoScaler) (verdict, error) {
	if err := v.nameTaken(ctx, v.Cached, a); err != nil {
		if err := v.nameTaken(ctx, v.Live, a); err != nil {
			return verdict{}, err
		}
	}
	r, err := v.review(ctx, nil, a)
	if err == nil && (len(r.errs) > 0 || r.standsBy != "") {
		err = v.nameTaken(ctx, v.Live, a)
	}
	return r, err
}

// takenError is the API server's own answer for a name that is taken.
type takenError struct{ answer *apierrors.StatusError }

// Error is that answer's message.
func (e *takenError) Error() string { return e.answer.Error() }

// nameTaken gives a *takenError where an AutoScaler of the name is stored.
func (v *AutoScalerValidator) nameTaken(ctx context.Context, reader client.Reader, a *v1alpha1.AutoScaler) error {
	var stored v1alpha1.AutoScaler
	err := reader.Get(ctx, client.ObjectKeyFromObject(a), &stored)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return &takenError{apierrors.NewAlreadyExists(v1alpha1.GroupVersion.WithResource("autoscalers").GroupResource(), a.Name)}
}

// review runs all checks over a, which is new (old is nil) or an update of old, and
// then, where a asks for a Deployment that old did not ask for, claims it. Whoever
// lost a claim can therefore still edit its object. An update may keep what is wrong
// with old, but what is wrong cannot make a new claim.
func (v *AutoScalerValidator) review(ctx context.Context, old, a *v1alpha1.AutoScaler) (r verdict, err error) {
	if r.errs, err = v.check(ctx, a); err != nil {
		return r, err
	}
	anew := asks(a) && (old == nil || !asks(old) || old.Spec.TargetRef.Name != a.Spec.TargetRef.Name)
	if old != nil && !anew && len(r.errs) > 0 {
		stored, err := v.check(ctx, old)
		if err != nil {
			return r, err
		}
		r.errs = added(r.errs, stored)
	}
	if anew {
		if err := v.conflict(a, &r, v.findManager(ctx, a)); err != nil {
			return r, err
		}
	}
	if err := v.applyRules(ctx, old, a, &r); err != nil {
		return r, err
	}
	if anew {
		err = v.claim(ctx, a, &r)
	}
	return r, err
}

// asks says whether an AutoScaler wants to own its target's replica count.
func asks(a *v1alpha1.AutoScaler) bool { return !a.Spec.DryRun && a.DecodeError == "" }

// answer refuses, or admits with warnings. Where something could not be looked up
// the requester is told that and no more: it is neither the requester's fault nor
// business what the API server said to the operator.
func (v *AutoScalerValidator) answer(ctx context.Context, a *v1alpha1.AutoScaler, r verdict, err error) (admission.Warnings, error) {
	var broken *binding.BrokenError
	var taken *takenError
	switch {
	case errors.As(err, &broken):
		return nil, apierrors.NewInternalError(broken)
	case errors.As(err, &taken):
		return nil, taken.answer
	case err != nil:
		log.FromContext(ctx).Error(err, "an AutoScaler could not be checked")
		return nil, apierrors.NewInternalError(errors.New("the operator could not look up what it has to check; try again, and look into its log if this lasts"))
	case len(r.errs) > 0:
		return said(r.hints), refuse("AutoScaler", a.Name, r.errs)
	}
	return said(v.warnings(ctx, a, r)), nil
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
