package node

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

//go:embed dns.yaml
var dnsManifest string

// dnsWithin bounds the wait for the DNS: it is the node's first pod.
const dnsWithin = 2 * time.Minute

// startDNS runs CoreDNS as a pod, and waits until it resolves a name at the address
// of its Service: then pods run, are reached from here, and kube-proxy has its rules.
func (n *Node) startDNS(ctx context.Context) error {
	manifest := strings.NewReplacer("${DNS_IMAGE}", corednsImage, "${DNS_ADDRESS}", n.network.dns.String()).Replace(dnsManifest)
	path := n.path("dns.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		return err
	}
	if err := run(ctx, n.kubectl("apply", "--server-side", "--filename="+path)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dnsWithin)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		last := n.resolves(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return n.explained(context.WithoutCancel(ctx), last)
		case <-ticker.C:
		}
	}
}

// resolves asks the cluster's DNS for the one Service that is always there.
func (n *Node) resolves(ctx context.Context) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(n.network.dns, 53).String())
	}}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := resolver.LookupNetIP(ctx, "ip4", "kubernetes.default.svc.cluster.local.")
	return err
}

// explained adds to err what the API server tells about the node's own pods.
func (n *Node) explained(ctx context.Context, err error) error {
	text, _ := output(ctx, n.kubectl("--namespace=kube-system", "get", "pods,events"))
	return fmt.Errorf("%w\n%s", err, text)
}

// kubectl is how to run a kubectl command as the administrator.
func (n *Node) kubectl(args ...string) []string {
	return append([]string{n.binaries.Path(binaries.Kubectl), "--kubeconfig=" + n.Kubeconfig()}, args...)
}
