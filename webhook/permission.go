package webhook

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// VerbClaim is the RBAC verb on scalebindings that a requester needs to take a
// replica count over, where the configuration asks for it.
const VerbClaim = "claim"

// AccessReviewer asks the API server's authorizer.
type AccessReviewer interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, opts metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// takeOver is the permission that one request needs to follow another AutoScaler as
// the owner of a replica count.
type takeOver struct {
	*AutoScalerValidator
	a    *v1alpha1.AutoScaler
	user authenticationv1.UserInfo
	// others says who the count is taken over from, of the count.
	others string
	// reviewed: the permission was needed, and the authorizer has spoken.
	reviewed bool
	// expected is the binding's epoch after a claim that needs no permission.
	expected int64
}

// takeOver asks for the permission where c follows another AutoScaler, or is to wait
// behind one, and adds an error where it is missing.
func (v *AutoScalerValidator) takeOver(ctx context.Context, a *v1alpha1.AutoScaler, c binding.Claimant, user authenticationv1.UserInfo, ahead *v1alpha1.AutoScaler, r *verdict) (*takeOver, error) {
	t := &takeOver{AutoScalerValidator: v, a: a, user: user, others: "was held by another AutoScaler"}
	if v.Access == nil {
		return t, nil
	}
	var b v1alpha1.ScaleBinding // stays at epoch 0 where there is none
	if err := client.IgnoreNotFound(v.Live.Get(ctx, targetOf(a), &b)); err != nil {
		return t, err
	}
	owner := lastOwner(&b)
	follows := b.Spec.Epoch > 0 && owner != a.Name // one that cannot be told counts as another
	switch {
	case follows && owner != "":
		t.others = fmt.Sprintf("is or was last held by AutoScaler %q", owner)
	case ahead != nil:
		t.others = fmt.Sprintf("is waited for by AutoScaler %q", ahead.Name)
	case !follows:
		t.expected = b.Spec.Epoch + 1
		return t, nil
	}
	if !v.waits(a) && (ahead != nil || errors.As(v.Arbiter.Check(ctx, c), new(*binding.HeldError))) {
		return t, nil // it is refused for the holder, and need not be for a permission
	}
	err := t.review(ctx, r)
	return t, err
}

// lastOwner names the AutoScaler that owns the binding, or owned it last; empty where
// that cannot be told.
func lastOwner(b *v1alpha1.ScaleBinding) string {
	if b.Spec.OwnerRef != nil {
		return b.Spec.OwnerRef.Name
	}
	for i := range b.Status.Transitions {
		if owner := b.Status.Transitions[i].Owner; owner != "" {
			return owner
		}
	}
	return ""
}

// confirm looks again where the binding was changed between the look at it and the
// claim: whoever held it in between was not reckoned with. The claim of a request
// that is refused here is freed after its grace.
func (t *takeOver) confirm(ctx context.Context, claimed *v1alpha1.ScaleBinding, r *verdict) error {
	if t.Access == nil || t.reviewed || claimed.Spec.Epoch <= t.expected {
		return nil
	}
	return t.review(ctx, r)
}

func (t *takeOver) review(ctx context.Context, r *verdict) error {
	t.reviewed = true
	extra := make(map[string]authorizationv1.ExtraValue, len(t.user.Extra))
	for key, values := range t.user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	answer, err := t.Access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: t.user.Username, UID: t.user.UID, Groups: t.user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: t.a.Namespace, Verb: VerbClaim, Name: t.a.Spec.TargetRef.Name,
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "scalebindings",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking whether %q may take over Deployment %s: %w", t.user.Username, targetOf(t.a), err)
	}
	if !answer.Status.Allowed {
		r.errs = append(r.errs, field.Forbidden(targetPath, fmt.Sprintf(
			"the replica count of Deployment %q %s, and the platform asks for a permission to take it over: %q needs a Role in namespace %q with the verb %q on resource scalebindings of group %s, resourceNames [%s]",
			t.a.Spec.TargetRef.Name, t.others, t.user.Username, t.a.Namespace, VerbClaim, v1alpha1.GroupVersion.Group, t.a.Spec.TargetRef.Name)))
	}
	return nil
}
