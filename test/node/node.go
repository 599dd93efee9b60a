// Package node runs a real node beside the control plane of test/cluster: a
// kubelet, containerd and runc, kube-proxy and CoreDNS, with pods that run
// containers, have addresses and find Services by name. It needs Linux, root and a
// few Debian packages, and no Docker; nothing is downloaded.
//
// The node lives in network, mount and process namespaces of its own. Nothing of
// it shows in the machine's processes' view but a cable, two routes to its pods
// and Services, and a cgroup; and nothing remains when it has stopped. When the
// process that started it dies, the kernel ends everything but the folder and the
// cgroup, which the next start removes.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/filelock"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// Name is the name of the Node.
const Name = "node-1"

// Options describe a node and its control plane.
type Options struct {
	// CertManager runs cert-manager's controllers and its CA injector, with its CRDs
	// installed.
	CertManager bool
	// AuditLog makes the API server record all requests; see Cluster.AuditLogPath.
	AuditLog bool
	// Progress receives what is being built and started; nil discards it.
	Progress io.Writer
}

// Tools are the programs that the options call for, but for the control plane's.
func (o Options) Tools() []binaries.Tool {
	tools := []binaries.Tool{binaries.Kubelet, binaries.KubeProxy, binaries.Kubectl, binaries.CoreDNS}
	if o.CertManager {
		tools = append(tools, binaries.CertManager)
	}
	return tools
}

// Node is a running node with its control plane.
type Node struct {
	options   Options
	dir       string
	binaries  binaries.Set
	lock      *filelock.Lock
	network   network
	cgroup    cgroup
	sandbox   *sandbox
	cluster   *cluster.Cluster
	processes []*process.Process
}

// Start brings up a control plane and a node, and returns when the node is Ready
// and names of Services are resolved. On any error nothing is left.
func Start(ctx context.Context, options Options) (*Node, error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	if err := errors.Join(checkMachine(), reachDirectly()); err != nil {
		return nil, err
	}
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return nil, err
	}
	set, err := binaries.Build(ctx, options.Progress, append(options.cluster(network{}).Tools(), options.Tools()...)...)
	if err != nil {
		return nil, err
	}
	n, err := claim(ctx, filepath.Join(root, "bin", "test"))
	if err != nil {
		return nil, err
	}
	n.options, n.binaries = options, set
	if err := n.start(ctx, root); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

// step is a part of a start.
type step struct {
	name string
	do   func(context.Context) error
}

// start does its steps in order, and says of each how long it took.
func (n *Node) start(ctx context.Context, root string) error {
	steps := []step{
		{"images", func(ctx context.Context) error { return n.makeImages(ctx, root) }},
		{"namespaces", n.startSandbox},
		{"control plane", n.startCluster},
		{"containerd", n.startContainerd},
		{"kubelet", n.startKubelet},
		{"kube-proxy", n.startProxy},
		{"DNS", n.startDNS},
	}
	if n.options.CertManager {
		steps = append(steps, step{"cert-manager", n.startCertManager})
	}
	for _, s := range steps {
		begun := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("a real node: %s: %w", s.name, err)
		}
		fmt.Fprintf(n.options.Progress, "  %s is ready (%s)\n", s.name, time.Since(begun).Round(10*time.Millisecond))
	}
	return nil
}

func (n *Node) startSandbox(ctx context.Context) error {
	if err := n.cgroup.create(); err != nil {
		return err
	}
	var err error
	if n.sandbox, err = newSandbox(ctx, n.dir, n.path(pauseName)); err != nil {
		return err
	}
	return n.network.connect(ctx, n.sandbox)
}

// clusterName is the folder of the control plane in the node's.
const clusterName = "cluster"

func (o Options) cluster(where network) cluster.Options {
	return cluster.Options{
		Kubelet:  &cluster.Kubelet{Node: Name, Address: where.outside, Services: where.services},
		AuditLog: o.AuditLog,
		Progress: o.Progress,
	}
}

func (n *Node) startCluster(ctx context.Context) error {
	options := n.options.cluster(n.network)
	options.Dir, options.Binaries = n.path(clusterName), n.binaries
	var err error
	n.cluster, err = cluster.Start(ctx, options)
	return err
}

func (n *Node) path(name string) string { return filepath.Join(n.dir, name) }

// Cluster is the control plane; StopAPIServer and StartAPIServer are there.
func (n *Node) Cluster() *cluster.Cluster { return n.cluster }

// Kubeconfig is the path of the administrator's kubeconfig.
func (n *Node) Kubeconfig() string { return n.cluster.Kubeconfig() }

// RESTConfig is the client configuration of an administrator. The caller may
// change the copy that it gets.
func (n *Node) RESTConfig() *rest.Config { return n.cluster.Config() }

// Dir is the folder of everything of the node; each component's log is there as
// <name>.log, the control plane's in its folder cluster.
func (n *Node) Dir() string { return n.dir }

// Address is this machine's address as the node and its pods see it: what listens
// there is reached by them.
func (n *Node) Address() netip.Addr { return n.network.outside }

// Command is how to run a command as one of the node's own, in its network and among
// its mounts and processes. It is for drills: one that cuts a pod off is
// "iptables --insert FORWARD --source ADDRESS --jump DROP".
func (n *Node) Command(args ...string) []string { return n.sandbox.command(args...) }

func (n *Node) client() (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(n.RESTConfig())
}

// Stop ends node and control plane and removes everything of them. It may be
// called again.
func (n *Node) Stop() error {
	lock := n.lock
	if lock == nil {
		return nil
	}
	n.lock = nil
	var err error
	// The sandbox first: the kernel ends whatever is in it, at once.
	if n.sandbox != nil {
		err = n.sandbox.stop()
	}
	for _, p := range n.processes {
		err = errors.Join(err, p.Stop())
	}
	if n.cluster != nil {
		err = errors.Join(err, n.cluster.Stop())
	}
	// What cannot be removed now is tried again by the next start.
	return errors.Join(err, n.wipe(context.Background()), lock.Remove())
}
