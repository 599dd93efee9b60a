package node

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// kubeletConfig runs on machines with cgroups of version 1, with swap, and with
// little room on their disks; none of that is what the tests are about. By syncFrequency
// pods see a changed Secret within seconds, not within a minute or two.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %q}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://` + containerdSocket + `
cgroupDriver: cgroupfs
cgroupRoot: /%s
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
syncFrequency: 10s
clusterDomain: cluster.local
clusterDNS: [%s]
resolvConf: %q
volumePluginDir: %q
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%}
imageGCHighThresholdPercent: 100
`

func (n *Node) startKubelet(ctx context.Context) error {
	client, err := n.client()
	if err != nil {
		return err
	}
	config, resolv := n.path("kubelet.yaml"), n.path("resolv.conf")
	text := fmt.Sprintf(kubeletConfig, n.cluster.KubeletClientCA(), n.cgroup.name, n.network.dns, resolv, n.path("plugins"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	// No names but the cluster's are resolved: nothing here needs the outside.
	if err := os.WriteFile(resolv, nil, 0o600); err != nil {
		return err
	}
	return n.run(ctx, process.Spec{
		Name: "kubelet", Path: n.binaries.Path(binaries.Kubelet),
		Args: []string{
			"--config=" + config,
			"--kubeconfig=" + n.cluster.KubeletKubeconfig(),
			"--hostname-override=" + Name,
			"--node-ip=" + n.network.node.String(),
			"--root-dir=" + n.path("kubelet"),
			"--cert-dir=" + n.path("kubelet-pki"),
		},
		Ready: func(ctx context.Context) error {
			node, err := client.CoreV1().Nodes().Get(ctx, Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return isReady(node)
		},
	})
}

func isReady(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not Ready: %s", node.Name, condition.Message)
		}
		if condition.Type == corev1.NodeReady {
			return nil
		}
	}
	return fmt.Errorf("node %s does not say whether it is Ready", node.Name)
}
