//go:build integration

package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/docs/script"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/managers/crds"
	"example.com/platform/autoscale-operator/test/operator"
)

const (
	// namespace and service are those of the pages.
	namespace = "production"
	service   = "order-service"
	profile   = "order-service-total-qps"
	// demanded is the count that the metric asks for all the time.
	demanded = 4
	// within bounds what the operator does by itself.
	within = 30 * time.Second
)

// world is a control plane with the operator in front of it, as the pages assume.
type world struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
	// desk is where the page was followed.
	desk *script.Reader
}

// at is the world of one test, with a desk of its own.
func (w *world) at(t *testing.T) *world {
	t.Helper()
	return &world{T: t, controlPlane: w.controlPlane, client: w.client, desk: script.Desk(t, w.controlPlane.Kubeconfig())}
}

// following begins a page: the namespace has a Deployment, held by an AutoScaler or
// not, and nothing else.
func (w *world) following(t *testing.T, name string, held bool) *world {
	t.Helper()
	w = w.at(t)
	w.sweep()
	if held {
		w.manage()
		w.holds()
	}
	require.NoError(w, w.desk.Follow(t.Context(), page(name)))
	return w
}

// manage creates a Deployment, its metric and its AutoScaler.
func (w *world) manage() {
	w.Helper()
	w.create(builders.Deployment(namespace, service, demanded))
	w.create(builders.MakeMetricProfile(profile).Obj())
	w.create(builders.MakeAutoScaler(namespace, service).Target(service).Metric("request-rate", profile, "100").Obj())
}

func (w *world) create(obj client.Object) {
	w.Helper()
	require.NoError(w, w.client.Create(w.Context(), obj))
}

// sweep removes what the page before has left.
func (w *world) sweep() {
	w.Helper()
	in := client.InNamespace(namespace)
	for _, obj := range []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{}, scaledObject(), &v1alpha1.AutoScaler{}, &appsv1.Deployment{}, &v1alpha1.ScaleBinding{}, &v1alpha1.ScaleGuard{},
	} {
		require.NoError(w, w.client.DeleteAllOf(w.Context(), obj, in))
	}
	require.NoError(w, w.client.DeleteAllOf(w.Context(), &v1alpha1.MetricProfile{}))
	// The operator may have been about to write them again.
	require.Eventually(w, func() bool {
		var guards v1alpha1.ScaleGuardList
		return w.client.DeleteAllOf(w.Context(), &v1alpha1.ScaleBinding{}, in) == nil &&
			w.client.List(w.Context(), &guards, in) == nil && len(guards.Items) == 0
	}, within, 100*time.Millisecond)
}

func scaledObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"})
	return u
}

func key() client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: service} }

