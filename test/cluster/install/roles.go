package install

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// roles applies the generated roles and gives them to the operator's account.
func (i installer) roles(ctx context.Context) error {
	objects, err := i.read("config/rbac", false)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := i.apply(ctx, o); err != nil {
			return err
		}
		switch o.GetKind() {
		case "ClusterRole", "Role":
			if err := i.apply(ctx, binding(o)); err != nil {
				return err
			}
		}
	}
	return nil
}

// binding gives role to the operator's account, under the role's own name.
func binding(role *unstructured.Unstructured) *unstructured.Unstructured {
	b := object(rbacv1.SchemeGroupVersion.String(), role.GetKind()+"Binding", role.GetNamespace(), role.GetName())
	b.Object["roleRef"] = map[string]any{
		"apiGroup": rbacv1.GroupName, "kind": role.GetKind(), "name": role.GetName(),
	}
	b.Object["subjects"] = []any{map[string]any{
		"kind": rbacv1.ServiceAccountKind, "namespace": Namespace, "name": ServiceAccount,
	}}
	return b
}

// permitted waits until the API server grants a right out of each role, which
// it does a moment after the binding is stored.
func (i installer) permitted(ctx context.Context, operator *rest.Config) error {
	clientset, err := kubernetes.NewForConfig(operator)
	if err != nil {
		return err
	}
	roles, err := i.read("config/rbac", false)
	if err != nil {
		return err
	}
	for _, o := range roles {
		var role rbacv1.ClusterRole // A Role has the same rules.
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if len(role.Rules) == 0 || len(role.Rules[0].Resources) == 0 {
			continue
		}
		rule := role.Rules[0]
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: o.GetNamespace(), Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
			},
		}}
		err := eventually(ctx, func(ctx context.Context) error {
			answer, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("%s %s: not granted: %+v", o.GetKind(), o.GetName(), *review.Spec.ResourceAttributes)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
