// Package cluster runs a real control plane from binaries built from pinned Go
// modules: etcd, kube-apiserver and, on request, kube-controller-manager and
// nodes whose pods become ready. It needs no container runtime, no root and no
// network, listens on loopback alone, and leaves nothing behind, however it ends.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/filelock"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// Names in a cluster's directory.
const (
	kubeconfigName = "kubeconfig"
	auditLogName   = "audit.log"
	lockName       = "cluster.lock"
	ownerName      = "owner"
)

// componentStopWithin is shorter than the API server would like: it waits for
// open watches, and there is nothing that a hard end could lose.
const componentStopWithin = 500 * time.Millisecond

// ErrInUse says that another process runs a cluster in the same directory.
var ErrInUse = errors.New("a cluster runs there already")

// Options describe a cluster.
type Options struct {
	// Dir holds everything of the cluster and is removed with it. What an earlier
	// cluster left there is removed, and its processes are killed; a directory
	// with anything else in it is refused.
	Dir string
	// Binaries are the programs, at least those that Tools names; nil builds
	// them, or finds them in the cache.
	Binaries binaries.Set
	// Controllers runs kube-controller-manager, with the Deployment, ReplicaSet,
	// HPA, garbage collection and namespace controllers and more.
	Controllers bool
	// Nodes, if set, gives the cluster nodes and a scheduler; without them all
	// pods stay Pending. It implies Controllers.
	Nodes *Nodes
	// Kubelet, if set, prepares the control plane for a node with real containers.
	// It implies Controllers, all of them, and a scheduler, and excludes Nodes.
	Kubelet *Kubelet
	// ServiceSocket, if set, is the Unix socket of an HTTP proxy through which the API
	// server connects to Services: a cluster without a kubelet has no network for them.
	ServiceSocket string
	// AuditLog makes the API server record all requests; see Cluster.AuditLogPath.
	AuditLog bool
	// Progress receives a line per component, and the progress of a build; nil
	// discards it.
	Progress io.Writer
}

// Nodes are the nodes of a cluster. They run no containers: kwok says of each
// pod that it is ready.
type Nodes struct {
	// Count is the number of nodes, 1 or more.
	Count int
	// ReadyDelay is how long a pod that has a node stays not ready.
	ReadyDelay time.Duration
}

// Tools are the programs that the options call for.
func (o Options) Tools() []binaries.Tool {
	tools := []binaries.Tool{binaries.Etcd, binaries.KubeAPIServer}
	if o.Controllers || o.scheduled() {
		tools = append(tools, binaries.KubeControllerManager)
	}
	if o.scheduled() {
		tools = append(tools, binaries.KubeScheduler)
	}
	if o.Nodes != nil {
		tools = append(tools, binaries.Kwok)
	}
	return tools
}

// scheduled reports whether there is a node that pods can be given to.
func (o Options) scheduled() bool { return o.Nodes != nil || o.Kubelet != nil }

// Cluster is a running cluster.
type Cluster struct {
	dir       string
	config    *rest.Config
	lock      *filelock.Lock
	ports     *Ports
	processes []*process.Process
	// ended is closed when the first component has ended that was not meant to.
	ended chan struct{}
	// cause is that component; read it only after ended is closed.
	cause *process.Process
	once  sync.Once
	// meant is the API server that StopAPIServer has ended last.
	meant atomic.Pointer[process.Process]
}

// Start starts a cluster and returns when it is ready. If Dir is that of a
// cluster of another live process, the error is ErrInUse. On any error nothing
// is left running.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete(ctx)
	if err != nil {
		return nil, err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return nil, err
	}
	lock, err := claim(options.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		dir:   options.Dir,
		lock:  lock,
		ports: NewPorts(filepath.Join(cache, "ports")),
		ended: make(chan struct{}),
	}
	if err := c.start(ctx, options); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	c.watch(c.processes...)
	return c, nil
}

func (o Options) complete(ctx context.Context) (Options, error) {
	if o.Dir == "" {
		return o, errors.New("cluster.Options.Dir is empty: it needs a directory of its own")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, err
	}
	o.Dir = dir
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Nodes != nil {
		if o.Nodes.Count < 1 || o.Nodes.ReadyDelay < 0 {
			return o, fmt.Errorf("cluster.Options.Nodes is %+v: Count must be 1 or more, ReadyDelay not negative", *o.Nodes)
		}
	}
	if o.Kubelet != nil {
		if err := o.Kubelet.validate(); err != nil {
			return o, err
		}
	}
	if o.Nodes != nil && o.Kubelet != nil {
		return o, errors.New("cluster.Options has both Nodes and Kubelet: pods would be split between nodes that run them and nodes that do not")
	}
	o.Controllers = o.Controllers || o.scheduled()
	if o.Binaries == nil {
		if o.Binaries, err = binaries.Build(ctx, o.Progress, o.Tools()...); err != nil {
			return o, err
		}
	}
	return o, nil
}

