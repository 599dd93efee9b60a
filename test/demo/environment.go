package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/filelock"
	"example.com/platform/autoscale-operator/test/cluster/process"
	"example.com/platform/autoscale-operator/test/load"
)

// readyDelay is how long a pod takes to become ready once it has a node.
const readyDelay = 3 * time.Second

// environment is everything real that the demo runs: a control plane with a node,
// a Prometheus, the load that it scrapes, and the operator.
type environment struct {
	// root is the checkout; dir, below its bin/, holds all state and is removed.
	root, dir string

	lock       *filelock.Lock
	ports      *cluster.Ports
	tools      binaries.Set
	cluster    *cluster.Cluster
	prometheus *prometheusServer
	operator   *operator
	load       *load.Source
	loadURL    string
	server     *http.Server
}

// errRunning says that another demo runs in the same checkout.
var errRunning = errors.New("a demo runs in this checkout already")

// prepare takes the demo's directory, ends what a killed demo left behind, and
// builds what the cache lacks.
func prepare(ctx context.Context, tell *narrator) (*environment, error) {
	root, err := binaries.CheckoutRoot()
	if err != nil {
		return nil, err
	}
	e := &environment{root: root, dir: filepath.Join(root, "bin", "demo")}
	if e.lock, err = filelock.Try(filepath.Join(e.dir, "lock"), "make demo"); errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("%w; end that one first (Ctrl-C)", errRunning)
	} else if err != nil {
		return nil, err
	}
	if err := e.begin(ctx, tell); err != nil {
		closeErr := e.close()
		if ctx.Err() != nil && closeErr == nil {
			return nil, errInterrupted
		}
		return nil, errors.Join(err, closeErr)
	}
	return e, nil
}

func (e *environment) begin(ctx context.Context, tell *narrator) error {
	if err := errors.Join(e.sweep(), os.RemoveAll(e.failedLogs())); err != nil {
		return err
	}
	tools := append(e.clusterOptions().Tools(), binaries.Kubectl, binaries.Prometheus)
	var err error
	if e.tools, err = binaries.Build(ctx, tell.out, tools...); err != nil {
		return err
	}
	if err := os.Symlink(e.tools.Path(binaries.Kubectl), filepath.Join(e.dir, "kubectl")); err != nil {
		return err
	}
	cache, err := binaries.CacheDir()
	if err != nil {
		return err
	}
	e.ports = cluster.NewPorts(filepath.Join(cache, "ports"))
	taken := make([]int, 5)
	for i := range taken {
		if taken[i], err = e.ports.Take(); err != nil {
			return err
		}
	}
	e.prometheus = &prometheusServer{path: e.tools.Path(binaries.Prometheus), dir: filepath.Join(e.dir, "prometheus"), port: taken[0]}
	e.operator = &operator{root: e.root, dir: filepath.Join(e.dir, "operator"), webhookPort: taken[1], metricsPort: taken[2], probePort: taken[3]}
	return e.serveLoad(ctx, taken[4])
}

func (e *environment) clusterOptions() cluster.Options {
	return cluster.Options{
		Dir: filepath.Join(e.dir, "cluster"), Binaries: e.tools,
		Nodes: &cluster.Nodes{Count: 1, ReadyDelay: readyDelay},
	}
}

func (e *environment) serveLoad(ctx context.Context, port int) error {
	e.load = load.NewSource(namespace, service, time.Now)
	handler, err := e.load.Handler()
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", loopback+":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	e.loadURL = "http://" + listener.Addr().String()
	e.server = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go e.server.Serve(listener) //nolint:errcheck // it ends with Close, and a scrape that fails is seen as missing data
	return e.prometheus.configure(listener.Addr().String())
}

// start runs the parts, those that need no other one at the same time.
func (e *environment) start(ctx context.Context, tell *narrator) error {
	begun := time.Now()
	since := func() string { return time.Since(begun).Round(100 * time.Millisecond).String() }
	together, shared := errgroup.WithContext(ctx)
	together.Go(func() error {
		if err := e.prometheus.start(shared); err != nil {
			return err
		}
		tell.verified("Prometheus scrapes the load (%s)", since())
		return nil
	})
	together.Go(func() error {
		var err error
		if e.cluster, err = cluster.Start(shared, e.clusterOptions()); err != nil {
			return err
		}
		tell.verified("etcd, API server, controllers, scheduler and a node are ready (%s)", since())
		return nil
	})
	together.Go(func() error {
		if err := e.operator.build(shared); err != nil {
			return err
		}
		tell.verified("the operator is built from this checkout (%s)", since())
		return nil
	})
	if err := together.Wait(); err != nil {
		return err
	}
	if err := e.operator.start(ctx, e.cluster.Config(), e.prometheus.url()); err != nil {
		return err
	}
	tell.verified("the operator is installed and runs under its own account (%s)", since())
	return nil
}

// health says which part has ended that should not have.
func (e *environment) health() error {
	if e.cluster != nil {
		if err := e.cluster.Err(); err != nil {
			return err
		}
	}
	for _, running := range e.processes() {
		if err := running.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) processes() []*process.Process {
	var list []*process.Process
	if e.prometheus != nil && e.prometheus.running != nil {
		list = append(list, e.prometheus.running)
	}
	if e.operator != nil && e.operator.running != nil {
		list = append(list, e.operator.running)
	}
	return list
}

// sweep ends what is recorded as running below dir and removes all but the lock.
func (e *environment) sweep() error {
	for _, part := range []string{"cluster", "prometheus", "operator"} {
		if _, err := process.Reap(filepath.Join(e.dir, part)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(e.dir)
	for _, entry := range entries {
		if entry.Name() != "lock" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(e.dir, entry.Name())))
		}
	}
	return err
}

// close ends everything and removes it. Parts that never started are skipped.
func (e *environment) close() error {
	var errs []error
	if e.operator != nil {
		errs = append(errs, e.operator.stop())
	}
	if e.prometheus != nil {
		errs = append(errs, e.prometheus.stop())
	}
	if e.server != nil {
		errs = append(errs, e.server.Close())
	}
	if e.cluster != nil {
		errs = append(errs, e.cluster.Stop())
	}
	if e.ports != nil {
		errs = append(errs, e.ports.Release())
	}
	return errors.Join(append(errs, e.sweep(), e.lock.Remove())...)
}

func (e *environment) failedLogs() string { return filepath.Join(e.root, "bin", "demo-failed") }

// keepLogs copies the logs of all parts to where close does not remove them, and
// returns the place, relative to the checkout.
func (e *environment) keepLogs() (string, error) {
	logs := os.DirFS(e.dir)
	paths, err := fs.Glob(logs, "*/*.log")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(e.failedLogs(), 0o700); err != nil {
		return "", err
	}
	for _, path := range paths {
		data, err := fs.ReadFile(logs, path)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(e.failedLogs(), filepath.Base(path)), data, 0o600); err != nil {
			return "", err
		}
	}
	return e.relative(e.failedLogs()), nil
}

// relative is how messages name a path of the checkout.
func (e *environment) relative(path string) string {
	if relative, err := filepath.Rel(e.root, path); err == nil {
		return relative
	}
	return path
}
