// Package webhook decides whether an object may be stored. Its handlers adapt the
// checks of api, scaling and binding to admission; they ask no metric source and
// look up only what the request names. The API server is told of them in
// config/webhook.
package webhook

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// SetupWithManager registers the webhooks. They serve on every replica, leader or
// not.
func SetupWithManager(mgr ctrl.Manager, autoscalers *AutoScalerValidator, profiles *MetricProfileValidator) error {
	defaulter := &admission.Webhook{Handler: &AutoScalerDefaulter{Defaults: autoscalers.Defaults}}
	mgr.GetWebhookServer().Register(DefaulterPath, defaulter)
	if err := ctrl.NewWebhookManagedBy(mgr, &v1alpha1.AutoScaler{}).WithValidator(autoscalers).Complete(); err != nil {
		return err
	}
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.MetricProfile{}).WithValidator(profiles).Complete()
}

// refuse turns errors into the API server's usual answer for an invalid object,
// or nil when there are none.
func refuse(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}

// added leaves out the errors that the stored object has too: an update may keep
// what is wrong, but not add to it.
func added(errs, stored field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, err := range stored {
		known[err.Error()] = true
	}
	var fresh field.ErrorList
	for _, err := range errs {
		if !known[err.Error()] {
			fresh = append(fresh, err)
		}
	}
	return fresh
}
