package main

import (
	"github.com/spf13/cobra"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/audit"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/explain"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/handover"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/replay"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/validate"
)

const long = `What the autoscale-operator knows, on the command line.

Exit status: 0 when there is nothing to complain of, 1 when something was found (an
object that would be refused, a contested replica count), 2 when the command itself
could not do its work (a wrong flag, a file or a cluster that cannot be read).`

// root is the command with all that belongs to it.
func root(streams cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:           "kubectl-autoscaler",
		Short:         "Validate, replay, explain and audit autoscaling",
		Long:          long,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		// kubectl calls the plugin as "kubectl autoscaler".
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl autoscaler"},
	}
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.Err)
	c.AddCommand(commands(streams)...)
	return c
}

// commands are the plugin's own; help and completion are cobra's.
func commands(streams cli.Streams) []*cobra.Command {
	return []*cobra.Command{
		audit.Command(streams),
		explain.Command(streams),
		handover.Command(streams),
		replay.Command(streams),
		validate.Command(streams),
	}
}
