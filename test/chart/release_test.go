//go:build integration

package chart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// demanded is the count that the metric asks for all the time.
const demanded = 4

// withEachOnACluster tells a story with each version of helm, each on an empty cluster.
func withEachOnACluster(t *testing.T, story func(*world)) {
	t.Helper()
	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		w := newWorld(t, h)
		w.metrics.Value(demanded * 100)
		story(w)
	})
}

// try runs helm with what each command of a release needs.
func (w *world) try(args ...string) (string, error) {
	w.Helper()
	output, complaint, err := w.helm.run(w.T, args...)
	w.Logf("helm %s\n%s%s", strings.Join(args, " "), output, complaint)
	return output + complaint, err
}

func (w *world) must(args ...string) string {
	w.Helper()
	said, err := w.try(args...)
	require.NoError(w, err, "helm %s", strings.Join(args, " "))
	return said
}

// refused is a command that must fail; it gives what helm says.
func (w *world) refused(args ...string) string {
	w.Helper()
	said, err := w.try(args...)
	require.Error(w, err, "helm %s", strings.Join(args, " "))
	return said
}

// upgrade are the arguments that install a release of the chart, or upgrade it, and wait.
func (w *world) upgrade(chart, release, namespace string, more ...string) []string {
	return append([]string{
		"upgrade", "--install", release, chart, "--namespace=" + namespace, "--create-namespace", "--wait", "--timeout=90s",
		"--set=config.endpoints[0].name=main,config.endpoints[0].url=" + w.metrics.URL(), "--set=shutdownDelaySeconds=1",
	}, more...)
}

// atomic is the flag that takes a failed install or upgrade back.
func (w *world) atomic() string {
	if w.helm.tool == binaries.Helm3 {
		return "--atomic"
	}
	return "--rollback-on-failure"
}

// shop makes a Deployment and an AutoScaler that holds it, and waits until it is scaled.
func (w *world) shop(namespace string) *v1alpha1.AutoScaler {
	w.Helper()
	w.namespace(namespace)
	require.NoError(w, w.client.Create(w.Context(), builders.Deployment(namespace, "web", 2)))
	w.profile()
	a := builders.MakeAutoScaler(namespace, "web").Obj()
	require.NoError(w, w.client.Create(w.Context(), a))
	w.scaled(namespace)
	return a
}

func (w *world) profile() {
	w.Helper()
	err := w.client.Create(w.Context(), builders.MakeMetricProfile("total").Obj())
	require.NoError(w, client.IgnoreAlreadyExists(err))
}

func (w *world) replicas(namespace string) int32 {
	w.Helper()
	var d appsv1.Deployment
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &d))
	return *d.Spec.Replicas
}

// scaled waits until the Deployment has the count that the metric asks for, and its
// binding is held.
func (w *world) scaled(namespace string) {
	w.Helper()
	require.NoError(w, poll(w.Context(), func(context.Context) error {
		b := w.binding(namespace)
		if n := w.replicas(namespace); n != demanded || b.Status.Phase != v1alpha1.PhaseHeld {
			return fmt.Errorf("%d replicas, the binding is %q", n, b.Status.Phase)
		}
		return nil
	}))
}

func (w *world) binding(namespace string) *v1alpha1.ScaleBinding {
	w.Helper()
	var b v1alpha1.ScaleBinding
	require.NoError(w, client.IgnoreNotFound(w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &b)))
	return &b
}

// bundles are the CAs that the API server would trust, by the names of the webhooks.
func (w *world) bundles() map[string]string {
	w.Helper()
	key := client.ObjectKey{Name: chartName}
	found := map[string]string{}
	var v admissionv1.ValidatingWebhookConfiguration
	require.NoError(w, w.client.Get(w.Context(), key, &v))
	for i := range v.Webhooks {
		found[v.Webhooks[i].Name] = string(v.Webhooks[i].ClientConfig.CABundle)
	}
	var m admissionv1.MutatingWebhookConfiguration
	require.NoError(w, w.client.Get(w.Context(), key, &m))
	for i := range m.Webhooks {
		found[m.Webhooks[i].Name] = string(m.Webhooks[i].ClientConfig.CABundle)
	}
	return found
}

// older is a copy of the chart as an earlier version could be: its AutoScalers had no short
// name.
func older(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), chartName)
	require.NoError(t, os.CopyFS(dir, os.DirFS(chartDir)))
	edit(t, filepath.Join(dir, "Chart.yaml"), func(text string) string {
		return strings.Replace(text, "\nversion: ", "\nversion: 0.0.1 # not ", 1)
	})
	edit(t, filepath.Join(dir, "templates", "crd-autoscalers.yaml"), func(text string) string {
		return strings.Replace(text, "    shortNames:\n    - asc\n", "", 1)
	})
	return dir
}

func edit(t *testing.T, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := change(string(data))
	require.NotEqual(t, string(data), changed)
	require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
}

// listed is a release as helm list tells of it.
type listed struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Status    string `json:"status"`
}

func decodeReleases(t require.TestingT, output string) []listed {
	var releases []listed
	require.NoError(t, yaml.Unmarshal([]byte(output), &releases))
	return releases
}

// admits says whether an AutoScaler that is right is admitted, and one that is not is
// refused by the operator.
func (w *world) admits() {
	w.Helper()
	good := builders.MakeAutoScaler("shop", "trial").Target("trial").Obj()
	assert.NoError(w, w.client.Create(w.Context(), good, client.DryRunAll))
	bad := builders.MakeAutoScaler("shop", "trial").Target("trial").Metric("load", "nobodys", "100").Obj()
	assert.ErrorContains(w, w.client.Create(w.Context(), bad, client.DryRunAll), "there is no such MetricProfile")
}

// gone is an error while an object is there.
func (w *world) gone(obj client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err == nil {
			return fmt.Errorf("%s is still there", obj.GetName())
		}
		return client.IgnoreNotFound(err)
	}
}
