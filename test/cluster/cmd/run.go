package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
)

// up makes sure that the cluster runs, and says how to use it.
func up(ctx context.Context, nodes *nodeFlags) error {
	p, err := here()
	if err != nil {
		return err
	}
	// Built here, where progress can be seen, and not in the background.
	options := nodes.options(p.cluster())
	set, err := binaries.Build(ctx, os.Stderr, append(options.Tools(), binaries.Kubectl)...)
	if err != nil {
		return err
	}
	kubectl := filepath.Join(p.root, "bin", "kubectl")
	if err := link(set.Path(binaries.Kubectl), kubectl); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	already, err := cluster.Up(ctx, p.cluster(), os.Stderr, func() *exec.Cmd {
		c := exec.Command(self, append([]string{"supervise"}, nodes.arguments()...)...) //nolint:noctx // this program; it outlives the context
		c.Dir = p.root
		return c
	})
	if err != nil {
		return err
	}
	state := "The cluster is up."
	if already {
		state = "The cluster is already up."
	}
	fmt.Fprintf(os.Stderr, "%s Try: %s --kubeconfig=%s get namespaces\n", state, p.relative(kubectl), p.relative(p.kubeconfig()))
	fmt.Println(p.relative(p.kubeconfig()))
	return nil
}

// link makes a symbolic link at path, in place of what is there.
func link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, path)
}

func installCommand() *cobra.Command {
	var port int
	c := &cobra.Command{
		Use:   "install",
		Short: "Install CRDs, the operator's account and, with a port, its webhooks into the cluster that runs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			result, err := installed(c.Context(), port)
			if err != nil {
				return err
			}
			fmt.Println(result.Kubeconfig)
			return nil
		},
	}
	c.Flags().IntVar(&port, "webhook-port", 0, "port of 127.0.0.1 on which the operator will serve its webhooks; 0 installs none")
	return c
}

// installed installs the checkout into its running cluster.
func installed(ctx context.Context, webhookPort int) (*install.Installation, error) {
	p, err := here()
	if err != nil {
		return nil, err
	}
	admin, err := cluster.Admin(p.cluster())
	if err != nil {
		return nil, fmt.Errorf("no cluster is running (make cluster-up starts one): %w", err)
	}
	return install.Apply(ctx, admin, install.Options{Root: p.root, Dir: filepath.Join(p.cluster(), "operator"), WebhookPort: webhookPort, Guard: true})
}

func runCommand() *cobra.Command {
	var nodes nodeFlags
	var config string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the operator of this checkout against the cluster, starting that if need be",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := up(c.Context(), &nodes); err != nil {
				return err
			}
			return run(c.Context(), config)
		},
	}
	nodes.add(c)
	c.Flags().StringVar(&config, "config", filepath.Join("config", "manager", "config.yaml"), "the operator's configuration file")
	return c
}

// run builds the operator and becomes it.
func run(ctx context.Context, config string) error {
	p, err := here()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(config) {
		config = filepath.Join(p.root, config)
	}
	if _, err := os.Stat(config); err != nil {
		return fmt.Errorf("the operator's configuration file: %w", err)
	}
	manager := filepath.Join(p.root, "bin", "manager")
	build := exec.CommandContext(ctx, "go", "build", "-o", manager, "./cmd/manager")
	build.Dir, build.Stdout, build.Stderr = p.root, os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/manager: %w", err)
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	installation, err := installed(ctx, ports[0])
	if err != nil {
		return err
	}
	metrics, probes := "127.0.0.1:"+strconv.Itoa(ports[1]), "127.0.0.1:"+strconv.Itoa(ports[2])
	fmt.Fprintf(os.Stderr, "The operator runs as system:serviceaccount:%s:%s; Ctrl-C ends it, the cluster stays.\n"+
		"  config   %s\n  metrics  http://%s/metrics\n  health   http://%s/healthz, /readyz\n",
		install.Namespace, install.ServiceAccount, p.relative(config), metrics, probes)
	// Exec, so that Ctrl-C and other signals reach the operator itself.
	return syscall.Exec(manager, []string{
		manager,
		"--kubeconfig=" + installation.Kubeconfig,
		"--config=" + config,
		"--namespace=" + install.Namespace,
		"--webhook-cert-dir=" + installation.CertDir,
		"--webhook-port=" + strconv.Itoa(installation.WebhookPort),
		"--metrics-bind-address=" + metrics,
		"--health-probe-bind-address=" + probes,
		"--metrics-secure=false",
		"--webhook-configurations=autoscale-operator",
		"--shutdown-delay=0s",
		"--leader-elect=true",
	}, os.Environ())
}

// freePorts are ports for the operator. They are not reserved beyond this call:
// the operator opens them a moment later.
func freePorts(count int) (_ []int, err error) {
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	taken := cluster.NewPorts(filepath.Join(cache, "ports"))
	defer func() { err = errors.Join(err, taken.Release()) }()
	ports := make([]int, 0, count)
	for range count {
		port, err := taken.Take()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
