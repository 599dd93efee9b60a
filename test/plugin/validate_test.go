//go:build integration

package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

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
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"autoscalers", "metricprofiles"}, Verbs: []string{"get", "create", "patch"},
	})
	alone := w.types("validate", "-f", file(t, second))
	assert.Zero(t, alone.code, "what only the cluster knows fails nothing")
	assert.Contains(t, alone.out, `MetricProfile "total" is not among the given files`)

	asked := w.typesWith(applier, "validate", "-f", file(t, second), "--server")
	assert.Equal(t, 1, asked.code)
	assert.Contains(t, asked.out, `app.yaml:7:5: error: AutoScaler production/second: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`)
	assert.NotContains(t, asked.out, "note:", "the cluster has told")

	added := w.typesWith(applier, "validate", "-f", file(t, fresh), "--server")
	assert.Zero(t, added.code)
	assert.Contains(t, added.out, `the cluster has no MetricProfile "fresh" yet; it is among the given files, and is to be applied first`)

	forbidden := w.types("validate", "-f", file(t, fresh), "--server")
	assert.Equal(t, 2, forbidden.code, "it is not the manifest that is wrong")
	assert.Contains(t, forbidden.complaint, "app.yaml:1:1: MetricProfile fresh")
	assert.Contains(t, forbidden.complaint, "you may not create metricprofiles.autoscale.example.com there")
	assert.Contains(t, forbidden.out, "2 objects checked in 1 file", "the report is there all the same")

	t.Run("a field that is taken away", func(t *testing.T) { fieldsTakenAway(t, w, applier) })
	t.Run("a field that does not exist", func(t *testing.T) { unknownFields(t, w, applier) })
	t.Run("rights for a part of it", func(t *testing.T) { someRights(t, w) })

	unnamed := w.typesWith(applier, "validate", "-f", file(t, strings.Replace(second, "name: second", "generateName: second-", 1)), "--server")
	assert.Equal(t, 1, unnamed.code)
	assert.Contains(t, unnamed.out, "held by AutoScaler \"web\"")

	var a v1alpha1.AutoScaler
	for _, name := range []string{"second", "fresh"} {
		err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &a)
		assert.True(t, apierrors.IsNotFound(err), "nothing is stored: %v", err)
	}
}

// fieldsTakenAway: dryRun goes from the manifest of a stored AutoScaler, which asks for the
// Deployment of another one then.
func fieldsTakenAway(t *testing.T, w *world, applier string) {
	t.Helper()
	plain := builders.MakeAutoScaler(namespace, "plain").Target("web").Metric("load", "total", "100").DryRun().Obj()
	applied := builders.MakeAutoScaler(namespace, "applied").Target("web").Metric("load", "total", "100").DryRun().Obj()
	applied.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"apiVersion":"autoscale.example.com/v1alpha1","kind":"AutoScaler","metadata":{"name":"applied","namespace":"production"},"spec":{"dryRun":true}}`}
	w.create(plain, applied)
	for _, name := range []string{"plain", "applied"} {
		manifest := strings.Replace(second, "name: second", "name: "+name, 1)

		still := w.typesWith(applier, "validate", "-f", file(t, manifest+"  dryRun: true\n"), "--server")
		assert.Zero(t, still.code)

		gone := w.typesWith(applier, "validate", "-f", file(t, manifest), "--server")
		assert.Equal(t, 1, gone.code)
		assert.Contains(t, gone.out, `AutoScaler production/`+name+`: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`)
		assert.Contains(t, gone.out, "1 object checked in 1 file, 0 of other kinds: 1 error")

		var stored v1alpha1.AutoScaler
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &stored))
		assert.True(t, stored.Spec.DryRun, "nothing is stored")
	}
}

// unknownFields of an AutoScaler that is stored, and of one that is not.
func unknownFields(t *testing.T, w *world, applier string) {
	t.Helper()
	for _, name := range []string{"web", "new"} {
		asked := w.typesWith(applier, "validate", "-f", file(t, strings.Replace(second, "name: second", "name: "+name, 1)+"  dryRun: true\n  bogus: 1\n  deep: {a: 1}\n---\n"+fresh), "--server")
		assert.Equal(t, 1, asked.code)
		assert.Empty(t, asked.complaint)
		for _, field := range []string{"spec.bogus", "spec.deep"} {
			assert.Equal(t, 1, strings.Count(asked.out, `error: AutoScaler production/`+name+`: unknown field "`+field+`"`), "it is said once")
		}
		assert.Contains(t, asked.out, "3 objects checked in 1 file, 0 of other kinds: 2 errors")
	}
}

// someRights: what can be asked is asked, and the rest is told.
func someRights(t *testing.T, w *world) {
	t.Helper()
	creator := w.user("creator", rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"autoscalers"}, Verbs: []string{"get", "create"},
	})
	some := w.typesWith(creator, "validate", "-f", file(t, second+"---\n"+fresh), "--server")
	assert.Equal(t, 2, some.code)
	assert.Contains(t, some.out, `error: AutoScaler production/second: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`)
	assert.Contains(t, some.out, "note: MetricProfile fresh: the cluster could not be asked: you may not get metricprofiles.autoscale.example.com there")
	assert.Contains(t, some.complaint, "you may not get metricprofiles.autoscale.example.com there")

	stored := w.typesWith(creator, "validate", "-f", file(t, strings.Replace(second, "name: second", "name: web", 1)), "--server")
	assert.Equal(t, 2, stored.code)
	assert.Contains(t, stored.complaint, "you may not patch autoscalers.autoscale.example.com there")
}
