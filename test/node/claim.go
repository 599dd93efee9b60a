package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"example.com/platform/autoscale-operator/test/cluster/filelock"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// locks is where nodes get their numbers: the addresses, links and cgroups that
// bear them are the machine's, whatever the checkout.
const locks = "/run/lock/autoscale-operator-nodes"

// needs are the programs that a node is made of beside what is built, and the Debian
// packages they are in.
var needs = []struct{ program, pack string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"mount", "mount"},
	{"nsenter", "util-linux"},
	{"setpriv", "util-linux"},
	{filepath.Join(cniPlugins, "ptp"), "containernetworking-plugins"},
}

// checkMachine says in one go what a machine lacks.
func checkMachine() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("a real node needs Linux, and this is %s", runtime.GOOS)
	}
	var lacks, packages []string
	for _, need := range needs {
		if _, err := exec.LookPath(need.program); err != nil {
			lacks = append(lacks, need.program)
			if !slices.Contains(packages, need.pack) {
				packages = append(packages, need.pack)
			}
		}
	}
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("a real node needs root, for containers and a network of their own: run it with sudo"))
	}
	if len(lacks) > 0 {
		errs = append(errs, fmt.Errorf("a real node needs %s: apt-get install --no-install-recommends %s",
			strings.Join(lacks, ", "), strings.Join(packages, " ")))
	}
	return errors.Join(errs...)
}

// claim takes the first number that no live process has, and removes whatever a
// killed one has left under it.
func claim(ctx context.Context, parent string) (*Node, error) {
	for number := 1; number <= lastNumber; number++ {
		lock, err := filelock.Try(filepath.Join(locks, strconv.Itoa(number)), "a node")
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		if err != nil {
			return nil, err
		}
		n := &Node{
			dir:     filepath.Join(parent, "node-"+strconv.Itoa(number)),
			lock:    lock,
			network: newNetwork(number),
			cgroup:  cgroup{name: "autoscale-operator-node-" + strconv.Itoa(number)},
		}
		if err := errors.Join(n.wipe(ctx), os.MkdirAll(n.dir, 0o700)); err != nil {
			return nil, errors.Join(fmt.Errorf("what an earlier node has left: %w", err), lock.Release())
		}
		return n, nil
	}
	return nil, fmt.Errorf("%d nodes run already", lastNumber)
}

// wipe ends and removes everything that bears the node's number, but the lock.
func (n *Node) wipe(ctx context.Context) error {
	for _, dir := range []string{n.dir, n.path(clusterName)} {
		if _, err := process.Reap(dir); err != nil {
			return err
		}
	}
	return errors.Join(n.network.disconnect(ctx), n.cgroup.remove(ctx), os.RemoveAll(n.dir))
}
