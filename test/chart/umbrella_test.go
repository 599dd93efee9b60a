//go:build integration

package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// umbrella is a chart of a platform's own that has the operator below it, and beside it a
// Deployment, a MetricProfile and an AutoScaler. Its templates are those of docs/chart.md:
// kind says which.
func (w *world) umbrella(kind string) string {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "platform")
	require.NoError(w, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "umbrella"))))
	require.NoError(w, os.CopyFS(filepath.Join(dir, "charts", chartName), os.DirFS(chartDir)))
	for _, other := range []string{"steps", "one-step", "plain"} {
		if other != kind {
			require.NoError(w, os.Remove(filepath.Join(dir, "templates", other+".yaml")))
		}
	}
	return dir
}

// install are the arguments for the umbrella.
func (w *world) install(chart string, more ...string) []string {
	return append([]string{
		"upgrade", "--install", "platform", chart, "--namespace=platform", "--create-namespace", "--timeout=90s",
		"--set=autoscale-operator.config.endpoints[0].name=main,autoscale-operator.config.endpoints[0].url=" + w.metrics.URL(),
	}, more...)
}

// FC-46, the path for every tool: an object is left out until what it needs is there. The
// first pass installs the operator, the second one the profile, the third one the rest; each
// is whole, and the same command goes on where the last one ended.
func TestFC46_AnUmbrellaThatConverges(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		chart := w.umbrella("steps")

		w.must(w.install(chart, "--wait", w.atomic())...)
		assert.False(w, w.exists(&v1alpha1.MetricProfile{}, "", "platform"))
		w.must(w.install(chart, "--wait", w.atomic())...)
		assert.True(w, w.exists(&v1alpha1.MetricProfile{}, "", "platform"))
		assert.False(w, w.exists(&v1alpha1.AutoScaler{}, "platform", "web"))
		w.must(w.install(chart, "--wait", w.atomic())...)

		w.scaled("platform")
		held := w.binding("platform").Spec
		w.must(w.install(chart, "--wait", w.atomic(), "--set=maxReplicas=30")...)
		assert.Equal(w, held, w.binding("platform").Spec, "an upgrade changes the AutoScaler in place")
		w.must("uninstall", "platform", "--namespace=platform", "--wait")
		assert.False(w, w.exists(&v1alpha1.AutoScaler{}, "platform", "web"))
	})
}

// FC-46, in one command: at the install the objects are hooks that come last, and from then
// on they are objects of the release like all others.
func TestFC46_AnUmbrellaInOneStep(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		chart := w.umbrella("one-step")

		w.must(w.install(chart, "--wait", w.atomic())...)

		w.scaled("platform")
		held := w.binding("platform").Spec
		w.must(w.install(chart, "--wait", w.atomic(), "--set=maxReplicas=30")...)
		assert.Equal(w, held, w.binding("platform").Spec, "the upgrade took the AutoScaler over as it was")
		w.must(w.install(chart, "--wait", w.atomic())...)
		w.must("rollback", "platform", "2", "--namespace=platform", "--wait", "--timeout=90s")
		assert.Equal(w, held, w.binding("platform").Spec)
		// The first revision does not list them, as docs/chart.md warns.
		w.must("rollback", "platform", "1", "--namespace=platform", "--wait", "--timeout=90s")
		assert.False(w, w.exists(&v1alpha1.AutoScaler{}, "platform", "web"))
		assert.EqualValues(w, demanded, w.replicas("platform"))
		w.must("uninstall", "platform", "--namespace=platform", "--wait")
		assert.False(w, w.exists(&v1alpha1.AutoScaler{}, "platform", "web"))
	})
}

// FC-46, what does not work, and what helm says then: so that docs/chart.md can say it, and
// so that it is known when it begins to work.
func TestFC46_AnUmbrellaWithoutEitherIsRefusedBeforeAnythingIsMade(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		said := w.refused(w.install(w.umbrella("plain"), "--wait")...)

		assert.Contains(w, said, `no matches for kind "AutoScaler"`)
		assert.False(w, w.exists(&v1alpha1.AutoScaler{}, "platform", "web"))
	})
}
