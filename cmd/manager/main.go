// The manager runs the operator: webhooks on every replica, reconcilers on the
// leader. It only wires; what it wires is in the packages.
package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

type options struct {
	config           string
	namespace        string
	metricsAddress   string
	probeAddress     string
	webhookPort      int
	webhookCertDir   string
	leaderElect      bool
	maxConcurrent    int
	gracefulShutdown time.Duration
}

func main() {
	o := options{}
	flag.StringVar(&o.config, "config", "/etc/autoscale-operator/config.yaml", "configuration file: limits, Prometheus endpoints, defaults, rules; see docs/configuration.md")
	flag.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the operator itself, where its lease is")
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", `address of the operator's own metrics; "0" turns them off`)
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the admission webhooks")
	flag.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/var/run/autoscale-operator/certs", "folder of the webhooks' tls.crt and tls.key")
	flag.BoolVar(&o.leaderElect, "leader-elect", true, "run the reconcilers on one replica at a time; needed with two replicas or more")
	flag.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 16, "AutoScalers evaluated at once; an evaluation waits for the API server alone, never for a metric")
	flag.DurationVar(&o.gracefulShutdown, "graceful-shutdown-timeout", 20*time.Second, "time for evaluations under way to end")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(&o); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run(o *options) error {
	cfg, err := loadConfig(o.config)
	if err != nil {
		return err
	}
	source, err := prometheus.NewClient(cfg.Endpoints, time.Now)
	if err != nil {
		return err
	}
	rest, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := newManager(rest, o)
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	if err := controller.AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	managers, err := newManagers(mgr, cfg)
	if err != nil {
		return err
	}
	arbiter := &binding.Arbiter{
		Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Clock: clock.RealClock{}, Grace: binding.DefaultGrace, Managers: managers,
		Usable: func(a *v1alpha1.AutoScaler) bool { return len(spec.ValidateAutoScaler(a, cfg.limits())) == 0 },
	}
	if err := addWebhooks(mgr, cfg, arbiter, managers); err != nil {
		return err
	}
	if err := addReconcilers(mgr, cfg, o, arbiter, managers, source); err != nil {
		return err
	}
	if err := addChecks(ctx, mgr, o); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
