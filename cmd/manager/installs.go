package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchAnnotation is on the ValidatingWebhookConfiguration of each install: the
// namespaces that it watches, separated by commas, or allNamespaces. What an install
// is asked about is what it is there for, so that object tells of it; reading it
// needs no right on anything in another install's namespace.
const (
	watchAnnotation = "autoscale.example.com/watch-namespaces"
	allNamespaces   = "*"
)

// installCheckInterval is the time between two looks at the other installs.
const installCheckInterval = time.Minute

// overlapError says that another install watches some of the same namespaces, or runs in
// the namespace of this one.
type overlapError struct {
	other      *admissionv1.ValidatingWebhookConfiguration
	its, these []string
	// shared is the namespace that both run in, if any.
	shared string
}

// Error names the other install and the ways out.
func (e *overlapError) Error() string {
	remove := "kubectl delete validatingwebhookconfiguration " + e.other.Name
	if release := e.other.Annotations["meta.helm.sh/release-name"]; release != "" {
		remove = fmt.Sprintf("helm -n %s uninstall %s", e.other.Annotations["meta.helm.sh/release-namespace"], release)
	}
	if e.shared != "" {
		return fmt.Sprintf("another autoscale-operator runs in namespace %s, as this one does: its ValidatingWebhookConfiguration is %q; "+
			"they would share one lease, and all but one of their replicas would stand by: install this one into a namespace of its own, or remove the other (%s)",
			e.shared, e.other.Name, remove)
	}
	return fmt.Sprintf("another autoscale-operator is installed for %s, and this one is for %s: its ValidatingWebhookConfiguration is %q; "+
		"two of them would both scale the same Deployments: set watchNamespaces of each so that no namespace is in both, or remove the other (%s)",
		watching(e.its), watching(e.these), e.other.Name, remove)
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list

// soleInstall gives an *overlapError where an install that was there before this one
// watches some of the same namespaces, or runs in the same one.
func soleInstall(ctx context.Context, reader client.Reader, o *options) error {
	var all admissionv1.ValidatingWebhookConfigurationList
	if err := reader.List(ctx, &all); err != nil {
		return fmt.Errorf("looking for other installs of the operator: %w", err)
	}
	return overlapping(all.Items, o)
}

// overlapping looks for the oldest of the other installs that overlap. Of two that do,
// the older one stays, whichever is started or changed later: exactly one of them runs.
func overlapping(all []admissionv1.ValidatingWebhookConfiguration, o *options) error {
	slices.SortFunc(all, func(a, b admissionv1.ValidatingWebhookConfiguration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range all {
		value, isInstall := all[i].Annotations[watchAnnotation]
		switch {
		case isOwn(&all[i], o):
			return nil
		case !isInstall:
			continue
		}
		var its []string
		if value != allNamespaces {
			// A list that cannot be read stands for all namespaces.
			its, _ = splitNamespaces(value)
		}
		if intersect(its, o.watchNamespaces) {
			return &overlapError{other: &all[i], its: its, these: o.watchNamespaces}
		}
		if runsIn(&all[i], o.namespace) {
			return &overlapError{other: &all[i], shared: o.namespace}
		}
	}
	return nil
}

// isOwn: of the name that this process was given, and for a Service in its own
// namespace, or none.
func isOwn(c *admissionv1.ValidatingWebhookConfiguration, o *options) bool {
	return c.Name == o.webhookConfigurations && !slices.ContainsFunc(c.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return w.ClientConfig.Service != nil && w.ClientConfig.Service.Namespace != o.namespace
	})
}

// runsIn says whether an install's webhooks are served from a namespace.
func runsIn(c *admissionv1.ValidatingWebhookConfiguration, namespace string) bool {
	return slices.ContainsFunc(c.Webhooks, func(w admissionv1.ValidatingWebhook) bool {
		return w.ClientConfig.Service != nil && w.ClientConfig.Service.Namespace == namespace
	})
}

// intersect says whether two lists of namespaces, where an empty one stands for all,
// have one in common.
func intersect(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// addInstallCheck goes on looking: an install that is older than this one may be told
// to watch more. The process ends then, with the reason as its last line.
func (p *process) addInstallCheck() error {
	return p.mgr.Add(everywhere(func(ctx context.Context) error {
		ticker := time.NewTicker(installCheckInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			err := soleInstall(ctx, p.mgr.GetAPIReader(), p.options)
			var overlap *overlapError
			if errors.As(err, &overlap) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				ctrl.Log.Error(err, "whether another install watches the same namespaces is looked at again in a while")
			}
		}
	}))
}
