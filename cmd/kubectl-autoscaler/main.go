// Command kubectl-autoscaler is the plugin kubectl autoscaler: what the operator knows,
// on the command line. It has no rule of its own: it calls what the operator runs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "development"

func main() { os.Exit(execute()) }

func execute() int {
	// What is worth telling is told by the commands themselves.
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	return cli.Execute(ctx, root(streams), streams, os.Args[1:])
}
