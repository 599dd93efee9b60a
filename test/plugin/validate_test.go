//go:build integration

package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

const (
	second = `apiVersion: autoscale.example.com/v1alpha1
kind: AutoScaler
metadata:
  name: second
spec:
  targetRef:
    name: web
  minReplicas: 2
  maxReplicas: 2
  metrics:
  - name: load
    type: Prometheus
    metricProfileRef: total
    targetPerReplica: "100"
`
	fresh = `apiVersion: autoscale.example.com/v1alpha1
kind: MetricProfile
metadata:
  name: fresh
spec:
  endpoint: main
  query: sum(up{namespace=$namespace, deployment=$target})
  semantics: Total
  allowedNamespaces: [production]
---
apiVersion: autoscale.example.com/v1alpha1
kind: AutoScaler
metadata:
  name: fresh
spec:
  targetRef:
    name: free
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - name: load
    type: Prometheus
    metricProfileRef: fresh
    targetPerReplica: "100"
`
)

// TestValidateAsksTheServer: what the files do not tell, the cluster does, and nothing is
// stored.
func TestValidateAsksTheServer(t *testing.T) {
	w := newWorld(t)
	w.metrics.Value(100)
	w.create(
		builders.MakeMetricProfile("total").Obj(), builders.Deployment(namespace, "web", 2), builders.Deployment(namespace, "free", 2),
		builders.MakeAutoScaler(namespace, "web").Target("web").Metric("total", "total", "100").Obj(),
	)
	applier := w.user("applier", rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"autoscalers", "metricprofiles"}, Verbs: []string{"create", "patch"},
	})
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "app.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}

	alone := w.types("validate", "-f", file(second))
	assert.Zero(t, alone.code, "what only the cluster knows fails nothing")
	assert.Contains(t, alone.out, `MetricProfile "total" is not among the given files`)

	asked := w.typesWith(applier, "validate", "-f", file(second), "--server")
	assert.Equal(t, 1, asked.code)
	assert.Contains(t, asked.out, `app.yaml:7:5: error: AutoScaler production/second: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`)
	assert.NotContains(t, asked.out, "note:", "the cluster has told")

	added := w.typesWith(applier, "validate", "-f", file(fresh), "--server")
	assert.Zero(t, added.code)
	assert.Contains(t, added.out, `the cluster has no MetricProfile "fresh" yet; it is among the given files, and is to be applied first`)

	forbidden := w.types("validate", "-f", file(fresh), "--server")
	assert.Equal(t, 2, forbidden.code, "it is not the manifest that is wrong")
	assert.Contains(t, forbidden.complaint, "app.yaml:1:1: MetricProfile fresh")
	assert.Contains(t, forbidden.complaint, "you may not patch metricprofiles.autoscale.example.com there")

	var a v1alpha1.AutoScaler
	for _, name := range []string{"second", "fresh"} {
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &a)
		assert.True(t, apierrors.IsNotFound(err), "nothing is stored: %v", err)
	}
}
