//go:build e2e

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// underAPlatform has the chart below one of a platform's own, which brings a Deployment, a
// MetricProfile and an AutoScaler along, all in one command, as docs/chart.md says. The CRDs
// are there, of the release before, and are taken over.
func (w *world) underAPlatform() {
	w.Helper()
	w.uninstalls(release, systemNamespace)
	chart := w.platform()
	begun := time.Now()
	w.mustUpgradePlatform(chart, "--take-ownership")
	took := time.Since(begun)
	w.reaches(second, "web", 4, 2*soon)
	s := w.settles(second, "web")
	w.report("- below a chart with a Deployment, a MetricProfile and an AutoScaler, one `helm install --wait` made all of it in %.0f s; then it was scaled to 4", took.Seconds())

	w.mustUpgradePlatform(chart, "--set=autoscale-operator.logLevel=debug")
	w.unchanged(s)
	w.report("- its upgrade took the AutoScaler over as it was")
	w.uninstalls(secondRelease, second)
	_, err := w.autoscaler(w.Context(), second, "web")
	assert.True(w, apierrors.IsNotFound(err), "it is an object of the release now: %v", err)
	w.removeNamespaces(second)
}

// platform is the umbrella of test/chart, of which docs/chart.md has the templates, with an
// image and a query that there are.
func (w *world) platform() string {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "platform")
	require.NoError(w, errors.Join(
		os.CopyFS(dir, os.DirFS(filepath.Join(w.root, "test", "chart", "testdata", "umbrella"))),
		os.CopyFS(filepath.Join(dir, "charts", "autoscale-operator"), os.DirFS(w.chart())),
		os.Remove(filepath.Join(dir, "templates", "steps.yaml")),
		os.Remove(filepath.Join(dir, "templates", "plain.yaml")),
	))
	for file, edit := range map[string][2]string{
		"deployment.yaml": {"registry.example.com/web:1", "localhost/service:e2e"},
		"_objects.tpl":    {"load{namespace=$namespace, deployment=$target}", soldInShop},
	} {
		path := filepath.Join(dir, "templates", file)
		text, err := os.ReadFile(path)
		require.NoError(w, err)
		require.Contains(w, string(text), edit[0])
		require.NoError(w, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), edit[0], edit[1])), 0o600))
	}
	return dir
}

// mustUpgradePlatform installs or upgrades it: the values are the operator's own, one level
// down.
func (w *world) mustUpgradePlatform(chart string, more ...string) {
	w.Helper()
	const below = "autoscale-operator."
	w.must(w.tools.Path(binaries.Helm3), append([]string{
		"upgrade", "--install", secondRelease, chart, "--namespace=" + second, "--create-namespace", "--wait", "--timeout=3m",
		"--set=" + below + "image.repository=" + repository + "," + below + "image.tag=" + presentTag,
		"--set=" + below + "config.endpoints[0].name=main," + below + "config.endpoints[0].url=http://prometheus." + monitoring + ":9090",
	}, more...)...)
}
