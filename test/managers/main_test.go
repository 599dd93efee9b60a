//go:build integration

// Package managers holds the look-up of other replica managers to its promises on a
// real API server, with kinds that come and go.
package managers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/managers/crds"
)

const (
	// effective bounds the wait for a change to be noticed.
	effective = 30 * time.Second
	poll      = 20 * time.Millisecond
	// look is the time between two looks at which kinds are served.
	look = 200 * time.Millisecond
)

var (
	plane *controlplane.ControlPlane
	// admin is a person with all rights.
	admin  client.Client
	scheme = runtime.NewScheme()
	// hpaCache holds HorizontalPodAutoscalers by index, as the operator's does.
	hpaCache     cache.Cache
	scaledObject *apiextensionsv1.CustomResourceDefinition
	wpa          *apiextensionsv1.CustomResourceDefinition
	worldNumber  atomic.Int32
)

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr), zap.UseDevMode(true), zap.Level(zapcore.DPanicLevel)))
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	controlplane.Main(m, controlplane.Options{}, func(cp *controlplane.ControlPlane) {
		if err := prepare(context.Background(), cp); err != nil {
			_ = cp.Stop()
			fmt.Fprintln(os.Stderr, "replica manager tests:", err)
			os.Exit(1)
		}
	})
}

func prepare(ctx context.Context, cp *controlplane.ControlPlane) (err error) {
	plane = cp
	if admin, err = client.New(unlimited(cp.Config), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if scaledObject, err = crds.ScaledObject(ctx); err != nil {
		return err
	}
	if wpa, err = crds.WatermarkPodAutoscaler(); err != nil {
		return err
	}
	if hpaCache, err = cache.New(unlimited(cp.Config), cache.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := hpaCache.IndexField(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, binding.HPATarget, binding.IndexHPA); err != nil {
		return err
	}
	go func() { utilruntime.Must(hpaCache.Start(ctx)) }()
	return nil
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// world is one test's: a namespace, and managers that are looked for.
type world struct {
	*testing.T
	*binding.Managers
	namespace string

	mu      sync.Mutex
	changes []string
}

// newWorld looks for the default replica managers as the user of a configuration.
// Nothing is cached before start.
func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	w := &world{T: t, namespace: fmt.Sprintf("managers-%d", worldNumber.Add(1))}
	require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	config = unlimited(config)
	live, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	w.Managers, err = binding.NewManagers(binding.ManagersOptions{
		Cached: hpaCache, Live: live,
		Dynamic: dynamic.NewForConfigOrDie(config), Discovery: discovery.NewDiscoveryClientForConfigOrDie(config),
		Registered: binding.DefaultManagers(), Clock: clock.RealClock{}, Interval: look,
	})
	require.NoError(t, err)
	w.OnChange(func(namespace, target string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if namespace == w.namespace {
			w.changes = append(w.changes, target)
		}
	})
	return w
}

// start keeps caches until the test ends.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			assert.NoError(w, err)
		case <-time.After(effective):
			assert.Fail(w, "the managers did not stop")
		}
	})
}

// install makes the API server serve a kind until the test ends.
func (w *world) install(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	require.NoError(w, admin.Create(w.Context(), crd.DeepCopy()))
	w.Cleanup(func() { w.remove(crd) })
	w.eventually(crd.Name+" is served", func() bool {
		return admin.List(context.Background(), listOf(crd), client.InNamespace(w.namespace)) == nil
	})
}

// remove takes a kind away, with all of its objects.
func (w *world) remove(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	ctx := context.Background()
	require.NoError(w, client.IgnoreNotFound(admin.Delete(ctx, crd.DeepCopy())))
	w.eventually(crd.Name+" is gone", func() bool {
		return apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()))
	})
}

func kindOf(crd *apiextensionsv1.CustomResourceDefinition) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: crd.Spec.Group, Version: "v1alpha1", Kind: crd.Spec.Names.Kind}
}

func listOf(crd *apiextensionsv1.CustomResourceDefinition) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kindOf(crd).GroupVersion().WithKind(crd.Spec.Names.ListKind))
	return list
}

// manager makes an object of a kind that scales a Deployment.
func (w *world) manager(crd *apiextensionsv1.CustomResourceDefinition, name, target string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
		"triggers":       []any{map[string]any{"type": "cpu", "metadata": map[string]any{"value": "50"}}},
	}}}
	u.SetGroupVersionKind(kindOf(crd))
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

func (w *world) hpa(name, apiVersion, target string) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: "Deployment", Name: target}
	h.Spec.MaxReplicas = 3
	return h
}

func (w *world) create(obj client.Object) {
	w.Helper()
	require.NoError(w, admin.Create(w.Context(), obj))
}

// update changes an object as it is stored.
func (w *world) update(obj client.Object, change func()) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		require.NoError(c, admin.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
		change()
		require.NoError(c, admin.Update(w.Context(), obj))
	}, effective, poll)
}

func (w *world) eventually(what string, condition func() bool) {
	w.Helper()
	require.Eventually(w, condition, effective, poll, what)
}

// finds waits until a look-up by index finds a manager by kind and name, or, for "",
// none; then a live one must say the same.
func (w *world) finds(target, want string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) { says(c, w.Find(w.Context(), w.namespace, target), want) }, effective, poll)
	says(w, w.FindLive(w.Context(), w.namespace, target), want)
}

func says(t assert.TestingT, err error, want string) {
	if want == "" {
		assert.NoError(t, err)
		return
	}
	var conflict *binding.ManagerError
	if assert.ErrorAs(t, err, &conflict) {
		assert.Equal(t, want, conflict.Kind+" "+conflict.Name)
	}
}

// told waits until the targets have been told of, in any order, and forgets them.
func (w *world) told(targets ...string) {
	w.Helper()
	slices.Sort(targets)
	var seen []string
	w.eventually(fmt.Sprintf("%v are told of", targets), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		seen = slices.Sorted(slices.Values(w.changes))
		if !slices.Equal(seen, targets) {
			return false
		}
		w.changes = nil
		return true
	})
}
