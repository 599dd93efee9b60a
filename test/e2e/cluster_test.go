//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/image"
	"example.com/platform/autoscale-operator/test/node"
)

// The environment of a run; `make e2e` sets it.
const (
	// kubeconfigEnv names a cluster to use in the place of a node of the run's own. It
	// must have cert-manager, and nothing of the operator.
	kubeconfigEnv = "E2E_KUBECONFIG"
	// loadEnv is the command that brings an image archive there, such as
	// "kind load image-archive"; the archive's path is added to it.
	loadEnv = "E2E_LOAD"
)

// groupSuffix is how the names of our CRDs end.
const groupSuffix = ".autoscale.example.com"

// cluster is where the acceptance takes place.
type cluster struct {
	// node is ours; nil where it is somebody else's cluster.
	node       *node.Node
	config     *rest.Config
	kubeconfig string
	tools      binaries.Set
	// root is the checkout, out where archives and the report are, dir for what is of
	// no use afterwards.
	root, out, dir string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	c := &cluster{root: root, out: filepath.Join(root, "bin", "e2e"), dir: t.TempDir(), kubeconfig: os.Getenv(kubeconfigEnv)}
	require.NoError(t, os.MkdirAll(c.out, 0o750))
	c.tools, err = binaries.Build(t.Context(), os.Stderr, binaries.Kubectl, binaries.Helm3, binaries.Helm4, binaries.Prometheus)
	require.NoError(t, err)
	if c.kubeconfig != "" {
		c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
		require.NoError(t, err)
		return c
	}
	c.node, err = node.Start(t.Context(), node.Options{CertManager: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.node.Stop()) })
	c.kubeconfig, c.config = c.node.Kubeconfig(), c.node.RESTConfig()
	return c
}

// ours skips a part that no other cluster can be asked for.
func (w *world) ours(why string) {
	w.Helper()
	if w.node == nil {
		w.Skipf("only on a node of the run's own: %s", why)
	}
}

// callsPods says whether pods can be called by their addresses. Where they cannot, a part
// is left out, and the log says so.
func (w *world) callsPods() bool {
	w.Helper()
	if w.node == nil {
		w.Log("left out, as it is only on a node of the run's own: calling pods by their addresses")
	}
	return w.node != nil
}

// programs are the images of a run, and what is in each.
func (c *cluster) programs() map[string]string {
	return map[string]string{
		"service": "test/e2e/service", "generator": "test/e2e/generator",
		"prometheus": c.tools.Path(binaries.Prometheus),
	}
}

// Tags of the operator's image: of this version, and of the one before.
const (
	repository  = "localhost/autoscale-operator"
	presentTag  = "e2e"
	previousTag = "e2e-previous"
)

// loadImages makes all images and brings them to the node.
func (w *world) loadImages() {
	w.Helper()
	for name, program := range w.programs() {
		w.loadImage(image.Options{Binaries: []string{program}, Name: "localhost/" + name, Tag: "e2e"})
	}
	for _, tag := range []string{presentTag, previousTag} {
		w.loadImage(image.Options{Binaries: image.Operator, Name: repository, Tag: tag})
	}
}

func (w *world) loadImage(o image.Options) {
	w.Helper()
	o.Output = filepath.Join(w.out, filepath.Base(o.Name)+"-"+o.Tag+".tar")
	require.NoError(w, image.Build(w.Context(), o))
	if w.node != nil {
		require.NoError(w, w.node.Load(w.Context(), o.Output))
		return
	}
	load := strings.Fields(os.Getenv(loadEnv))
	if len(load) == 0 {
		w.Logf("%s is not set: %s:%s must be on the nodes already", loadEnv, o.Name, o.Tag)
		return
	}
	var out bytes.Buffer
	command := exec.CommandContext(w.Context(), load[0], append(load[1:], o.Output)...)
	command.Stdout, command.Stderr = &out, &out
	require.NoError(w, command.Run(), out.String())
}

// mustBeUnused refuses a cluster on which somebody has an operator or namespaces of
// these names: the run would remove them.
func (w *world) mustBeUnused() {
	w.Helper()
	var kinds apiextensionsv1.CustomResourceDefinitionList
	require.NoError(w, w.client.List(w.Context(), &kinds))
	issues := false
	for i := range kinds.Items {
		require.False(w, strings.HasSuffix(kinds.Items[i].Name, groupSuffix),
			"%s is there: the acceptance needs a cluster without the operator, and would remove it", kinds.Items[i].Name)
		issues = issues || kinds.Items[i].Name == "certificates.cert-manager.io"
	}
	require.True(w, issues, "cert-manager is not there: install it first")
	for _, name := range namespaces {
		err := w.client.Get(w.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{})
		require.True(w, apierrors.IsNotFound(err), "namespace %s is there, and the acceptance would remove it: %v", name, err)
	}
}

// clear removes what the run has made. With a node of its own, that goes as a whole.
func (w *world) clear() {
	w.Helper()
	if w.node != nil {
		return
	}
	ctx := context.WithoutCancel(w.Context())
	for name, namespace := range releases {
		w.uninstall(name, namespace, "--no-hooks")
	}
	var kinds apiextensionsv1.CustomResourceDefinitionList
	assert.NoError(w, w.client.List(ctx, &kinds))
	for i := range kinds.Items {
		if strings.HasSuffix(kinds.Items[i].Name, groupSuffix) {
			assert.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, &kinds.Items[i])))
		}
	}
	_, err := w.run(w.tools.Path(binaries.Kubectl), "delete", "clusterrole,clusterrolebinding", "e2e-prometheus", "--ignore-not-found")
	assert.NoError(w, err)
	w.removeNamespaces(namespaces...)
}

// removeNamespaces deletes namespaces with everything in them, and waits until they are
// gone. Trouble with one keeps none of the others.
func (w *world) removeNamespaces(names ...string) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		assert.NoError(w, client.IgnoreNotFound(w.client.Delete(ctx, ns)))
	}
	for _, name := range names {
		assert.NoError(w, poll(ctx, soon, func(ctx context.Context) error {
			var ns corev1.Namespace
			if err := w.client.Get(ctx, client.ObjectKey{Name: name}, &ns); err != nil {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("namespace %s is still there: %+v", name, ns.Status.Conditions)
		}))
	}
}
