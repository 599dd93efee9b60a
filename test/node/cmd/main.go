// Command cmd keeps a real node up, with the operator's image in it, until it is told to
// end. The Makefile calls it; see make help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/image"
	"example.com/platform/autoscale-operator/test/node"
)

// repository is the operator's image in the node; its tag is the chart's appVersion.
const repository = "localhost/autoscale-operator"

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends at once; the next start removes what is left.
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted; nothing was left running")
		}
		fmt.Fprintln(os.Stderr, "node-up:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string) (err error) {
	var certManager bool
	var tag string
	flags := flag.NewFlagSet("node-up", flag.ContinueOnError)
	flags.BoolVar(&certManager, "cert-manager", true, "run cert-manager's controllers, too")
	flags.StringVar(&tag, "tag", "", "tag of the operator's image, as the chart's appVersion")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if tag == "" {
		return errors.New("--tag is needed")
	}
	set, err := binaries.Build(ctx, os.Stderr, binaries.Kubectl, binaries.Helm4)
	if err != nil {
		return err
	}
	n, err := node.Start(ctx, node.Options{CertManager: certManager, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	u := usage{
		kubeconfig: n.Kubeconfig(), tools: filepath.Join(n.Dir(), "tools"), tag: tag, certManager: certManager,
		load: n.LoadCommand(), logs: n.Dir(),
	}
	if err := errors.Join(loadOperator(ctx, n, tag), linkTools(u.tools, set)); err != nil {
		return err
	}
	fmt.Print(u)
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "Stopping everything; a second Ctrl-C ends at once.")
	return nil
}

// loadOperator makes the image of this checkout's operator and loads it into the node.
func loadOperator(ctx context.Context, n *node.Node, tag string) error {
	fmt.Fprintln(os.Stderr, "  making the operator's image")
	archive := filepath.Join(n.Dir(), "operator.tar")
	if err := image.Build(ctx, image.Options{Binaries: image.Operator, Name: repository, Tag: tag, Output: archive}); err != nil {
		return err
	}
	return errors.Join(n.Load(ctx, archive), os.Remove(archive))
}

// linkTools makes a folder for PATH, of the programs that docs tell to type.
func linkTools(dir string, set binaries.Set) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.Symlink(set.Path(binaries.Kubectl), filepath.Join(dir, "kubectl")),
		os.Symlink(set.Path(binaries.Helm4), filepath.Join(dir, "helm")),
	)
}

// usage is what a person is told about a node that is up.
type usage struct {
	kubeconfig, tools, tag, logs string
	certManager                  bool
	load                         []string
}

// String has every line that is to be typed on one of its own.
func (u usage) String() string {
	load := strings.Join(u.load, " ")
	values, acceptance := "image:\n  repository: "+repository+"\n", ""
	if u.certManager {
		acceptance = fmt.Sprintf("To run the acceptance tests on it, before anything is installed:\n\n    make e2e KUBECONFIG=%s LOAD='%s'\n\n", u.kubeconfig, load)
	} else {
		values += "certificates:\n  mode: self-managed\n"
	}
	return fmt.Sprintf(`
The node is up. Ctrl-C ends it, and removes everything of it. In another terminal:

    export KUBECONFIG=%s
    export PATH=%s:$PATH    # kubectl and helm

It has the operator's image, %s:%s. To install it, have this in your values.yaml, where an upgrade finds it, too:

%s
and then:

    helm upgrade --install autoscale-operator charts/autoscale-operator --namespace autoscale-operator-system --create-namespace --values values.yaml --wait

To load an image of yours, from an archive as docker save writes it, put its whole path (not below /run or /var/lib) behind

    %s

%sLogs are in %s, those of the control plane in its folder cluster.
`, u.kubeconfig, u.tools, repository, u.tag, values, load, acceptance, u.logs)
}
