// Command cmd runs a cluster for this checkout in the background, and the
// operator against it. The Makefile calls it; see make help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

func main() { os.Exit(execute()) }

func execute() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted; nothing was left running")
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real control plane for this checkout, built from pinned Go modules",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
	}
	root.AddCommand(buildCommand(), upCommand(), downCommand(), superviseCommand(), installCommand(), runCommand())
	return root
}

// place is where things of the checkout that the working directory is in lie.
type place struct{ root string }

func here() (place, error) {
	root, err := binaries.CheckoutRoot()
	return place{root: root}, err
}

func (p place) cluster() string    { return filepath.Join(p.root, "bin", "cluster") }
func (p place) kubeconfig() string { return filepath.Join(p.cluster(), "kubeconfig") }

// relative is how messages name a path of the checkout.
func (p place) relative(path string) string {
	if relative, err := filepath.Rel(p.root, path); err == nil {
		return relative
	}
	return path
}

// nodeFlags are the flags about nodes; nil nodes for none.
type nodeFlags struct {
	count      int
	readyDelay time.Duration
}

func (n *nodeFlags) add(c *cobra.Command) {
	c.Flags().IntVar(&n.count, "nodes", 1, "number of nodes whose pods become ready without a kubelet; 0 leaves all pods Pending")
	c.Flags().DurationVar(&n.readyDelay, "ready-delay", 2*time.Second, "how long a scheduled pod takes to become ready")
}

func (n *nodeFlags) options(dir string) cluster.Options {
	options := cluster.Options{Dir: dir, Controllers: true}
	if n.count != 0 {
		options.Nodes = &cluster.Nodes{Count: n.count, ReadyDelay: n.readyDelay}
	}
	return options
}

func (n *nodeFlags) arguments() []string {
	return []string{"--nodes=" + strconv.Itoa(n.count), "--ready-delay=" + n.readyDelay.String()}
}

func buildCommand() *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:   "build",
		Short: "Build programs into the cache and print where they are",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tools := make([]binaries.Tool, 0, len(names))
			for _, name := range names {
				tools = append(tools, binaries.Tool(name))
			}
			set, err := binaries.Build(c.Context(), os.Stderr, tools...)
			if err != nil {
				return err
			}
			for _, tool := range tools {
				fmt.Println(set.Path(tool))
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&names, "tools", []string{
		string(binaries.Etcd), string(binaries.KubeAPIServer), string(binaries.KubeControllerManager), string(binaries.Kubectl),
	}, "the programs; "+strings.Join([]string{string(binaries.KubeScheduler), string(binaries.Kwok), string(binaries.Prometheus), string(binaries.Helm3), string(binaries.Helm4)}, ", ")+" are known too")
	return c
}

func upCommand() *cobra.Command {
	var nodes nodeFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster in the background, if it does not run, and print its kubeconfig's path",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return up(c.Context(), &nodes) },
	}
	nodes.add(c)
	return c
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster, if it runs, and remove everything of it",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := here()
			if err != nil {
				return err
			}
			ran, err := cluster.Down(c.Context(), p.cluster())
			if err != nil {
				return err
			}
			if ran {
				fmt.Println("The cluster is stopped and removed.")
			} else {
				fmt.Println("No cluster is running.")
			}
			return nil
		},
	}
}

// superviseCommand is what up starts in the background.
func superviseCommand() *cobra.Command {
	var nodes nodeFlags
	c := &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := here()
			if err != nil {
				return err
			}
			// Files 3 and 4 are the pipes that cluster.Up made.
			control, report := os.NewFile(3, "control"), os.NewFile(4, "report")
			if control == nil || report == nil {
				return errors.New("supervise is started by up alone")
			}
			return cluster.Supervise(c.Context(), nodes.options(p.cluster()), control, report)
		},
	}
	nodes.add(c)
	return c
}
