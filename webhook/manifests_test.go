package webhook

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// registered are the configurations as they are shipped. Both kinds have the fields
// that are looked at under the same names.
func registered(t *testing.T) []admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "config", "webhook", "manifests.yaml"))
	require.NoError(t, err)
	defer file.Close()
	var all []admissionregistrationv1.MutatingWebhookConfiguration
	for decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var c admissionregistrationv1.MutatingWebhookConfiguration
		err := decoder.Decode(&c)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, c)
	}
}

func TestFC42_NoWebhookExemptsByALabel(t *testing.T) {
	paths := map[string][]string{}
	for _, c := range registered(t) {
		for i := range c.Webhooks {
			w := &c.Webhooks[i]
			assert.Nil(t, w.NamespaceSelector, w.Name)
			assert.Nil(t, w.ObjectSelector, w.Name)
			assert.Equal(t, admissionregistrationv1.Fail, *w.FailurePolicy, w.Name)
			for _, r := range w.Rules {
				assert.Equal(t, []string{v1alpha1.GroupVersion.Group}, r.APIGroups, "%s: a kind that is not ours must not depend on us", w.Name)
				for _, resource := range r.Resources {
					assert.NotContains(t, resource, "/", "%s: a status is never blocked", w.Name)
					assert.NotContains(t, resource, "*", w.Name)
				}
				assert.NotContains(t, r.Operations, admissionregistrationv1.Delete, w.Name)
			}
			for _, r := range w.Rules {
				paths[*w.ClientConfig.Service.Path] = append(paths[*w.ClientConfig.Service.Path], r.Resources...)
			}
		}
	}
	assert.Equal(t, map[string][]string{
		DefaulterPath: {"autoscalers"},
		"/validate-autoscale-example-com-v1alpha1-autoscaler":    {"autoscalers"},
		"/validate-autoscale-example-com-v1alpha1-metricprofile": {"metricprofiles"},
	}, paths, "each of ours is registered for its kind")
}
