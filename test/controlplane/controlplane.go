// Package controlplane gives integration tests a real API server with the
// operator's CRDs, account and, on request, webhooks installed, and tells what
// requests it was sent.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
)

// AssetsEnv names the environment variable for a folder with etcd and
// kube-apiserver to use in place of the built ones.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// Options describe a control plane.
type Options struct {
	// Webhooks registers the operator's webhooks, which the test must serve at
	// WebhookHost:WebhookPort with the certificate in WebhookCertDir. While it
	// does not, the API server refuses the objects that they check.
	Webhooks bool
	// Guard installs the operator's admission policies: while a ScaleGuard says that
	// a Deployment is held, and whoever else would write a ScaleGuard or a
	// ScaleBinding, they are refused.
	Guard bool
	// Controllers runs kube-controller-manager too.
	Controllers bool
	// Nodes, if set, makes pods ready; see cluster.Options.
	Nodes *cluster.Nodes
	// Progress receives what is being built and started; nil discards it.
	Progress io.Writer
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Config is an administrator's client configuration.
	Config *rest.Config
	// Operator is the client configuration of the operator's own account, with
	// the rights of config/rbac and no others.
	Operator *rest.Config
	// OperatorKubeconfig is the same as a file.
	OperatorKubeconfig string
	// WebhookHost, WebhookPort and WebhookCertDir (tls.crt, tls.key) are where
	// the webhooks must be served, if Options.Webhooks is set.
	WebhookHost    string
	WebhookPort    int
	WebhookCertDir string

	cluster *cluster.Cluster
	audit   *auditLog
}

// OperatorUser is the name under which the API server knows ControlPlane.Operator.
const OperatorUser = "system:serviceaccount:" + install.Namespace + ":" + install.ServiceAccount

// Main is for a TestMain: it starts a control plane, hands it to use, runs the
// tests, stops the control plane, and exits with the tests' result.
func Main(m *testing.M, options Options, use func(*ControlPlane)) {
	if options.Progress == nil {
		options.Progress = os.Stderr
	}
	cp, err := Start(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	use(cp)
	code := m.Run()
	if err := cp.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start starts a control plane and installs the checkout's config/ folder.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return nil, err
	}
	set, err := programs(ctx, options)
	if err != nil {
		return nil, err
	}
	c, err := startInFreeDir(ctx, filepath.Join(root, "bin", "test"), options.cluster(set))
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{Config: c.Config(), cluster: c, audit: newAuditLog(c.AuditLogPath())}
	if err := cp.install(ctx, root, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return cp, nil
}

func (o Options) cluster(set binaries.Set) cluster.Options {
	return cluster.Options{
		Binaries: set, Controllers: o.Controllers, Nodes: o.Nodes, AuditLog: true, Progress: o.Progress,
	}
}

// programs are built or cached ones, but for those that AssetsEnv supplies.
func programs(ctx context.Context, options Options) (binaries.Set, error) {
	tools := options.cluster(nil).Tools()
	dir := os.Getenv(AssetsEnv)
	if dir == "" {
		return binaries.Build(ctx, options.Progress, tools...)
	}
	set, err := binaries.FromDir(dir, binaries.Etcd, binaries.KubeAPIServer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AssetsEnv, err)
	}
	var more []binaries.Tool
	for _, tool := range tools {
		if _, given := set[tool]; !given {
			more = append(more, tool)
		}
	}
	built, err := binaries.Build(ctx, options.Progress, more...)
	if err != nil {
		return nil, err
	}
	for tool, path := range built {
		set[tool] = path
	}
	return set, nil
}

// startInFreeDir takes the first numbered folder below parent that no live
// process uses. So the folders of killed tests are found and cleared by later ones.
func startInFreeDir(ctx context.Context, parent string, options cluster.Options) (*cluster.Cluster, error) {
	for n := 1; ; n++ {
		options.Dir = filepath.Join(parent, "controlplane-"+strconv.Itoa(n))
		c, err := cluster.Start(ctx, options)
		if !errors.Is(err, cluster.ErrInUse) {
			return c, err
		}
	}
}

func (cp *ControlPlane) install(ctx context.Context, root string, options Options) error {
	port := 0
	if options.Webhooks {
		var err error
		if port, err = cp.cluster.ReservePort(); err != nil {
			return err
		}
	}
	installation, err := install.Apply(ctx, cp.Config, install.Options{
		Root: root, Dir: filepath.Join(cp.cluster.Dir(), "operator"), WebhookPort: port, Guard: options.Guard,
	})
	if err != nil {
		return err
	}
	cp.Operator, cp.OperatorKubeconfig = installation.Config, installation.Kubeconfig
	if options.Webhooks {
		cp.WebhookHost, cp.WebhookPort, cp.WebhookCertDir = install.WebhookHost, port, installation.CertDir
	}
	return nil
}

// UserConfig is the client configuration of a user with these groups, who has
// the rights that the test gives to them.
func (cp *ControlPlane) UserConfig(name string, groups ...string) *rest.Config {
	config := rest.CopyConfig(cp.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return config
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (cp *ControlPlane) Kubeconfig() string { return cp.cluster.Kubeconfig() }

// Stop ends the control plane and removes everything of it.
func (cp *ControlPlane) Stop() error { return cp.cluster.Stop() }
