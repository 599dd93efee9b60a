// Package audit tells of every Deployment who has its replica count. It only reads.
package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/kube"
)

const long = `Who has the replica count of each Deployment: the AutoScaler that holds it, an HPA, a
ScaledObject or another registered replica manager, or nobody; who wrote it last; and
which ones are contested, first. It only reads.

  contested  more than one has it, or somebody writes it against its owner
  unowned    nobody has it: people and pipelines set it
  unknown    nobody was found, and not everything could be read
  pending    an AutoScaler has claimed it and may not write yet
  managed    one other replica manager has it; an AutoScaler may stand by to take over
  held       an AutoScaler has it

Times of writes come from managedFields: the last write of each field manager that still
owns spec.replicas. Of a write through the scale subresource (an HPA, kubectl scale) the API
server keeps no time. A write that has been undone is told only while the AutoScaler
remembers it, a quarter of an hour.`

const example = `  # This namespace
  kubectl autoscaler audit

  # Everything, for a spreadsheet
  kubectl autoscaler audit -A -o csv > replicas.csv

  # In a pipeline: fail where something fights, or nobody is in charge
  kubectl autoscaler audit -n production -l team=shop --fail-on contested,unowned`

type options struct {
	kube     kube.Flags
	selector string
	output   string
	failOn   []string
	bare     bool
	config   string
	streams  cli.Streams
	now      func() time.Time
}

// Command is kubectl autoscaler audit.
func Command(streams cli.Streams) *cobra.Command {
	o := &options{streams: streams, now: time.Now}
	c := &cobra.Command{
		Use:     "audit",
		Short:   "Who has the replica count of each Deployment",
		Long:    long,
		Example: example,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	o.kube.AddAll(flags)
	flags.StringVarP(&o.selector, "selector", "l", "", "Labels of the Deployments to look at, as in -l app=web.")
	flags.StringVarP(&o.output, "output", "o", "", "Output: wide, json or csv; a table otherwise.")
	flags.StringVar(&o.config, "config", "", "The operator's configuration file, for its registered replica managers; KEDA's and Datadog's otherwise.")
	flags.BoolVar(&o.bare, "no-headers", false, "Leave out the line with the names of the columns.")
	flags.StringSliceVar(&o.failOn, "fail-on", nil, "States that end the command with exit status 1: "+known()+".")
	_ = c.RegisterFlagCompletionFunc("fail-on", completeStates) // fails for flags that are not there
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func known() string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// completeStates offers what may follow the last comma.
func completeStates(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	given := strings.Split(typed, ",")
	given = given[:len(given)-1]
	var offers []string
	for _, s := range states {
		if !slices.Contains(given, string(s)) {
			offers = append(offers, strings.Join(append(slices.Clone(given), string(s)), ","))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// outputs are the names of the formats but the one without.
func outputs() []string { return slices.Sorted(maps.Keys(formats))[1:] }

func (o *options) run(ctx context.Context) error {
	format, ok := formats[o.output]
	if !ok {
		return fmt.Errorf("--output %q: it must be one of %s", o.output, strings.Join(outputs(), ", "))
	}
	for _, s := range o.failOn {
		if !slices.Contains(states, State(s)) {
			return fmt.Errorf("--fail-on %q: it must be one of %s", s, known())
		}
	}
	selector, err := labels.Parse(o.selector)
	if err != nil {
		return fmt.Errorf("--selector %q: %w", o.selector, err)
	}
	namespace, err := o.kube.Namespace()
	if err != nil {
		return err
	}
	c, err := o.collector()
	if err != nil {
		return err
	}
	entries, partial, err := c.collect(ctx, namespace, selector)
	if err != nil {
		return err
	}
	if c.absent {
		fmt.Fprintln(o.streams.Err, "the cluster has no AutoScalers: the operator's CRDs are not installed there (see docs/install.md)")
	}
	if err := format(o.streams.Out, entries, o.now(), !o.bare); err != nil {
		return err
	}
	return o.verdict(entries, partial)
}

func (o *options) collector() (*collector, error) {
	registered := binding.DefaultManagers()
	if o.config != "" {
		c, err := config.Load(o.config)
		if err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		registered = c.Managers.Registered()
	}
	reader, err := o.kube.Client()
	if err != nil {
		return nil, err
	}
	cluster, err := o.kube.RESTConfig()
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(cluster)
	if err != nil {
		return nil, err
	}
	managers, err := binding.NewManagers(binding.ManagersOptions{
		Cached: reader, Live: reader, Dynamic: objects, Discovery: served,
		Registered: registered, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	return &collector{reader: reader, managers: managers}, nil
}

// verdict tells the person what came out, and gives the error that makes the exit code. An
// audit that could not see everything is no audit.
func (o *options) verdict(entries []Entry, partial error) error {
	fmt.Fprintln(o.streams.Err, summary(entries, cli.NewColor(o.streams.Err)))
	if partial != nil {
		return fmt.Errorf("this is not the whole truth: %w", partial)
	}
	for i := range entries {
		if slices.Contains(o.failOn, string(entries[i].State)) {
			return cli.ErrFound
		}
	}
	return nil
}
