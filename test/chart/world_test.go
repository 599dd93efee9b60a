//go:build integration

package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/managers/crds"
)

// soon bounds what the cluster does by itself.
const soon = 60 * time.Second

// world is a control plane on which the chart is installed as on any other, by helm. A
// kubelet of the test's own runs the operator's pods as processes, with the account, the
// arguments and the files that the chart gives to them; a cert-manager of the test's own
// issues their certificates.
type world struct {
	*testing.T
	config      *rest.Config
	warnings    warnings
	client      client.Client
	clientset   kubernetes.Interface
	metrics     *fixture.MetricServer
	certManager *certManager
	helm        *helm
}

// warnings are those of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader takes one in.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts
}

// shared is the control plane of all tests, started with the first one that needs it.
var shared struct {
	once    sync.Once
	cluster *cluster.Cluster
	network *network
	err     error
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if shared.cluster != nil {
		if err := errors.Join(shared.cluster.Stop(), shared.network.Stop()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func startShared(ctx context.Context) error {
	shared.once.Do(func() {
		shared.err = func() error {
			root, err := binaries.CheckoutRoot()
			if err != nil {
				return err
			}
			if shared.network, err = startNetwork(); err != nil {
				return err
			}
			for n := 1; ; n++ {
				shared.cluster, err = cluster.Start(ctx, cluster.Options{
					Dir: filepath.Join(root, "bin", "test", fmt.Sprintf("chart-%d", n)), Controllers: true,
					ServiceSocket: shared.network.socket, Progress: os.Stderr,
				})
				if !errors.Is(err, cluster.ErrInUse) {
					break
				}
			}
			if err != nil {
				return err
			}
			return installOthers(ctx, shared.cluster.Config())
		}()
	})
	return shared.err
}

// installOthers installs the kinds of cert-manager and of the Prometheus operator.
func installOthers(ctx context.Context, config *rest.Config) error {
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	certManager, err := crds.CertManager(ctx)
	if err != nil {
		return err
	}
	prometheusOperator, err := crds.PrometheusOperator(ctx)
	if err != nil {
		return err
	}
	for _, crd := range append(certManager, prometheusOperator...) {
		if err := c.Create(ctx, crd); err != nil {
			return err
		}
	}
	for _, crd := range append(certManager, prometheusOperator...) {
		if err := established(ctx, c, crd.Name); err != nil {
			return err
		}
	}
	return nil
}

func established(ctx context.Context, c client.Client, name string) error {
	return poll(ctx, func(ctx context.Context) error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not established", name)
	})
}

// poll tries until there is no error, or soon is over.
func poll(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

// newWorld gives an empty cluster, and leaves one behind.
func newWorld(t *testing.T, h *helm) *world {
	t.Helper()
	require.NoError(t, startShared(context.Background())) // it outlives this test
	config := shared.cluster.Config()
	w := &world{T: t, config: config, helm: h, metrics: fixture.NewMetricServer(t)}
	config.WarningHandler = &w.warnings
	h.kubeconfig = shared.cluster.Kubeconfig()
	var err error
	w.client, err = client.New(config, client.Options{Scheme: newScheme()})
	require.NoError(t, err)
	w.clientset, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	t.Cleanup(w.empty)
	startKubelet(w, shared.network)
	w.certManager = startCertManager(w)
	return w
}

// namespace creates a namespace, if it is not there.
func (w *world) namespace(name string) {
	w.Helper()
	err := w.client.Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	require.NoError(w, client.IgnoreAlreadyExists(err))
}

// systemNamespaces were there before.
var systemNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// empty removes what a test has left: releases first, as a person would, then the CRDs,
// which stay, and the namespaces.
func (w *world) empty() {
	w.Helper()
	ctx := context.Background()
	list := []string{"list", "--all-namespaces", "--output=yaml"}
	if w.helm.tool == binaries.Helm3 {
		list = append(list, "--all") // whatever became of it, as helm 4 does
	}
	output, complaint, err := w.helm.run(w.T, list...)
	assert.NoError(w, err, complaint)
	for _, release := range decodeReleases(w, output) {
		_, complaint, err := w.helm.run(w.T, "uninstall", release.Name, "--namespace="+release.Namespace, "--no-hooks")
		assert.NoError(w, err, complaint)
	}
	var kinds apiextensionsv1.CustomResourceDefinitionList
	assert.NoError(w, w.client.List(ctx, &kinds))
	for i := range kinds.Items {
		if strings.HasSuffix(kinds.Items[i].Name, ".autoscale.example.com") {
			assert.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, &kinds.Items[i])))
		}
	}
	w.deleteNamespaces(ctx)
	assert.NoError(w, poll(ctx, func(ctx context.Context) error {
		var left apiextensionsv1.CustomResourceDefinitionList
		if err := w.client.List(ctx, &left); err != nil {
			return err
		}
		for i := range left.Items {
			if strings.HasSuffix(left.Items[i].Name, ".autoscale.example.com") {
				return fmt.Errorf("%s is still there", left.Items[i].Name)
			}
		}
		return nil
	}))
}

func (w *world) deleteNamespaces(ctx context.Context) {
	w.Helper()
	var all corev1.NamespaceList
	assert.NoError(w, w.client.List(ctx, &all))
	for i := range all.Items {
		ns := &all.Items[i]
		if contains(systemNamespaces, ns.Name) {
			continue
		}
		assert.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, ns)))
	}
	assert.NoError(w, poll(ctx, func(ctx context.Context) error {
		var left corev1.NamespaceList
		if err := w.client.List(ctx, &left); err != nil {
			return err
		}
		for i := range left.Items {
			if !contains(systemNamespaces, left.Items[i].Name) {
				return fmt.Errorf("namespace %s is still there: %v", left.Items[i].Name, left.Items[i].Status.Conditions)
			}
		}
		return nil
	}))
}

func contains(list []string, s string) bool {
	for _, each := range list {
		if each == s {
			return true
		}
	}
	return false
}

// exists says whether an object is stored, of a kind that may not be served.
func (w *world) exists(obj client.Object, namespace, name string) bool {
	w.Helper()
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false
	}
	require.NoError(w, err)
	return true
}
