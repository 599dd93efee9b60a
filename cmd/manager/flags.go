package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/util/validation"
	clientconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/platform/autoscale-operator/controller"
)

// Where the serving certificate comes from.
const (
	certificatesProvided    = "provided"
	certificatesSelfManaged = "self-managed"
)

// options are the command line.
type options struct {
	config    string
	namespace string
	// watchNamespaces are sorted; none stands for all.
	watchNamespaces       []string
	metricsAddress        string
	metricsSecure         bool
	probeAddress          string
	webhookPort           int
	webhookCertDir        string
	webhookService        string
	webhookConfigurations string
	certificates          string
	certSecret            string
	leaderElect           bool
	maxConcurrent         int
	gracefulShutdown      time.Duration
	shutdownDelay         time.Duration
	version               bool
	logging               zap.Options
}

// parse reads the arguments. The error is flag.ErrHelp, or tells what is wrong with
// them.
func parse(args []string) (*options, error) {
	o := &options{}
	flags := o.flags()
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, fmt.Errorf("%q is no flag; each begins with --", rest[0])
	}
	if o.version {
		return o, nil
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet(controller.FieldManager, flag.ContinueOnError)
	f.SetOutput(io.Discard) // the caller tells of errors
	f.StringVar(&o.config, "config", "/etc/autoscale-operator/config.yaml", "configuration file: limits, Prometheus endpoints, defaults, rules; see docs/configuration.md")
	f.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the operator itself, where its lease is; by default $POD_NAMESPACE")
	f.Var(&namespaces{&o.watchNamespaces}, "watch-namespaces", "namespaces whose AutoScalers are managed, separated by commas; empty for all")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", `address of the operator's own metrics; "0" turns them off`)
	f.BoolVar(&o.metricsSecure, "metrics-secure", true, "serve metrics by HTTPS, with the webhooks' certificate, to those who may get /metrics by the API server's word")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "port of the admission webhooks")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", "/var/run/autoscale-operator/certs", "folder of the webhooks' tls.crt, tls.key and, if there is one, ca.crt")
	f.StringVar(&o.webhookService, "webhook-service", "", "name of the Service in front of the webhooks, in the operator's namespace; self-managed certificates are for it")
	f.StringVar(&o.webhookConfigurations, "webhook-configurations", "", "name of the operator's ValidatingWebhookConfiguration and MutatingWebhookConfiguration")
	f.StringVar(&o.certificates, "certificates", certificatesProvided, "provided: somebody else, such as cert-manager, writes the files of --webhook-cert-dir; self-managed: the operator keeps them in --cert-secret")
	f.StringVar(&o.certSecret, "cert-secret", "", "Secret of the serving certificate, in the operator's namespace")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "run the reconcilers on one replica at a time; needed with two replicas or more")
	f.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 16, "AutoScalers evaluated at once; an evaluation waits for the API server alone, never for a metric")
	f.DurationVar(&o.gracefulShutdown, "graceful-shutdown-timeout", 20*time.Second, "time for evaluations under way to end")
	f.DurationVar(&o.shutdownDelay, "shutdown-delay", 5*time.Second, "time to go on serving, not ready any more, after the signal to end: until the Service has forgotten this replica")
	f.BoolVar(&o.version, "version", false, "print the version and end")
	clientconfig.RegisterFlags(f)
	// A stack trace of the logger's caller says nothing about an error of the API server.
	o.logging.StacktraceLevel = zapcore.PanicLevel
	o.logging.BindFlags(f)
	return f
}

// usage lists the flags.
func usage() string {
	var text strings.Builder
	f := (&options{}).flags()
	f.SetOutput(&text)
	fmt.Fprintf(&text, "Usage of %s:\n", controller.FieldManager)
	f.PrintDefaults()
	return text.String()
}

func (o *options) validate() error {
	var errs []error
	need := func(name, value, why string) {
		if value == "" {
			errs = append(errs, fmt.Errorf("--%s is needed: %s", name, why))
		}
	}
	need("namespace", o.namespace, "the operator's lease is there; in a Pod, set POD_NAMESPACE from metadata.namespace")
	switch o.certificates {
	case certificatesProvided:
	case certificatesSelfManaged:
		need("cert-secret", o.certSecret, "self-managed certificates are kept in it")
		need("webhook-service", o.webhookService, "self-managed certificates are for its name")
		need("webhook-configurations", o.webhookConfigurations, "self-managed certificates are made known there")
	default:
		errs = append(errs, fmt.Errorf("--certificates is %q; it must be %s or %s", o.certificates, certificatesProvided, certificatesSelfManaged))
	}
	return errors.Join(errs...)
}

// namespaces is a flag's list of them: sorted, each once.
type namespaces struct{ list *[]string }

// String is the flag's value.
func (n *namespaces) String() string {
	if n.list == nil {
		return ""
	}
	return strings.Join(*n.list, ",")
}

// Set reads the flag's value.
func (n *namespaces) Set(value string) error {
	list, err := splitNamespaces(value)
	*n.list = list
	return err
}

func splitNamespaces(value string) ([]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	list := strings.Split(value, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
		if problems := validation.IsDNS1123Label(list[i]); len(problems) > 0 {
			return nil, fmt.Errorf("%q is no name of a namespace: %s", list[i], strings.Join(problems, "; "))
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// watching says which namespaces these are.
func watching(list []string) string {
	switch len(list) {
	case 0:
		return "all namespaces"
	case 1:
		return "namespace " + list[0]
	}
	return "namespaces " + strings.Join(list, ", ")
}
