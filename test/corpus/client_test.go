//go:build integration

package corpus

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"example.com/platform/autoscale-operator/test/manifests"
)

// client sends manifests as they are written and keeps the answers' warnings.
type client struct {
	rest   rest.Interface
	mapper meta.RESTMapper

	mu       sync.Mutex
	warnings []string
}

func newClient(t *testing.T, config *rest.Config) *client {
	t.Helper()
	c := &client{}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = c
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c.rest = clientset.CoreV1().RESTClient()
	groups, err := restmapper.GetAPIGroupResources(clientset.Discovery())
	require.NoError(t, err)
	c.mapper = restmapper.NewDiscoveryRESTMapper(groups)
	return c
}

// HandleWarningHeader keeps a warning.
func (c *client) HandleWarningHeader(code int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if code == 299 {
		c.warnings = append(c.warnings, text)
	}
}

func (c *client) takeWarnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.warnings
	c.warnings = nil
	return taken
}

// path is where objects of the document's kind are.
func (c *client) path(d manifests.Document) (string, error) {
	gvk := d.Object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind())
	if err != nil {
		return "", err
	}
	path := "/apis/" + gvk.GroupVersion().String()
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		path += "/namespaces/" + d.Object.GetNamespace()
	}
	return path + "/" + mapping.Resource.Resource, nil
}

// create sends the document as kubectl would for a new object: unknown and repeated
// fields are errors.
func (c *client) create(ctx context.Context, d manifests.Document, dryRun bool) error {
	path, err := c.path(d)
	if err != nil {
		return err
	}
	request := c.rest.Post().AbsPath(path).Param("fieldValidation", "Strict").
		SetHeader("Content-Type", "application/yaml").Body(d.Raw)
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	return request.Do(ctx).Error()
}

// apply is a server-side apply of the document.
func (c *client) apply(ctx context.Context, d manifests.Document) (*unstructured.Unstructured, error) {
	path, err := c.path(d)
	if err != nil {
		return nil, err
	}
	return object(c.rest.Patch(types.ApplyYAMLPatchType).AbsPath(path, d.Object.GetName()).
		Param("fieldValidation", "Strict").Param("fieldManager", "corpus").Body(d.Raw).Do(ctx))
}

func (c *client) get(ctx context.Context, d manifests.Document) (*unstructured.Unstructured, error) {
	path, err := c.path(d)
	if err != nil {
		return nil, err
	}
	return object(c.rest.Get().AbsPath(path, d.Object.GetName()).Do(ctx))
}

// object is the one that an answer holds.
func object(result rest.Result) (*unstructured.Unstructured, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	answer, err := result.Raw()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	err = o.UnmarshalJSON(answer)
	return o, err
}
