//go:build integration

// Package plugin runs kubectl autoscaler, built from the checkout, as a person does,
// against a real API server with the operator's own program in front of it.
package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/operator"
)

const (
	namespace = "production"
	// within bounds what the operator does by itself.
	within    = 30 * time.Second
	lookEvery = 100 * time.Millisecond
)

// world is a control plane with the operator in front of it.
type world struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
	metrics      *fixture.MetricServer
	plugin       string
	// reader is the kubeconfig of who types.
	reader string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	w := &world{T: t, controlPlane: cp, metrics: fixture.NewMetricServer(t), plugin: build(t)}
	config := rest.CopyConfig(cp.Config)
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	operator.Start(t, cp, operator.Options{Config: fmt.Sprintf("endpoints:\n- name: main\n  url: %s\n", w.metrics.URL())})
	w.reader = w.user(reader, rbacv1.PolicyRule{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{"get", "list", "watch"}})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return w
}

// build builds the plugin.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl-autoscaler")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/kubectl-autoscaler").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.client.Create(w.Context(), o))
	}
}

// answer is what a command prints, and how it ends.
type answer struct {
	out, complaint string
	code           int
}

// reader may read everything, and write nothing.
const reader = "reader"

// types runs the plugin as the reader.
func (w *world) types(args ...string) answer {
	w.Helper()
	return w.typesWith(w.reader, args...)
}

// user makes a user with some rights, and gives the path of a kubeconfig of theirs.
func (w *world) user(name string, rules ...rbacv1.PolicyRule) string {
	w.Helper()
	named := metav1.ObjectMeta{Name: "plugin-" + name}
	w.create(&rbacv1.ClusterRole{ObjectMeta: named, Rules: rules}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
	})
	config := w.controlPlane.UserConfig(name)
	path := filepath.Join(w.TempDir(), "kubeconfig")
	require.NoError(w, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, ClientCertificate: config.CertFile, ClientKey: config.KeyFile,
			Token: config.BearerToken, Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: namespace}},
		CurrentContext: "x",
	}, path))
	return path
}

func (w *world) typesWith(kubeconfig string, args ...string) answer {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, w.plugin, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w, err)
	}
	a := answer{out.String(), complaint.String(), command.ProcessState.ExitCode()}
	w.Logf("kubectl autoscaler %q: %d\n%s%s", args, a.code, a.out, a.complaint)
	return a
}
