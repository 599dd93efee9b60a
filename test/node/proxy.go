package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// proxyConfig leaves the kernel's connection tracking as it is: its limits are the
// machine's.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %q}
hostnameOverride: ` + Name + `
mode: iptables
clusterCIDR: %s
conntrack:
  maxPerCore: 0
  min: 0
  tcpEstablishedTimeout: 0s
  tcpCloseWaitTimeout: 0s
`

// startProxy starts kube-proxy, which is healthy when it has written its rules.
func (n *Node) startProxy(ctx context.Context) error {
	config := n.path("kube-proxy.yaml")
	text := fmt.Sprintf(proxyConfig, n.cluster.ProxyKubeconfig(), n.network.pods)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	return n.run(ctx, process.Spec{
		Name: "kube-proxy", Path: n.binaries.Path(binaries.KubeProxy), Args: []string{"--config=" + config},
		Ready: n.proxyHealthy,
	})
}

func (n *Node) proxyHealthy(ctx context.Context) error {
	const port = "10256" // kube-proxy's default
	url := "http://" + net.JoinHostPort(n.network.node.String(), port) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
