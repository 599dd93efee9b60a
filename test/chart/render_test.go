//go:build integration

package chart

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the snapshots anew")

func TestTheChartIsWithoutFault(t *testing.T) {
	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		for name, values := range valueSets(t) {
			output, complaint, err := h.run(t, "lint", "--strict", chartDir, "--values="+values)
			assert.NoError(t, err, "%s: %s%s", name, output, complaint)
		}
	})
}

// Snapshots are of all that is not generated from config/: those parts are compared with
// their sources.
func TestSnapshots(t *testing.T) {
	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		for name, values := range valueSets(t) {
			for version := range versions {
				t.Run(name+" on "+version, func(t *testing.T) {
					rendered := snapshot(t, h.templateOn(t, version, "--values="+values))
					path := filepath.Join("testdata", "snapshots", name+"-"+version+".yaml")
					if *update {
						require.NoError(t, os.WriteFile(path, []byte(rendered), 0o600))
					}
					want, err := os.ReadFile(path)
					require.NoError(t, err)
					assert.Equal(t, string(want), rendered, "go test -tags=integration ./test/chart -run TestSnapshots -update")
				})
			}
		}
	})
}

// snapshot is what was rendered, sorted and without the texts' own spaces, which differ
// between the versions of helm. CRDs, dashboard and alerts have tests of their own.
func snapshot(t *testing.T, rendered string) string {
	t.Helper()
	var texts []string
	for _, o := range decode(t, rendered) {
		if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "PrometheusRule" || strings.HasSuffix(o.GetName(), "-dashboard") {
			continue
		}
		text, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		texts = append(texts, "# "+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()+"\n"+string(text))
	}
	slices.Sort(texts)
	return strings.Join(texts, "---\n")
}

// FC-49: what is injected is not the chart's to say.
func TestFC49_NoBundleIsRendered(t *testing.T) {
	h := newHelm(t, both[0])
	for name, values := range valueSets(t) {
		rendered := h.template(t, "--values="+values)
		assert.NotContains(t, rendered, "caBundle", name)
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			for _, o := range ofKind(decode(t, rendered), kind) {
				from, found := o.GetAnnotations()["cert-manager.io/inject-ca-from"]
				if name == "self-managed" || name == "provided" {
					assert.False(t, found, name)
					continue
				}
				namespace, certificate, _ := strings.Cut(from, "/")
				assert.Equal(t, releaseNamespace, namespace, name)
				find(t, decode(t, rendered), "Certificate", certificate)
			}
		}
	}
}

func TestAVersionOfKubernetesThatIsTooOldIsRefused(t *testing.T) {
	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		_, complaint, err := h.tryTemplate(t, "--kube-version=1.29.0")
		require.Error(t, err)
		assert.Contains(t, complaint, "1.30")
	})
}
