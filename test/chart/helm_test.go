//go:build integration

package chart

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

const (
	chartDir  = "../../charts/autoscale-operator"
	chartName = "autoscale-operator"
	// releaseNamespace is where config/ puts the operator, too.
	releaseNamespace = "autoscale-operator-system"
)

// The versions of Kubernetes that templates are rendered for, with what decides about the
// guard: the oldest that the chart allows, and the newest. Helm's own default is a version
// of its libraries'.
var versions = map[string][]string{
	"1.30": {"--kube-version=1.30.0"},
	"1.37": {"--kube-version=1.37.2", "--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"},
}

// both are the versions of helm. They differ: 3 merges a patch, 4 applies on the server's
// side.
var both = []binaries.Tool{binaries.Helm3, binaries.Helm4}

// helm is one version of the command, with folders of its own.
type helm struct {
	tool binaries.Tool
	path string
	home string
	// kubeconfig is of the cluster, if any.
	kubeconfig string
}

func newHelm(t *testing.T, tool binaries.Tool) *helm {
	t.Helper()
	set, err := binaries.Build(t.Context(), os.Stderr, tool)
	require.NoError(t, err)
	return &helm{tool: tool, path: set.Path(tool), home: t.TempDir()}
}

// withEach runs a test with each version of helm.
func withEach(t *testing.T, test func(*testing.T, *helm)) {
	t.Helper()
	for _, tool := range both {
		t.Run(string(tool), func(t *testing.T) { test(t, newHelm(t, tool)) })
	}
}

// run gives what helm prints, and what it complains of.
func (h *helm) run(t *testing.T, args ...string) (output, complaint string, err error) {
	t.Helper()
	if h.kubeconfig != "" {
		args = append(args, "--kubeconfig="+h.kubeconfig)
	}
	// What cleans up runs after the test's own context has ended.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), h.path, args...)
	command.Env = append(os.Environ(), "HOME="+h.home, "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// template renders the chart as the release would, and fails the test where helm does.
func (h *helm) template(t *testing.T, args ...string) string {
	t.Helper()
	output, complaint, err := h.tryTemplate(t, args...)
	require.NoError(t, err, complaint)
	return output
}

// templateOn renders for a version of Kubernetes.
func (h *helm) templateOn(t *testing.T, version string, args ...string) string {
	t.Helper()
	output, complaint, err := h.run(t, slices.Concat([]string{"template", chartName, chartDir, "--namespace=" + releaseNamespace}, versions[version], args)...)
	require.NoError(t, err, complaint)
	return output
}

// tryTemplate renders for the newest version. A first argument that is no flag is the
// release's name.
func (h *helm) tryTemplate(t *testing.T, args ...string) (output, complaint string, err error) {
	t.Helper()
	release := chartName
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		release, args = args[0], args[1:]
	}
	return h.run(t, slices.Concat([]string{"template", release, chartDir, "--namespace=" + releaseNamespace}, versions["1.37"], args)...)
}

// valueSets are the files of values, by their names.
func valueSets(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "values", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	sets := map[string]string{}
	for _, path := range paths {
		sets[strings.TrimSuffix(filepath.Base(path), ".yaml")] = path
	}
	return sets
}

// decode reads the objects of manifests. A key that is there twice is an error: helm takes
// it, and kubectl kustomize does not.
func decode(t require.TestingT, manifests string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err, manifests)
		object, err := yaml.YAMLToJSONStrict(document)
		require.NoError(t, err, string(document))
		if string(object) == "null" { // nothing but comments
			continue
		}
		o := &unstructured.Unstructured{}
		require.NoError(t, o.UnmarshalJSON(object), string(document))
		objects = append(objects, o)
	}
}

// find gives the one object of a kind and name.
func find(t require.TestingT, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	require.Fail(t, "not rendered", "%s %s", kind, name)
	return nil
}

// ofKind gives the objects of a kind.
func ofKind(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}
