// The manager runs the operator: webhooks on every replica, reconcilers on the
// leader. It only wires; what it wires is in the packages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "development"

func main() { os.Exit(begin(os.Args[1:], os.Stdout, os.Stderr)) }

// begin is the process. What ends it is its last line, in plain words: whoever looks
// at a container that does not start sees that line first.
func begin(args []string, stdout, stderr io.Writer) int {
	if err := program(args, stdout); err != nil {
		fmt.Fprintf(stderr, "%s: %s\n", controller.FieldManager, inOneLine(err))
		return 1
	}
	return 0
}

func program(args []string, stdout io.Writer) error {
	if len(args) > 0 && args[0] == tryAdmissionCommand {
		return tryAdmission(args[1:], stdout)
	}
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage())
		return nil
	case err != nil:
		return err
	case o.version:
		fmt.Fprintln(stdout, controller.FieldManager, version)
		return nil
	}
	logger := zap.New(zap.UseFlagOptions(&o.logging))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	logger.Info("starting", "version", version, "watchNamespaces", watching(o.watchNamespaces))
	return run(ctrl.SetupSignalHandler(), o)
}

// inOneLine puts errors that were joined beside each other.
func inOneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// run returns when the process has ended its work, some time after stopping is done.
func run(stopping context.Context, o *options) error {
	cfg, err := config.Load(o.config)
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
	p, err := newProcess(rest, o)
	if err != nil {
		return err
	}
	if err := p.mayStart(stopping); err != nil {
		return err
	}
	ctx := outlive(stopping, clock.RealClock{}, o.shutdownDelay, p.probes.leave)
	if err := p.equip(ctx, cfg, source); err != nil {
		return err
	}
	return p.mgr.Start(ctx)
}

// process is the manager and what stands beside it.
type process struct {
	options *options
	mgr     manager.Manager
	probes  *probes
	caches  *caches
	serving *serving
}

// equip gives the manager everything that it runs.
func (p *process) equip(ctx context.Context, cfg *config.Config, source *prometheus.Client) error {
	if err := controller.AddIndexes(ctx, p.mgr.GetFieldIndexer()); err != nil {
		return err
	}
	managers, err := newManagers(p.mgr, cfg, p.options)
	if err != nil {
		return err
	}
	arbiter := &binding.Arbiter{
		Live: p.mgr.GetAPIReader(), Writer: p.mgr.GetClient(), Clock: clock.RealClock{}, Grace: binding.DefaultGrace, Managers: managers,
		Usable: func(a *v1alpha1.AutoScaler) bool { return len(spec.ValidateAutoScaler(a, cfg.Bounds())) == 0 },
	}
	if err := addWebhooks(p.mgr, cfg, p.options, arbiter, managers); err != nil {
		return err
	}
	if err := addReconcilers(p.mgr, cfg, p.options, arbiter, managers, source); err != nil {
		return err
	}
	if err := p.addServing(ctx); err != nil {
		return err
	}
	if err := p.addInstallCheck(); err != nil {
		return err
	}
	return p.addProbes(ctx)
}
