package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"example.com/platform/autoscale-operator/test/cluster/process"
)

// Places inside the node. Those below /run are seen there alone.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	cniPlugins       = "/usr/lib/cni"
)

// containerdConfig keeps what may be large in the node's folder. Without
// restrict_oom_score_adj no container starts where the machine itself may not lower
// that score.
const containerdConfig = `version = 2
root = %q
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = %q

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q
`

// startContainerd starts containerd and loads the node's own images.
func (n *Node) startContainerd(ctx context.Context) error {
	config, networks := n.path("containerd.toml"), n.path("cni")
	text := fmt.Sprintf(containerdConfig, n.path("containerd"), containerdSocket, pauseImage, cniPlugins, networks)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	if err := n.writePodNetwork(networks); err != nil {
		return err
	}
	err := n.run(ctx, process.Spec{
		Name: "containerd", Path: "containerd", Args: []string{"--config=" + config},
		Ready: func(ctx context.Context) error { return run(ctx, n.ctr("version")) },
	})
	if err != nil {
		return err
	}
	for _, name := range []string{pauseName, corednsName} {
		if err := n.Load(ctx, n.path(name+".tar")); err != nil {
			return err
		}
	}
	return nil
}

// writePodNetwork writes how pods are connected: each by a cable of its own to the
// node, which passes everything on. Unlike on a bridge, all traffic between pods
// thus meets kube-proxy's rules, whatever modules the machine's kernel has loaded.
func (n *Node) writePodNetwork(dir string) error {
	type object = map[string]any
	data, err := json.MarshalIndent(object{
		"cniVersion": "0.4.0",
		"name":       "pods",
		"plugins": []object{
			{"type": "ptp", "ipam": object{
				"type": "host-local", "subnet": n.network.pods.String(), "routes": []object{{"dst": "0.0.0.0/0"}},
			}},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "pods.conflist"), data, 0o600)
}

// ctr is how to run a command of containerd's own tool on what the kubelet sees.
func (n *Node) ctr(args ...string) []string {
	return n.sandbox.command(append([]string{"ctr", "--address=" + containerdSocket, "--namespace=k8s.io"}, args...)...)
}

// Load imports an image archive, as docker or an OCI tool writes it, so that pods
// with imagePullPolicy IfNotPresent or Never can run its images.
func (n *Node) Load(ctx context.Context, archive string) error {
	path, err := filepath.Abs(archive)
	if err != nil {
		return err
	}
	if err := run(ctx, n.LoadCommand(path)); err != nil {
		return fmt.Errorf("load %s: %w", archive, err)
	}
	return nil
}

// LoadCommand is how to import an image archive, by its whole path, as Load does; without
// one, what its path is to be put behind.
func (n *Node) LoadCommand(archive ...string) []string {
	return n.ctr(append([]string{"images", "import"}, archive...)...)
}

// run starts a program inside the node, which ends with it.
func (n *Node) run(ctx context.Context, spec process.Spec) error {
	p, err := n.sandbox.start(ctx, spec)
	if err != nil {
		return err
	}
	n.processes = append(n.processes, p)
	return nil
}