func (w *world) exists(obj client.Object) bool {
	w.Helper()
	err := w.client.Get(w.Context(), key(), obj)
	require.NoError(w, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

func (w *world) replicas() int32 {
	w.Helper()
	var d appsv1.Deployment
	require.NoError(w, w.client.Get(w.Context(), key(), &d))
	return *d.Spec.Replicas
}

func (w *world) binding() *v1alpha1.ScaleBinding {
	w.Helper()
	var b v1alpha1.ScaleBinding
	require.NoError(w, w.client.Get(w.Context(), key(), &b))
	return &b
}

// holds waits until the AutoScaler holds the Deployment, and the API server knows.
func (w *world) holds() *v1alpha1.AutoScaler {
	w.Helper()
	var a v1alpha1.AutoScaler
	require.Eventually(w, func() bool {
		var guards v1alpha1.ScaleGuardList
		if w.client.List(w.Context(), &guards, client.InNamespace(namespace)) != nil || w.client.Get(w.Context(), key(), &a) != nil {
			return false
		}
		closed := false
		for i := range guards.Items {
			_, found := guards.Items[i].HolderOf(service)
			closed = closed || found
		}
		return closed && meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
	}, within, 100*time.Millisecond, "%s is held", service)
	return &a
}

// scales are how often the operator has written a count so far.
func (w *world) scales() int {
	w.Helper()
	writes, err := w.controlPlane.Writes(w.Context(), controlplane.OperatorUser)
	require.NoError(w, err)
	n := 0
	for _, r := range writes {
		if r.Subresource == "scale" {
			n++
		}
	}
	return n
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	config := rest.CopyConfig(cp.Config)
	config.WarningHandler = rest.NoWarnings{} // those that kubectl gets are shown
	admin, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w := &world{T: t, controlPlane: cp, client: admin}
	keda, err := crds.ScaledObject(t.Context())
	require.NoError(t, err)
	w.create(keda)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	require.Eventually(t, func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(scaledObject().GroupVersionKind())
		return admin.List(t.Context(), list) == nil
	}, within, 100*time.Millisecond, "KEDA's kind is served")
	w.breakGlass()
	metrics := fixture.NewMetricServer(t)
	metrics.Value(demanded * 100)
	metrics.On("drill_no_such_metric").Empty()
	operator.Start(t, cp, operator.Options{Config: fmt.Sprintf("endpoints:\n- name: main\n  url: %s\n", metrics.URL())})
	return w
}

// breakGlass lets on call do what rbac.md grants.
func (w *world) breakGlass() {
	w.Helper()
	for _, b := range blocks(w.T, "rbac") {
		if b.File() == "break-glass.yaml" {
			for document := range strings.SplitSeq(b.Text, "\n---\n") {
				w.create(decode[unstructured.Unstructured](w.T, document))
			}
			return
		}
	}
	w.Error("rbac.md has no break-glass.yaml")
}

// TestAReaderWhoFollowsAPageGetsWhatItSays types the commands of each page, in its
// order, on a real API server with the operator's own program in front of it.
func TestAReaderWhoFollowsAPageGetsWhatItSays(t *testing.T) {
	w := newWorld(t)

	t.Run("install", func(t *testing.T) {
		w := w.following(t, "install", false)
		assert.Equal(t, v1alpha1.PhaseHeld, w.binding().Status.Phase)
	})
	for name, manager := range map[string]client.Object{"handover-hpa": &autoscalingv2.HorizontalPodAutoscaler{}, "handover-keda": scaledObject()} {
		t.Run(name, func(t *testing.T) {
			w := w.at(t)
			w.sweep()
			before := w.scales()
			w.create(builders.Deployment(namespace, service, demanded))
			require.NoError(t, w.desk.Follow(t.Context(), page(name)))
			assert.True(t, w.exists(manager), "and back")
			assert.False(t, w.exists(&v1alpha1.AutoScaler{}))
			assert.Equal(t, int32(demanded), w.replicas())
			assert.Equal(t, before, w.scales(), "no step of it writes a count")
		})
	}
	t.Run("gitops", func(t *testing.T) {
		w := w.following(t, "gitops", false)
		assert.Equal(t, int32(demanded), w.replicas())
		w.storedAsWritten()
	})
	t.Run("rbac", func(t *testing.T) {
		w := w.following(t, "rbac", true)
		assert.Equal(t, int32(5), w.replicas(), "the glass is broken, and the operator waits before it puts its own back")
	})
	t.Run("manual-takeover", func(t *testing.T) {
		w.following(t, "manual-takeover", true).holds()
	})
	t.Run("rollout", func(t *testing.T) {
		a := w.following(t, "rollout", true).holds()
		assert.Equal(t, v1alpha1.ReasonManaging, meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionReady).Reason)
	})
	t.Run("upgrade", func(t *testing.T) {
		w.following(t, "upgrade", true).holds()
	})
	t.Run("runbooks", func(t *testing.T) { w.at(t).runbooks() })
	t.Run("disaster-recovery", func(t *testing.T) {
		w := w.following(t, "disaster-recovery", true)
		a, b := w.holds(), w.binding()
		assert.Equal(t, a.UID, b.Spec.OwnerUID)
		assert.Equal(t, a.Status.TargetUID, b.Spec.TargetUID)
		w.takesOverARestoredBinding()
		w.survivesTheLossOfItsKinds()
	})
}

// takesOverARestoredBinding plays a tool that brings a ScaleBinding back too, past the
// guard: it names an owner and a Deployment that nobody has any more.
func (w *world) takesOverARestoredBinding() {
	w.Helper()
	tool, err := client.New(w.controlPlane.UserConfig("restore", "system:masters", "autoscale.example.com:break-glass"),
		client.Options{Scheme: w.client.Scheme()})
	require.NoError(w, err)
	old := w.binding()
	w.sweep()
	old.ObjectMeta = metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name}
	require.NoError(w, tool.Create(w.Context(), old.DeepCopy()))

	w.manage()

	a, b := w.holds(), w.binding()
	assert.Equal(w, a.UID, b.Spec.OwnerUID)
	assert.Equal(w, a.Status.TargetUID, b.Spec.TargetUID)
	assert.NotEqual(w, old.Spec.OwnerUID, b.Spec.OwnerUID)
	assert.NotEqual(w, old.Spec.TargetUID, b.Spec.TargetUID)
	assert.Greater(w, b.Spec.Epoch, old.Spec.Epoch)
}

// survivesTheLossOfItsKinds deletes the CRDs under a live operator and guard, and types
// what the page says.
func (w *world) survivesTheLossOfItsKinds() {
	w.Helper()
	before := w.scales()
	_, err := w.desk.Type(w.Context(), "kubectl delete -f config/crd")
	require.NoError(w, err)
	assert.Equal(w, int32(demanded), w.replicas())
	_, err = w.desk.Type(w.Context(), "kubectl -n production scale deployment order-service --replicas=5")
	require.NoError(w, err, "the guard has nothing to search")
	_, err = w.desk.Type(w.Context(), "kubectl -n production scale deployment order-service --replicas=4")
	require.NoError(w, err)
	for _, b := range blocks(w.T, "disaster-recovery") {
		if strings.HasPrefix(b.Text, "kubectl apply --server-side") {
			_, err := w.desk.Type(w.Context(), b.Text)
			require.NoError(w, err)
		}
	}
	w.holds()
	assert.Equal(w, before, w.scales())
}

// storedAsWritten holds the page to its word that it leaves nothing to be filled in.
func (w *world) storedAsWritten() {
	w.Helper()
	var a v1alpha1.AutoScaler
	require.NoError(w, w.client.Get(w.Context(), key(), &a))
	for _, b := range blocks(w.T, "gitops") {
		if b.File() == "autoscaler.yaml" {
			written := decode[v1alpha1.AutoScaler](w.T, b.Text)
			assert.Equal(w, written.Spec, a.Spec)
			return
		}
	}
	w.Error("there is no autoscaler.yaml")
}

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	return into
}
