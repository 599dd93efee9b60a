//go:build integration

// Package helm upgrades releases with the real helm commands, versions 3 and 4, in
// front of a real API server and the operator's own program.
package helm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/operator"
)

// demanded is the count that the metric asks for all the time.
const demanded = 4

// handOver bounds what the operator does by itself after an upgrade.
const handOver = 30 * time.Second

// world is a control plane with the operator on it, and both versions of helm. They
// differ: 3 merges a patch, 4 applies on the server's side.
type world struct {
	controlPlane *controlplane.ControlPlane
	client       client.Client
	tools        binaries.Set
	namespaces   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	tools, err := binaries.Build(t.Context(), os.Stderr, binaries.Helm3, binaries.Helm4)
	require.NoError(t, err)
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	metrics := fixture.NewMetricServer(t)
	metrics.Value(demanded * 100)
	operator.Start(t, cp, operator.Options{Config: fmt.Sprintf("endpoints:\n- name: main\n  url: %s\n", metrics.URL())})
	w := &world{controlPlane: cp, client: newClient(t, cp), tools: tools}
	require.NoError(t, w.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj()))
	return w
}

// tell runs a story with each version of helm.
func (w *world) tell(t *testing.T, name string, story func(*release)) {
	t.Helper()
	for _, tool := range []binaries.Tool{binaries.Helm3, binaries.Helm4} {
		t.Run(name+", "+string(tool), func(t *testing.T) {
			w.namespaces++
			r := &release{T: t, world: w, tool: tool, home: t.TempDir(), namespace: fmt.Sprintf("shop-%d", w.namespaces)}
			require.NoError(t, w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}))
			story(r)
		})
	}
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	admin, err := client.New(cp.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return admin
}

// release is the chart "shop" in a namespace of its own.
type release struct {
	*testing.T
	*world
	tool      binaries.Tool
	home      string
	namespace string
}

// tryUpgrade installs the release, or upgrades it to these values and the chart's
// own for the rest. What begins with -- is a flag.
func (r *release) tryUpgrade(values ...string) (string, error) {
	r.Helper()
	args := []string{"upgrade", "--install", "shop", filepath.Join("testdata", "shop"), "--namespace=" + r.namespace,
		"--kubeconfig=" + r.controlPlane.Kubeconfig(), "--timeout=60s", "--reset-values"}
	for _, value := range values {
		if !strings.HasPrefix(value, "--") {
			value = "--set=" + value
		}
		args = append(args, value)
	}
	command := exec.CommandContext(r.Context(), r.tools.Path(r.tool), args...)
	command.Env = append(os.Environ(), "HOME="+r.home, "HELM_CACHE_HOME="+r.home, "HELM_CONFIG_HOME="+r.home, "HELM_DATA_HOME="+r.home)
	output, err := command.CombinedOutput()
	r.Logf("helm upgrade %q:\n%s", values, output)
	return string(output), err
}

func (r *release) upgrade(values ...string) {
	r.Helper()
	_, err := r.tryUpgrade(values...)
	require.NoError(r, err)
}

// refused is an upgrade that must fail; it gives what helm says.
func (r *release) refused(values ...string) string {
	r.Helper()
	said, err := r.tryUpgrade(values...)
	require.Error(r, err)
	return said
}

func (r *release) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: name}
}

func (r *release) deployment() *appsv1.Deployment {
	r.Helper()
	var d appsv1.Deployment
	require.NoError(r, r.client.Get(r.Context(), r.key("web"), &d))
	return &d
}

func (r *release) replicas() int32 {
	r.Helper()
	return *r.deployment().Spec.Replicas
}

func (r *release) binding() *v1alpha1.ScaleBinding {
	r.Helper()
	var b v1alpha1.ScaleBinding
	require.NoError(r, r.client.Get(r.Context(), r.key("web"), &b))
	return &b
}

// exists says whether an object is stored.
func (r *release) exists(obj client.Object, name string) bool {
	r.Helper()
	err := r.client.Get(r.Context(), r.key(name), obj)
	require.NoError(r, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// heldBy waits until an AutoScaler holds the Deployment, confirmed, with the guard as
// it is to be and the namespace's index of held Deployments in step.
func (r *release) heldBy(name string, guard v1alpha1.GuardState) *v1alpha1.ScaleBinding {
	r.Helper()
	require.Eventually(r, func() bool {
		b := r.binding()
		return !b.Free() && b.Spec.OwnerRef.Name == name && b.Status.Phase == v1alpha1.PhaseHeld &&
			b.Spec.Guard == guard && (r.indexed() == name) == (guard == v1alpha1.GuardClosed)
	}, handOver, 50*time.Millisecond, "%s holds the Deployment, its guard %s", name, guard)
	return r.binding()
}

// indexed is the holder that the namespace's ScaleGuard names.
func (r *release) indexed() string {
	r.Helper()
	var list v1alpha1.ScaleGuardList
	require.NoError(r, r.client.List(r.Context(), &list, client.InNamespace(r.namespace)))
	for i := range list.Items {
		if holder, found := list.Items[i].HolderOf("web"); found {
			return holder
		}
	}
	return ""
}

// scaled waits until the Deployment has the count that the metric asks for.
func (r *release) scaled() {
	r.Helper()
	require.Eventually(r, func() bool { return r.replicas() == demanded }, handOver, 50*time.Millisecond, "scaled to %d", demanded)
}

// scaleAsHPA writes the count as the HPA's controller would.
func (r *release) scaleAsHPA(replicas int32) {
	r.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	require.NoError(r, r.client.SubResource("scale").Update(r.Context(), r.deployment(), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
}

// writesOfTheCount are those of the whole world to this Deployment's count, through
// its scale subresource.
func (r *release) writesOfTheCount() int {
	r.Helper()
	all, err := r.controlPlane.Requests(r.Context(), "")
	require.NoError(r, err)
	n := 0
	for _, request := range all {
		if request.IsWrite() && request.Namespace == r.namespace && request.Resource == "deployments" && request.Subresource == "scale" {
			n++
		}
	}
	return n
}
