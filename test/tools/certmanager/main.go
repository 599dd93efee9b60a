// Command certmanager runs cert-manager's controllers for certificates and its CA
// injector in one process: those that issue from a CA or self-sign, without ACME and
// without its webhook. cert-manager's own commands are modules that no proxy serves,
// and their code is in its packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	// Each registers its controllers, or a kind of issuer.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// injectorAgent is how the CA injector calls itself: the manager of the fields that it
// writes is the part before the slash.
const injectorAgent = "cert-manager-cainjector/test"

// workers is cert-manager's default for each controller.
const workers = 5

func main() {
	// A set of its own: libraries have put a flag of this name into the common one.
	flags := flag.NewFlagSet("certmanager", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server, as somebody who may do what cert-manager does")
	_ = flags.Parse(os.Args[1:]) // It exits by itself.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "certmanager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	ctrl.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return inject(ctx, kubeconfig) })
	group.Go(func() error { return issue(ctx, kubeconfig) })
	return group.Wait()
}

// issue runs the controllers of issuers, certificates and their requests.
func issue(ctx context.Context, kubeconfig string) error {
	options := controller.ContextOptions{Kubeconfig: kubeconfig}
	options.ClusterResourceNamespace = "cert-manager"
	// The defaults of cert-manager's own command.
	options.CertificateRequestMinimumBackoffDuration = time.Hour
	options.CertificateRequestMaximumBackoffDuration = 32 * time.Hour
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	informers, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, construct := range controller.Known() {
		c, err := construct(factory)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		group.Go(func() error {
			err := c.Run(workers, ctx)
			if err == nil && ctx.Err() == nil {
				err = errors.New("it ended by itself")
			}
			if err != nil {
				return fmt.Errorf("controller %s: %w", name, err)
			}
			return nil
		})
	}
	informers.SharedInformerFactory.Start(ctx.Done())
	informers.KubeSharedInformerFactory.Start(ctx.Done())
	informers.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

// inject runs the CA injector.
func inject(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = injectorAgent
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, api.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
