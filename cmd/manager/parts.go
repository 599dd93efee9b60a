package main

import (
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/webhook"
)

// newManagers watches the other replica managers on every replica.
func newManagers(mgr ctrl.Manager, cfg *config.Config, o *options) (*binding.Managers, error) {
	objects, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	managers, err := binding.NewManagers(binding.ManagersOptions{
		Cached: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Dynamic: objects, Discovery: clientset.Discovery(),
		Registered: cfg.Managers.Registered(), Namespaces: o.watchNamespaces, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	return managers, mgr.Add(managers)
}

// addWebhooks serves admission on every replica.
func addWebhooks(mgr ctrl.Manager, cfg *config.Config, o *options, arbiter *binding.Arbiter, managers *binding.Managers) error {
	defaults, err := cfg.Defaults.Values()
	if err != nil {
		return err
	}
	platformRules, err := cfg.Rules.Compile(defaults)
	if err != nil {
		return err
	}
	autoscalers := &webhook.AutoScalerValidator{
		Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Arbiter: arbiter, Managers: managers,
		Limits: cfg.Bounds(), Defaults: defaults, Rules: platformRules, FieldManager: controller.FieldManager,
		Namespaces: o.watchNamespaces,
	}
	if cfg.Claims.RequirePermission {
		clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return err
		}
		autoscalers.Access = clientset.AuthorizationV1().SubjectAccessReviews()
	}
	return webhook.SetupWithManager(mgr, autoscalers, &webhook.MetricProfileValidator{
		Endpoints: cfg.EndpointNames(), Cached: mgr.GetClient(), Namespaces: o.watchNamespaces,
	})
}

// addReconcilers runs the reconcilers on the leader, and what asks the metrics for
// them: an operator that decides nothing need not know anything.
func addReconcilers(mgr ctrl.Manager, cfg *config.Config, o *options, arbiter *binding.Arbiter, managers *binding.Managers, source *prometheus.Client) error {
	telemetry := controller.NewTelemetry(mgr.GetClient(), clock.RealClock{})
	autoscalers := &controller.Reconciler{
		Client: mgr.GetClient(), Arbiter: arbiter, Managers: managers, Telemetry: telemetry,
		Events: mgr.GetEventRecorder(controller.FieldManager), Limits: cfg.Bounds(), Clock: clock.RealClock{},
		Jitter: func(d time.Duration) time.Duration { return wait.Jitter(d, 0.05) },
	}
	sampler := prometheus.NewSampler(source, prometheus.SamplerOptions{
		Clock: clock.RealClock{}, Jitter: rand.Float64, Wake: autoscalers.Wake, Observer: telemetry,
	})
	autoscalers.Sampler = sampler
	return errors.Join(
		metrics.Registry.Register(telemetry),
		mgr.Add(telemetry),
		mgr.Add(manager.RunnableFunc(sampler.Run)),
		autoscalers.SetupWithManager(mgr, o.maxConcurrent),
		(&controller.GuardReconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr),
		(&controller.RetentionReconciler{Client: mgr.GetClient(), Arbiter: arbiter, Clock: clock.RealClock{}}).SetupWithManager(mgr),
	)
}
