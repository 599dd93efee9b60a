// Package replay plays recorded load to an AutoScaler, as the operator would have decided,
// and to others beside it.
package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/report"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

const long = `Plays recorded load to an AutoScaler: the decisions that the operator would have made, by
the same code, with a simulated clock and pods that become ready some time after they were
asked for. Nothing is asked of a cluster, and nothing is written.

The load is that of the whole service, whatever the profile's semantics are. A moment at
which nothing was recorded, or NaN, is played as the answer of a Prometheus would be: as an
invalid sample. Whether the AutoScaler is paused or a dry run makes no difference.

With --compare others see the same load: Kubernetes' own HPA, or other manifests.`

const example = `  # What would this policy have done on a day that was recorded?
  kubectl autoscaler replay -f autoscaler.yaml,profile.yaml --load day.csv

  # Beside an HPA with the same bounds and target, as a page
  kubectl autoscaler replay -f autoscaler.yaml --load day.csv --compare hpa -o html > replay.html

  # The last week, asked of a Prometheus with the profile's query
  kubectl autoscaler replay -f autoscaler.yaml,profile.yaml --prometheus http://localhost:9090 --from 168h

  # Two metrics, and a chart for a pull request
  kubectl autoscaler replay -f autoscaler.yaml --load requests=r.json --load queue=q.csv -o png > replay.png`

type options struct {
	streams    cli.Streams
	now        func() time.Time
	files      []string
	name       string
	config     string
	loads      []string
	prometheus string
	from, to   string
	step       time.Duration
	readyAfter time.Duration
	replicas   int32
	compare    []string
	output     string
}

// maxReadyAfter is longer than any pod takes.
const maxReadyAfter = 24 * time.Hour

// formats are the forms of the report.
var formats = map[string]func(io.Writer, *report.Subject) report.Writer{
	"table": report.NewTable, "csv": report.NewCSV, "json": report.NewJSON,
	"html": report.NewHTML, "svg": report.NewSVG, "png": report.NewPNG,
}

// Command is kubectl autoscaler replay.
func Command(streams cli.Streams) *cobra.Command {
	o := &options{streams: streams, now: time.Now}
	c := &cobra.Command{
		Use:     "replay [NAME]",
		Short:   "Play recorded load to an AutoScaler, and compare it with others",
		Long:    long,
		Example: example,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = args[0]
			}
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "Files or folders with the AutoScaler and its MetricProfiles, - for standard input. NAME says which AutoScaler is meant where there are several.")
	flags.StringVar(&o.config, "config", "", "The operator's configuration file, for its defaults and limits.")
	flags.StringArrayVar(&o.loads, "load", nil, "The recorded load: the JSON of a range query, or CSV; - for standard input. With several metrics METRIC=FILE for each, or one CSV whose first line names them. The arrivals of a backlog are METRIC:arrivals.")
	flags.StringVar(&o.prometheus, "prometheus", "", "Address of a Prometheus to ask for the load, by the queries of the profiles.")
	flags.StringVar(&o.from, "from", "", "Begin of what is played: a time as 2026-11-27T08:00:00Z, seconds since 1970, or how long ago, as 168h.")
	flags.StringVar(&o.to, "to", "", "End of what is played, in the same forms; now otherwise with --prometheus.")
	flags.DurationVar(&o.step, "step", 0, "Time between two recorded values. With --prometheus it is what is asked for, and the poll interval otherwise; in a file it is found by itself.")
	flags.DurationVar(&o.readyAfter, "ready-after", 30*time.Second, "Time from when a pod is asked for until it is ready.")
	flags.Int32Var(&o.replicas, "replicas", 0, "Replicas at the begin; minReplicas otherwise.")
	flags.StringArrayVar(&o.compare, "compare", nil, "What is compared: hpa for an HPA with the same bounds and targets, or a file with a HorizontalPodAutoscaler or another AutoScaler. Can be given several times.")
	flags.StringVarP(&o.output, "output", "o", "table", "Output: table (the changes), csv or json (every decision), html, svg or png.")
	_ = c.MarkFlagRequired("filename") // the flag exists
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(slices.Sorted(maps.Keys(formats)), cobra.ShellCompDirectiveNoFileComp))
	return c
}

// check refuses what the flags cannot mean.
func (o *options) check() error {
	_, known := formats[o.output]
	switch {
	case !known:
		return fmt.Errorf("--output %q: it must be one of %s", o.output, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	case (o.prometheus == "") == (len(o.loads) == 0):
		return errors.New("give the load: by --load FILE, or by --prometheus URL, and not by both")
	case o.prometheus != "" && o.from == "":
		return errors.New("--prometheus: say by --from from when on the load is wanted, as in --from 168h")
	case o.readyAfter < 0 || o.readyAfter > maxReadyAfter:
		return fmt.Errorf("--ready-after %s: it must be from 0s to %s", o.readyAfter, maxReadyAfter)
	case o.step < 0 || o.step > 0 && o.step < time.Second:
		return fmt.Errorf("--step %s: it must be at least 1s", o.step)
	case o.replicas < 0:
		return fmt.Errorf("--replicas %d: it must be at least 1", o.replicas)
	case o.output == "png" && cli.Terminal(o.streams.Out):
		return errors.New("a picture is nothing for a terminal; write it to a file, as in -o png > replay.png")
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	subject, err := o.read()
	if err != nil {
		return err
	}
	rivals, err := o.rivals(subject)
	if err != nil {
		return err
	}
	load, err := o.load(ctx, subject)
	if err != nil {
		return err
	}
	defer load.close()
	subject.warnOfBacklogs(o.warn)
	return o.play(ctx, subject, rivals, load)
}

// play runs the simulation into the report.
func (o *options) play(ctx context.Context, subject *subject, rivals []rival, load *load) error {
	policy := simulate.NewPolicy(subject.autoscaler, subject.profiles, inOrder(len(subject.profiles)))
	autoscalers := []simulate.Autoscaler{policy}
	about := subject.about()
	about.Interval = max(time.Second, min(about.Interval, load.step()))
	for _, r := range rivals {
		autoscalers = append(autoscalers, r.autoscaler)
		about.Autoscalers = append(about.Autoscalers, r.name)
		about.Interval = min(about.Interval, r.autoscaler.Interval())
	}
	replicas := subject.autoscaler.Spec.MinReplicas
	if o.replicas > 0 {
		replicas = o.replicas
	}
	out := bufio.NewWriterSize(o.streams.Out, 64<<10)
	writer := formats[o.output](out, about)
	to := &recorder{Writer: writer, summaries: make([]simulate.Summary, len(autoscalers)), progress: newProgress(o.streams, o.output, load.done)}
	err := simulate.Run(ctx, simulate.Options{
		Start: load.start(), Metrics: len(subject.profiles), Replicas: replicas, ReadyAfter: o.readyAfter, Yardstick: policy.Needed,
	}, load, autoscalers, to)
	to.progress.end()
	if err != nil {
		return err
	}
	if err := writer.Close(to.summaries); err != nil {
		return err
	}
	return out.Flush()
}

// recorder sums up what goes into the report.
type recorder struct {
	report.Writer
	summaries []simulate.Summary
	progress  *progress
}

// Step takes a step.
func (r *recorder) Step(s *simulate.Step) error {
	r.progress.step(s.At)
	r.summaries[s.Of].Add(s)
	return r.Writer.Step(s)
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}