// ours refuses a directory whose content is not a cluster's, before anything in
// it is removed. A cluster's directory holds its lock first and longest.
func ours(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			return nil
		}
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not a cluster's directory: it holds %s and more; name another, or an empty one", dir, entries[0].Name())
	}
	return nil
}

// claim makes dir this process's own: it takes the lock, ends what an earlier
// owner left running and removes what it left lying.
func claim(dir string) (*filelock.Lock, error) {
	if err := ours(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	lock, err := filelock.Try(path, "a cluster")
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w: %s, held by %s", ErrInUse, dir, filelock.Holder(path))
	}
	if err != nil {
		return nil, err
	}
	if err := errors.Join(wipe(dir), process.RecordSelf(dir, ownerName)); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// wipe kills what is recorded in dir and empties it but for the lock.
func wipe(dir string) error {
	if _, err := process.Reap(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

func (c *Cluster) start(ctx context.Context, options Options) error {
	creds, err := newCredentials(options.Dir, options.Kubelet)
	if err != nil {
		return err
	}
	s := &starter{options: options, credentials: creds, ports: c.ports}
	if err := c.launch(ctx, options, "etcd", s.etcd); err != nil {
		return err
	}
	if err := c.launch(ctx, options, apiServerName, s.apiServer); err != nil {
		return err
	}
	c.config = s.adminConfig()
	if err := writeKubeconfig(c.Kubeconfig(), "autoscale-operator", c.config); err != nil {
		return err
	}
	if options.Controllers {
		if err := c.launch(ctx, options, "kube-controller-manager", s.controllerManager); err != nil {
			return err
		}
	}
	if options.scheduled() {
		if err := c.launch(ctx, options, "kube-scheduler", s.scheduler); err != nil {
			return err
		}
	}
	if options.Kubelet != nil {
		return s.writeKubeletFiles()
	}
	if options.Nodes != nil {
		return c.launch(ctx, options, "kwok", s.kwok)
	}
	return nil
}

func (c *Cluster) launch(ctx context.Context, options Options, name string, spec func() (process.Spec, error)) error {
	begun := time.Now()
	what, err := spec()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	what.Name, what.Dir, what.StopWithin = name, c.dir, componentStopWithin
	p, err := process.Start(ctx, what)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	fmt.Fprintf(options.Progress, "  %s is ready (%s)\n", name, time.Since(begun).Round(10*time.Millisecond))
	return nil
}

// Config is a client configuration of a cluster administrator. The caller may
// change the copy that it gets.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path(kubeconfigName) }

// AuditLogPath is the API server's audit log: JSON lines of audit.k8s.io/v1
// Events, RequestReceived and ResponseComplete of every request for an object.
func (c *Cluster) AuditLogPath() string { return c.path(auditLogName) }

// Dir is the cluster's directory; the log of each component is there as <name>.log.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// ReservePort returns a free loopback port that no other cluster is given until
// this one stops.
func (c *Cluster) ReservePort() (int, error) { return c.ports.Take() }

// Ended is closed when a component has ended, whether by itself or by Stop.
func (c *Cluster) Ended() <-chan struct{} { return c.ended }

// Err says which component ended first, and how; it is nil before Ended.
func (c *Cluster) Err() error {
	select {
	case <-c.ended:
		return c.cause.Err()
	default:
		return nil
	}
}

// Stop ends the cluster and removes its directory. It may be called again.
func (c *Cluster) Stop() error {
	if c.lock == nil {
		return nil
	}
	err := errors.Join(c.halt(), wipe(c.dir), c.lock.Remove())
	c.lock = nil
	return err
}

// halt ends the processes, the last started first, and keeps the files.
func (c *Cluster) halt() error {
	var err error
	for i := len(c.processes) - 1; i >= 0; i-- {
		err = errors.Join(err, c.processes[i].Stop())
	}
	c.processes = nil
	return errors.Join(err, c.ports.Release())
}
