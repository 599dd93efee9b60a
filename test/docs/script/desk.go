package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// Desk is where a newcomer sits: an empty folder that has the checkout's charts and
// config beside it, kubectl and helm, and the administrator's kubeconfig. The user's own
// settings and caches are kept out.
func Desk(tb testing.TB, kubeconfig string) *Reader {
	tb.Helper()
	tools, err := binaries.Build(tb.Context(), os.Stderr, binaries.Kubectl, binaries.Helm4)
	require.NoError(tb, err)
	root, err := binaries.CheckoutRoot()
	require.NoError(tb, err)
	home, dir := tb.TempDir(), tb.TempDir()
	bin := filepath.Join(home, "bin")
	require.NoError(tb, os.Mkdir(bin, 0o700))
	for link, target := range map[string]string{
		filepath.Join(bin, "kubectl"): tools.Path(binaries.Kubectl),
		filepath.Join(bin, "helm"):    tools.Path(binaries.Helm4),
		filepath.Join(dir, "charts"):  filepath.Join(root, "charts"),
		filepath.Join(dir, "config"):  filepath.Join(root, "config"),
	} {
		require.NoError(tb, os.Symlink(target, link))
	}
	return &Reader{
		Dir: dir, Log: tb.Output(),
		Env: append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig,
			"KUBECACHEDIR="+filepath.Join(home, "kube"), "KUBERC=off", "HOME="+home,
			"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home),
	}
}
