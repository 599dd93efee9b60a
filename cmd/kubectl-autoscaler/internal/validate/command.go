// Package validate says of manifests what admission would say, without a cluster: it runs
// the API server's schema validation with the embedded CRDs, and the operator's webhooks
// over the given objects.
package validate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/cmd/internal/config"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/kube"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

const long = `Say of manifests what admission would say, without a cluster.

Read are files, folders and, as "-", the standard input: YAML of several documents, JSON,
lists, what Kustomize and Helm print. AutoScalers and MetricProfiles are held to the CRDs'
schema and rules and to the operator's webhooks, as if the given objects were created one
after the other; Deployments, HorizontalPodAutoscalers, ScaledObjects, Namespaces and the
replica managers of --config are what they meet there. Other kinds are counted only.

What only a cluster knows is a note, and fails nothing: a MetricProfile or a Deployment that
is not among the given files. With --complete the given files are all there is, and with
--server a cluster answers, by a dry run.

Exit status: 0 when nothing would be refused, 1 when something would, 2 when a file is not
readable as manifests, or the command could not do its work.`

const examples = `  # A folder, as in a pipeline
  kubectl autoscaler validate -R -f deploy/

  # What Kustomize and Helm make, with the platform's own limits and rules
  set -o pipefail
  kubectl kustomize overlays/production | kubectl autoscaler validate -f - --config operator.yaml
  helm template shop ./chart | kubectl autoscaler validate -n production -f -

  # Marks in a pull request on GitHub, and a report for its code scanning
  kubectl autoscaler validate -f deploy/ -o github
  kubectl autoscaler validate -f deploy/ -o sarif > validate.sarif

  # The cluster's answer beside it
  kubectl autoscaler validate -f deploy/ --server`

// options are the command's flags.
type options struct {
	files     []string
	recursive bool
	config    string
	complete  bool
	server    bool
	strict    bool
	output    string
	kube      kube.Flags
	clock     clock.PassiveClock
}

// Command is "validate".
func Command(streams cli.Streams) *cobra.Command {
	o := &options{clock: clock.RealClock{}}
	c := &cobra.Command{
		Use:     "validate -f FILENAME",
		Short:   "Say what admission would say, without a cluster",
		Long:    long,
		Example: examples,
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context(), streams) },
	}
	o.flags(c)
	return c
}

// noArgs says where a file belongs that is named without a flag.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q: name files and folders with -f", args[0])
	}
	return nil
}

func (o *options) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, `File or folder to read, or "-"; more than once, or with commas between, for several.`)
	f.BoolVarP(&o.recursive, "recursive", "R", false, "Look into the folders of a folder, too.")
	f.StringVar(&o.config, "config", "", "Configuration file of the operator: its limits, defaults, rules, endpoints and replica managers. Without it: the built-in limits and replica managers, any endpoint, no rules.")
	f.BoolVar(&o.complete, "complete", false, "Take the given files for all there is: a MetricProfile that they lack is an error, as at admission.")
	f.BoolVar(&o.server, "server", false, "Ask a cluster, too, by a dry run on its API server; nothing is stored.")
	f.BoolVar(&o.strict, "warnings-as-errors", false, "Exit with 1 for a warning, too.")
	f.StringVarP(&o.output, "output", "o", "text", "text, json, github (annotations of GitHub Actions) or sarif (2.1.0).")
	_ = c.MarkFlagFilename("filename", "yaml", "yml", "json")                                                         // the flag is there
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats(), cobra.ShellCompDirectiveNoFileComp)) // likewise
	var cluster pflag.FlagSet
	o.kube.Add(&cluster)
	cluster.VisitAll(func(flag *pflag.Flag) {
		// Of kubectl's flags this one gives way: which cluster is meant, the context says.
		if flag.Name != clientcmd.FlagAPIServer {
			f.AddFlag(flag)
		}
	})
	if n := f.Lookup(clientcmd.FlagNamespace); n != nil {
		n.Usage = "The namespace of objects that name none; that of the context otherwise."
	}
}

func (o *options) run(ctx context.Context, streams cli.Streams) error {
	write, known := writers[o.output]
	switch {
	case len(o.files) == 0:
		return errors.New("nothing to validate; name a file or a folder with -f, or the standard input with -f -")
	case !known:
		return fmt.Errorf("--output %q is not known; it is one of %s", o.output, strings.Join(formats(), ", "))
	}
	// What the webhooks would log, they say in their answer, too.
	report, failed := o.validate(log.IntoContext(ctx, logr.Discard()), streams)
	if report == nil {
		return failed
	}
	if err := write(streams.Out, report); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if n := report.unread(); n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%s could not be read as manifests; the report tells which", counted(n, "document")))
	}
	switch {
	case failed != nil:
		return failed
	case report.count(LevelError) > 0, o.strict && report.count(LevelWarning) > 0:
		return cli.ErrFound
	}
	return nil
}

// validate reads and checks. There may be a report beside the error of a cluster.
func (o *options) validate(ctx context.Context, streams cli.Streams) (*Report, error) {
	var platform *config.Config
	if o.config != "" {
		var err error
		if platform, err = config.Load(o.config); err != nil {
			return nil, err
		}
	}
	c, err := newChecker(platform, o.clock)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	c.complete, c.namespace, c.only = o.complete, o.kube.Namespace, o.kube.Given()
	source := &manifest.Source{In: streams.In, Recursive: o.recursive, Keep: c.keep}
	set, err := read(ctx, source, o.files)
	if err != nil {
		return nil, err
	}
	if set.Empty() {
		return nil, fmt.Errorf("no objects were read from %s; did the command before the pipe fail?", strings.Join(o.files, ", "))
	}
	items, err := c.check(ctx, set.Documents)
	if err != nil {
		return nil, err
	}
	if o.server {
		err = o.ask(ctx, c, items)
	}
	return newReport(set, items), err
}

// read leaves the reading where the context ends: a pipe may be silent for ever.
func read(ctx context.Context, source *manifest.Source, files []string) (*manifest.Set, error) {
	done := make(chan *manifest.Set, 1)
	go func() { done <- source.Read(files...) }()
	select {
	case set := <-done:
		return set, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newReport puts together what was found.
func newReport(set *manifest.Set, items []*item) *Report {
	r := &Report{Files: set.Files, Ignored: set.Ignored}
	order := map[string]int{}
	for _, d := range set.Documents {
		if _, known := order[d.File]; !known {
			order[d.File] = len(order)
		}
	}
	for _, t := range set.Troubles {
		if _, known := order[t.File]; !known {
			order[t.File] = len(order)
		}
		r.add([]Finding{{Level: LevelError, Rule: RuleReadable, Place: t.Place, Message: t.Message}})
	}
	seen := map[*manifest.Document]bool{}
	for _, i := range items {
		if !seen[i.Document] {
			seen[i.Document] = true
			r.Checked++
		}
		r.add(i.findings)
	}
	r.sort(order)
	return r
}
