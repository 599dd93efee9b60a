package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// network is what the node numbered n uses: addresses that are reserved for
// measurements within one's own premises (RFC 2544), so that they mean nothing to
// the networks around.
type network struct {
	// link is the end of the cable on this machine's side.
	link string
	// outside is this machine's address there, where the API server listens, and
	// node the other end's.
	outside, node netip.Addr
	// pods and services are the ranges of addresses of Pods and of Services; this
	// machine reaches both.
	pods, services netip.Prefix
	// dns is the Service of the cluster's DNS.
	dns netip.Addr
}

// nodeInterface is the name of the cable's end on the node's side.
const nodeInterface = "eth0"

// everyNode is the range that the addresses of all nodes are from.
const everyNode = "198.18.0.0/15"

// lastNumber is the highest number of a node: it is a byte of its addresses.
const lastNumber = 250

func newNetwork(number int) network {
	n := byte(number) //nolint:gosec // claim refuses numbers above lastNumber
	services := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, n, 128}), 25)
	return network{
		link:     "asonode" + strconv.Itoa(number),
		outside:  netip.AddrFrom4([4]byte{198, 18, n, 1}),
		node:     netip.AddrFrom4([4]byte{198, 18, n, 2}),
		pods:     netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, n, 0}), 25),
		services: services,
		dns:      netip.AddrFrom4([4]byte{198, 19, n, 138}),
	}
}

// reachDirectly keeps this process, and those that it starts, from asking a proxy for
// what the node has.
func reachDirectly() error {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		spared := os.Getenv(name)
		if strings.Contains(spared, everyNode) {
			continue
		}
		if err := os.Setenv(name, strings.TrimPrefix(spared+","+everyNode, ",")); err != nil {
			return err
		}
	}
	return nil
}

// connect lays a cable between this machine and the sandbox. Everything goes when that namespace does: cable, addresses, routes.
func (n network) connect(ctx context.Context, s *sandbox) error {
	const bits = "/30"
	for _, step := range [][]string{
		{"ip", "link", "add", n.link, "type", "veth", "peer", "name", nodeInterface, "netns", strconv.Itoa(s.pid())},
		{"ip", "address", "add", n.outside.String() + bits, "dev", n.link},
		{"ip", "link", "set", n.link, "up"},
		s.command("ip", "link", "set", "lo", "up"),
		s.command("ip", "address", "add", n.node.String()+bits, "dev", nodeInterface),
		s.command("ip", "link", "set", nodeInterface, "up"),
		s.command("ip", "route", "add", "default", "via", n.outside.String()),
		{"ip", "route", "add", n.pods.String(), "via", n.node.String()},
		{"ip", "route", "add", n.services.String(), "via", n.node.String()},
	} {
		if err := run(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// disconnect removes the cable at once. The kernel would do it by itself, but some
// time after the last process of the namespace has gone.
func (n network) disconnect(ctx context.Context) error {
	err := run(ctx, []string{"ip", "link", "delete", n.link})
	if err != nil && strings.Contains(err.Error(), "Cannot find device") {
		return nil
	}
	return err
}

// run runs a command, and says what it said when it fails.
func run(ctx context.Context, command []string) error {
	_, err := output(ctx, command)
	return err
}

// output is what a command prints; its errors too, in the error.
func output(ctx context.Context, command []string) (string, error) {
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, text)
	}
	return text, err
}
