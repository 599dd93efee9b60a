package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// guardFile is rendered from the guard's template, for the operator's account in
// Namespace.
const guardFile = "config/guard/policies.yaml"

// guard applies the guard's policies and waits until they are in force.
func (i installer) guard(ctx context.Context) error {
	if !i.options.Guard {
		return nil
	}
	objects, err := readFile(filepath.Join(i.options.Root, guardFile))
	if err != nil {
		return err
	}
	return i.policies(ctx, objects)
}

// ApplyPolicies applies admission policies and their bindings, with admin's rights,
// and returns when the API server has them in force.
func ApplyPolicies(ctx context.Context, admin *rest.Config, policies []*unstructured.Unstructured) error {
	i, err := newInstaller(admin, Options{})
	if err != nil {
		return err
	}
	return i.policies(ctx, policies)
}

func (i installer) policies(ctx context.Context, policies []*unstructured.Unstructured) error {
	for _, o := range policies {
		if err := i.apply(ctx, o); err != nil {
			return err
		}
	}
	return errors.Join(i.validatingInForce(ctx), i.mutatingInForce(ctx))
}

// The API server does not tell when a policy is in force. But it learns of policies in
// the order in which they were stored: once it applies one that was stored last, of the
// same kind, it applies all. That one is about a ConfigMap that nobody means to store.

func canary() (name string, match *admissionv1.MatchResources) {
	name = "autoscale-guard-in-force-" + rand.String(8)
	return name, &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		ResourceNames: []string{name},
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
}

// tryCanary asks for the ConfigMap without storing it.
func tryCanary(ctx context.Context, admin kubernetes.Interface, name string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return admin.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func (i installer) validatingInForce(ctx context.Context) (err error) {
	policies := i.admin.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := i.admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	name, match := canary()
	meta := metav1.ObjectMeta{Name: name}
	defer func() {
		err = errors.Join(err, remove(ctx, policies, name), remove(ctx, bindings, name))
	}()
	if _, err := policies.Create(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: match,
		Validations:      []admissionv1.Validation{{Expression: "false", Message: name}},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := bindings.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		_, err := tryCanary(ctx, i.admin, name)
		switch {
		case err == nil:
			return errors.New("validating admission policies are not in force yet")
		case !apierrors.IsInvalid(err):
			return err
		}
		return nil
	})
}

func (i installer) mutatingInForce(ctx context.Context) (err error) {
	policies := i.admin.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := i.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	name, match := canary()
	meta := metav1.ObjectMeta{Name: name}
	defer func() {
		err = errors.Join(err, remove(ctx, policies, name), remove(ctx, bindings, name))
	}()
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: match,
		Mutations: []admissionv1.Mutation{{
			PatchType:          admissionv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: "Object{immutable: true}"},
		}},
		ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
	}}
	_, err = policies.Create(ctx, policy, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // This API server does not serve them.
	}
	if err != nil {
		return err
	}
	if _, err := bindings.Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
		PolicyName: name,
	}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		object, err := tryCanary(ctx, i.admin, name)
		if err == nil && (object.Immutable == nil || !*object.Immutable) {
			err = errors.New("mutating admission policies are not in force yet")
		}
		return err
	})
}

// deleter is a typed client of one resource.
type deleter interface {
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// remove deletes what may be there, also after ctx has ended.
func remove(ctx context.Context, resource deleter, name string) error {
	err := resource.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
