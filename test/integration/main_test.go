//go:build integration

// Package integration holds the operator to its promises on a real API server.
package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/webhook"
)

var (
	// admin is a client with all rights, as a person's.
	admin client.WithWatch
	// scheme knows every kind that the tests use.
	scheme = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true), zap.Level(zapcore.ErrorLevel)))
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	controlplane.Main(m, controlplane.Options{Webhooks: true}, func(cp *controlplane.ControlPlane) {
		if err := prepare(context.Background(), cp); err != nil {
			_ = cp.Stop()
			fmt.Fprintln(os.Stderr, "integration tests:", err)
			os.Exit(1)
		}
	})
}

// prepare serves the operator's webhooks from this process.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) (err error) {
	if admin, err = client.NewWithWatch(unlimited(cp.Config), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := controller.AddIndexes(ctx, indexes); err != nil {
		return err
	}
	serveWebhooks(ctx, cp)
	return exemptNamespaces(ctx)
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// serveWebhooks serves the operator's validators, as two replicas would that the
// API server asks in turn: each has an arbiter of its own.
func serveWebhooks(ctx context.Context, cp *controlplane.ControlPlane) {
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: cp.WebhookHost, Port: cp.WebhookPort, CertDir: cp.WebhookCertDir})
	operator, err := client.NewWithWatch(unlimited(cp.Operator), client.Options{Scheme: scheme})
	utilruntime.Must(err)
	replica := func() http.Handler {
		managers, err := binding.NewManagers(binding.ManagersOptions{Cached: indexed(operator), Live: operator})
		utilruntime.Must(err)
		arbiter := &binding.Arbiter{Live: operator, Writer: operator, Clock: clock.RealClock{}, Grace: binding.DefaultGrace, Managers: managers, Usable: usable}
		return admission.WithValidator(scheme, &webhook.AutoScalerValidator{
			Cached: indexed(operator), Live: operator, Arbiter: arbiter, Managers: managers,
			Limits: v1alpha1.DefaultLimits, FieldManager: controller.FieldManager,
		})
	}
	server.Register("/validate-autoscale-example-com-v1alpha1-autoscaler", &inTurn{replicas: []http.Handler{replica(), replica()}})
	server.Register(webhook.DefaulterPath, &admission.Webhook{Handler: &webhook.AutoScalerDefaulter{}})
	server.Register("/validate-autoscale-example-com-v1alpha1-metricprofile",
		admission.WithValidator(scheme, &webhook.MetricProfileValidator{Endpoints: []string{"main"}, Cached: indexed(operator)}))
	go func() { utilruntime.Must(server.Start(ctx)) }()
}

type inTurn struct {
	replicas []http.Handler
	next     atomic.Uint32
}

func (t *inTurn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.replicas[int(t.next.Add(1))%len(t.replicas)].ServeHTTP(w, r)
}

// exemptNamespaces lets tests store what admission would refuse, in namespaces
// that say so, and waits until the webhooks are asked everywhere else.
func exemptNamespaces(ctx context.Context) error {
	var config admissionv1.ValidatingWebhookConfiguration
	if err := admin.Get(ctx, client.ObjectKey{Name: "autoscale-operator"}, &config); err != nil {
		return err
	}
	var mutating admissionv1.MutatingWebhookConfiguration
	if err := admin.Get(ctx, client.ObjectKey{Name: "autoscale-operator"}, &mutating); err != nil {
		return err
	}
	elsewhere := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: withoutWebhooks, Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	for i := range config.Webhooks {
		config.Webhooks[i].NamespaceSelector = elsewhere
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].NamespaceSelector = elsewhere
	}
	for _, c := range []client.Object{&config, &mutating} {
		if err := admin.Update(ctx, c); err != nil {
			return err
		}
	}
	exempt, usual := namespace("exempt"), namespace("usual")
	exempt.Labels = map[string]string{withoutWebhooks: "true"}
	for _, ns := range []client.Object{exempt, usual} {
		if err := admin.Create(ctx, ns); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return tryUnknownProfile(ctx, exempt.Name) == nil && tryUnknownProfile(ctx, usual.Name) != nil, nil
	})
}

// tryUnknownProfile creates, as a dry run, what only the webhook refuses.
func tryUnknownProfile(ctx context.Context, namespace string) error {
	a := builders.MakeAutoScaler(namespace, "probe").Metric("load", "missing", "1").Obj()
	return admin.Create(ctx, a, client.DryRunAll)
}
