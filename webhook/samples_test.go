package webhook

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
)

func TestEverySampleIsAdmittedWithoutAWarning(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "config", "samples", "*.yaml"))
	require.NoError(t, err)
	profiles := map[string]*v1alpha1.MetricProfile{}
	var autoscalers []*v1alpha1.AutoScaler
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			if bytes.Contains(document, []byte("\nkind: MetricProfile\n")) {
				p := &v1alpha1.MetricProfile{}
				require.NoError(t, yaml.UnmarshalStrict(document, p), file)
				profiles[p.Name] = p
				continue
			}
			a := &v1alpha1.AutoScaler{}
			require.NoError(t, yaml.UnmarshalStrict(document, a), file)
			autoscalers = append(autoscalers, a)
		}
	}

	semantics := map[v1alpha1.MetricSemantics]bool{}
	for name, p := range profiles {
		assert.Empty(t, spec.ValidateMetricProfile(p), name)
		assert.Empty(t, profileWarnings(p), name)
		semantics[p.Spec.Semantics] = true
	}
	assert.Len(t, semantics, 3, "each semantics has a sample")
	require.Len(t, autoscalers, len(profiles))
	for _, a := range autoscalers {
		assert.Empty(t, spec.ValidateAutoScaler(a, v1alpha1.DefaultLimits), a.Name)
		assert.Empty(t, specWarnings(a, now), a.Name)
		p := profiles[a.Spec.Metrics[0].MetricProfileRef]
		require.NotNil(t, p, a.Name)
		assert.True(t, p.Allows(a.Namespace), a.Name)
		assert.Empty(t, spec.CheckParameters(a, 0, p), a.Name)
	}
}
