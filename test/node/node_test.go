package node

import (
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two nodes may run at once, and each side must know which one an address is of.
func TestTheAddressesOfNodesAreTheirOwn(t *testing.T) {
	reserved := netip.MustParsePrefix(everyNode)
	seen := map[netip.Addr]int{}
	for number := 1; number <= lastNumber; number++ {
		n := newNetwork(number)

		for _, address := range []netip.Addr{n.outside, n.node, n.pods.Addr(), n.services.Addr(), n.dns} {
			require.True(t, reserved.Contains(address), "node %d: %s", number, address)
			require.NotContains(t, seen, address, "node %d", number)
			seen[address] = number
		}
		require.False(t, n.pods.Overlaps(n.services), "node %d", number)
		require.True(t, n.services.Contains(n.dns), "node %d", number)
		require.LessOrEqual(t, len(n.link), 15, "the kernel takes no longer name")
	}
}

func TestAProxyIsNotAskedForTheNode(t *testing.T) {
	t.Setenv("NO_PROXY", "example.com")
	t.Setenv("no_proxy", "")

	require.NoError(t, reachDirectly())
	require.NoError(t, reachDirectly(), "once is enough")

	assert.Equal(t, "example.com,198.18.0.0/15", os.Getenv("NO_PROXY"))
	assert.Equal(t, "198.18.0.0/15", os.Getenv("no_proxy"))
}

func TestANodeIsReadyWhenItsConditionSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []corev1.NodeCondition
		says       string
	}{
		"it has not said anything yet": {nil, "does not say"},
		"it has said other things": {[]corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}},
			"does not say"},
		"it says that it is not": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "no network"}},
			"not Ready: no network"},
		"it has not been heard of": {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}, "not Ready"},
		"it is":                    {[]corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := isReady(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: c.conditions}})

			if c.says == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.says)
			}
		})
	}
}

// The kernel shows a cgroup as a folder whose files vanish with it; an empty folder
// stands for one here.
func TestCgroupsAreRemovedFromTheInside(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "node", "kubepods", "burstable", "pod1"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "node", "kubepods", "pod2"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(root, "other"), 0o700))

	require.NoError(t, removeCgroups(filepath.Join(root, "node")))
	require.NoError(t, removeCgroups(filepath.Join(root, "node")), "one that is not there is no error")

	assert.NoDirExists(t, filepath.Join(root, "node"))
	assert.DirExists(t, filepath.Join(root, "other"))
}

func TestAMachineIsToldAllThatItLacks(t *testing.T) {
	if runtime.GOOS != "linux" {
		assert.ErrorContains(t, checkMachine(), "needs Linux")
		return
	}
	t.Setenv("PATH", t.TempDir())

	err := checkMachine()

	require.ErrorContains(t, err, "apt-get install --no-install-recommends containerd runc iptables iproute2 mount util-linux")
	assert.ErrorContains(t, err, "containerd, ctr, runc, iptables")
	if os.Geteuid() != 0 {
		assert.ErrorContains(t, err, "needs root")
	}
}
