// Package explain tells why an AutoScaler does what it does, and what it will do next.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/kube"
)

const long = `Why an AutoScaler does what it does: who owns the count, the last decision stage by
stage, every condition, and what comes next if the load stays as it is.

What comes next is asked of the policy itself, with the memory and the demands that the
status holds. The status is written when something changes, not at every look; so a demand
that has changed since without changing the decision is not in it.`

const example = `  # Why does it not scale down?
  kubectl autoscaler explain web

  # Go on telling, at every change
  kubectl autoscaler explain web -n production --watch

  # For a program
  kubectl autoscaler explain autoscaler/web -o json | jq .next`

type options struct {
	kube    kube.Flags
	output  string
	watch   bool
	streams cli.Streams
	now     func() time.Time
}

// Command is kubectl autoscaler explain.
func Command(streams cli.Streams) *cobra.Command {
	o := &options{streams: streams, now: time.Now}
	c := &cobra.Command{
		Use:               "explain NAME",
		Short:             "Why an AutoScaler does what it does, and what comes next",
		Long:              long,
		Example:           example,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.complete,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	o.kube.Add(flags)
	flags.StringVarP(&o.output, "output", "o", "", "Output: json; words and numbers otherwise.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "Go on, and tell again whenever the AutoScaler changes.")
	return c
}

func (o *options) run(ctx context.Context, args []string) error {
	if o.output != "" && o.output != "json" {
		return fmt.Errorf("--output %q: it must be json, or left out", o.output)
	}
	if len(args) == 0 {
		return o.nameMissing(ctx)
	}
	name, err := nameOf(args[0])
	if err != nil {
		return err
	}
	namespace, err := o.kube.Namespace()
	if err != nil {
		return err
	}
	c, err := o.kube.Client()
	if err != nil {
		return err
	}
	g := &gatherer{reader: c}
	if err := o.tell(ctx, g, namespace, name); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, c, g, namespace, name)
}

// tell prints one view.
func (o *options) tell(ctx context.Context, g *gatherer, namespace, name string) error {
	now := o.now()
	v, err := g.view(ctx, namespace, name, now)
	switch {
	case err != nil:
		return err
	case o.output == "json":
		encoder := json.NewEncoder(o.streams.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	}
	v.print(o.streams.Out, now, cli.NewColor(o.streams.Out))
	return nil
}

// follow tells at every change, until the context ends or the AutoScaler is deleted. A
// watch that the API server ends is begun anew.
func (o *options) follow(ctx context.Context, c client.WithWatch, g *gatherer, namespace, name string) error {
	told := ""
	for ctx.Err() == nil {
		w, err := c.Watch(ctx, &v1alpha1.AutoScalerList{}, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
		if err != nil {
			return fmt.Errorf("watch AutoScaler %s/%s: %w", namespace, name, err)
		}
		err = o.until(ctx, w, &told, func() error { return o.tell(ctx, g, namespace, name) })
		w.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// errDeleted ends a watch.
var errDeleted = errors.New("the AutoScaler has been deleted")

// until tells of each version that was not told of yet.
func (o *options) until(ctx context.Context, w watch.Interface, told *string, tell func() error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			switch a, ok := event.Object.(*v1alpha1.AutoScaler); {
			case !open:
				return nil
			case event.Type == watch.Deleted:
				return errDeleted
			case event.Type == watch.Error:
				if err := apierrors.FromObject(event.Object); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
					return err
				}
				return nil
			case !ok || a.ResourceVersion == *told:
			case *told == "" && event.Type == watch.Added: // it has just been told of
				*told = a.ResourceVersion
			default:
				*told = a.ResourceVersion
				fmt.Fprintf(o.streams.Out, "\n--- %s\n\n", o.now().UTC().Format(time.TimeOnly))
				if err := tell(); err != nil {
					return err
				}
			}
		}
	}
}
