package webhook

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// claim makes a the owner of its target's replica count, for the UID that is about
// to be stored. It writes only when nothing is wrong and the request is no dry run;
// else it only tells the conflict, if there is one.
func (v *AutoScalerValidator) claim(ctx context.Context, a *v1alpha1.AutoScaler, r *verdict) error {
	if r.standsBy != "" && v.Access == nil {
		return nil
	}
	req, err := admission.RequestFromContext(ctx)
	if err != nil {
		return err
	}
	c := binding.ClaimantOf(a, req.UserInfo.Username)
	c.Anew = true
	if c.Seen, err = v.bindingSeen(ctx, a); err != nil {
		return err
	}
	ahead, err := v.ahead(ctx, a)
	if err != nil {
		return err
	}
	take, err := v.takeOver(ctx, a, c, req.UserInfo, ahead, r)
	if err != nil || r.standsBy != "" {
		// Behind another manager nothing is claimed, but whoever waits there takes the
		// count over without being asked again.
		return err
	}
	if ahead != nil || len(r.errs) > 0 || isDryRun(req) {
		if err = v.Arbiter.Check(ctx, c); err == nil && ahead != nil {
			err = &binding.HeldError{Namespace: c.Namespace, Target: c.Target, Holder: ahead.Name, InLine: true}
		}
		return v.conflict(a, r, err)
	}
	claimed, err := v.Arbiter.Claim(ctx, c)
	if err != nil {
		return v.conflict(a, r, err)
	}
	return take.confirm(ctx, claimed, r)
}

// conflict makes of somebody else's hold on the target an error, or a reason to
// stand by where the AutoScaler may wait, and passes any other error on.
func (v *AutoScalerValidator) conflict(a *v1alpha1.AutoScaler, r *verdict, err error) error {
	var held *binding.HeldError
	var manager *binding.ManagerError
	var standsBy, says string
	switch {
	case errors.As(err, &held):
		standsBy, says = fmt.Sprintf(warnBehindHolder, held.Holder), held.Error()
		if held.InLine {
			standsBy = fmt.Sprintf(warnBehindInLine, held.Holder)
		}
	case errors.As(err, &manager):
		standsBy, says = fmt.Sprintf(warnBehindManager, manager.Kind, manager.Name), manager.Error()+wayBehindManager
	default:
		return err
	}
	if v.waits(a) {
		r.standsBy = standsBy
	} else {
		r.errs = append(r.errs, field.Forbidden(targetPath, says))
	}
	return nil
}

// wayBehindManager is a way out that only admission can offer: whoever holds the count
// already when another manager comes takes it up again by itself.
const wayBehindManager = ", or set claimPolicy: Wait here to take over when it is gone"

// targetPath is the field that a conflict is about.
var targetPath = field.NewPath("spec", "targetRef", "name")

// waits says whether an AutoScaler may stand by. The defaulter has set the policy,
// unless it was not asked.
func (v *AutoScalerValidator) waits(a *v1alpha1.AutoScaler) bool {
	policy := a.Spec.ClaimPolicy
	if policy == "" {
		policy = v.Defaults.ClaimPolicy
	}
	return policy == v1alpha1.ClaimWait
}

// findManager looks for another replica manager of the target by index, and asks
// the API server only before it objects: the manager may have been deleted a moment
// ago. One that was created a moment ago is found at the latest when the claim is
// confirmed.
func (v *AutoScalerValidator) findManager(ctx context.Context, a *v1alpha1.AutoScaler) error {
	if err := v.Managers.Find(ctx, a.Namespace, a.Spec.TargetRef.Name); err == nil {
		return nil
	}
	return v.Managers.FindLive(ctx, a.Namespace, a.Spec.TargetRef.Name)
}

// bindingSeen says whether the cache has a binding of the target: then the claim
// reads it first. Without one the claim begins with its create.
func (v *AutoScalerValidator) bindingSeen(ctx context.Context, a *v1alpha1.AutoScaler) (bool, error) {
	err := v.Cached.Get(ctx, targetOf(a), &v1alpha1.ScaleBinding{})
	return err == nil, client.IgnoreNotFound(err)
}

func targetOf(a *v1alpha1.AutoScaler) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}
}

// ahead gives the first AutoScaler that stands in line for the target before a, if
// there is one. The cache tells who may, in order, and the API server who does; it is
// asked until one is found.
func (v *AutoScalerValidator) ahead(ctx context.Context, a *v1alpha1.AutoScaler) (*v1alpha1.AutoScaler, error) {
	line, err := v.Arbiter.Ahead(ctx, v.Cached, a)
	if err != nil {
		return nil, err
	}
	for i := range line {
		var now v1alpha1.AutoScaler
		err := v.Live.Get(ctx, client.ObjectKeyFromObject(&line[i]), &now)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		case err == nil && v.Arbiter.StandsBefore(&now, a):
			return &now, nil
		}
	}
	return nil, nil
}
