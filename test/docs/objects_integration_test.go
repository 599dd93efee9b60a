//go:build integration

package docs

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/docs/script"
	"example.com/platform/autoscale-operator/test/managers/crds"
)

// TestTheObjectsOfGitOpsToolsAreTheirs has the API server read what gitops.md shows of
// Argo CD and Flux, strictly, as those projects define it.
func TestTheObjectsOfGitOpsToolsAreTheirs(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	extensions, err := clientset.NewForConfig(cp.Config)
	require.NoError(t, err)
	application, err := crds.Application()
	require.NoError(t, err)
	helmRelease, err := crds.HelmRelease()
	require.NoError(t, err)
	kustomization, err := crds.Kustomization(t.Context())
	require.NoError(t, err)
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{application, helmRelease, kustomization} {
		_, err = extensions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), crd.Name, metav1.GetOptions{})
			require.NoError(t, err)
			for _, c := range now.Status.Conditions {
				if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
					return true
				}
			}
			return false
		}, 30*time.Second, 50*time.Millisecond, crd.Name)
	}
	desk := script.Desk(t, cp.Kubeconfig())
	_, err = desk.Type(t.Context(), "for n in argocd flux-system production; do kubectl create namespace $n; done")
	require.NoError(t, err)
	n := 0
	for _, b := range blocks(t, "gitops") {
		if !strings.HasPrefix(b.File(), "argocd-") && !strings.HasPrefix(b.File(), "flux-") {
			continue
		}
		n++
		_, err := desk.Type(t.Context(), "kubectl apply --dry-run=server --validate=strict -f - <<'END'\n"+b.Text+"END\n")
		assert.NoError(t, err, b.File())
	}
	assert.Equal(t, 6, n)
}

func TestTheValuesOfThePagesAreTheCharts(t *testing.T) {
	desk := script.Desk(t, "")
	n := 0
	for _, name := range pages {
		for _, b := range blocks(t, name) {
			if !strings.HasPrefix(b.File(), "values") {
				continue
			}
			n++
			_, err := desk.Type(t.Context(), "helm template autoscale-operator charts/autoscale-operator --namespace autoscale-operator-system --values - > rendered.yaml <<'END'\n"+
				b.Text+"END\ngrep -x 'kind: Deployment' rendered.yaml")
			assert.NoError(t, err, "%s:%d", name, b.Line)
		}
	}
	assert.Equal(t, 5, n)
}
