//go:build integration

package guard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
)

// Users, beside the operator. All have every right, so that only the guard refuses.
const (
	masters       = "system:masters"
	person        = "ada"
	deployer      = "system:serviceaccount:argocd:argocd-application-controller"
	hpaController = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
	breakGlass    = "autoscale.example.com:break-glass"
)

const (
	// effective bounds the wait for a ScaleGuard or a policy to take effect.
	effective = 20 * time.Second
	poll      = 20 * time.Millisecond
	// unusual is a replica count that no Deployment here has.
	unusual = 97
)

// world is one test's namespace.
type world struct {
	*testing.T
	cp        *controlplane.ControlPlane
	namespace string
}

var namespaces atomic.Int32

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldIn(t, shared)
}

func newWorldIn(t *testing.T, cp *controlplane.ControlPlane) *world {
	t.Helper()
	w := &world{T: t, cp: cp, namespace: fmt.Sprintf("guard-%d", namespaces.Add(1))}
	require.NoError(t, w.admin().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	return w
}

// user is a client that also tells the warnings it was given.
type user struct {
	client.Client
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader takes in a warning of the API server.
func (u *user) HandleWarningHeader(_ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warnings = append(u.warnings, text)
}

// warned gives the warnings since the last call.
func (u *user) warned() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	text := strings.Join(u.warnings, "\n")
	u.warnings = nil
	return text
}

func (w *world) clientOf(config *rest.Config) *user {
	w.Helper()
	u := &user{}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = u
	var err error
	u.Client, err = client.New(config, client.Options{Scheme: scheme})
	require.NoError(w, err)
	return u
}

// as is a user with all rights.
func (w *world) as(name string, groups ...string) *user {
	w.Helper()
	return w.clientOf(w.cp.UserConfig(name, append(groups, masters)...))
}

func (w *world) admin() *user { return w.as("admin") }

// operator has the operator's name, and all rights: what it lacks is not the subject.
func (w *world) operator() *user { return w.as(controlplane.OperatorUser) }

func (w *world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// deployment creates one, 3 replicas strong and paused, so that nobody makes pods.
func (w *world) deployment(name string) *appsv1.Deployment {
	w.Helper()
	d := builders.Deployment(w.namespace, name, 3)
	d.Spec.Paused = true
	if labels := d.Spec.Selector.MatchLabels; len(name) > validation.LabelValueMaxLength {
		labels["app"] = "long"
	}
	require.NoError(w, w.admin().Create(w.Context(), d))
	return d
}

func (w *world) get(name string) *appsv1.Deployment {
	w.Helper()
	var d appsv1.Deployment
	require.NoError(w, w.admin().Get(w.Context(), w.key(name), &d))
	require.NotNil(w, d.Spec.Replicas)
	return &d
}

func (w *world) replicas(name string) int32 {
	w.Helper()
	return *w.get(name).Spec.Replicas
}

// guardOf makes a ScaleGuard of "deployment=holder" pairs.
func (w *world) guardOf(name string, pairs ...string) *v1alpha1.ScaleGuard {
	g := &v1alpha1.ScaleGuard{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	g.Spec.Held = "/"
	for _, pair := range pairs {
		g.Spec.Held += pair + "/"
		g.Spec.Count++
	}
	return g
}

// hold says, as the operator does, that AutoScalers hold Deployments, and waits until
// the API server has heard of it. Each pair is "deployment=holder".
func (w *world) hold(pairs ...string) {
	w.Helper()
	w.holdIn("guard", pairs...)
}

func (w *world) holdIn(guard string, pairs ...string) {
	w.Helper()
	require.NoError(w, w.operator().Create(w.Context(), w.guardOf(guard, pairs...)))
	last, _, _ := strings.Cut(pairs[len(pairs)-1], "=")
	w.awaitScaling(last, false)
}

// awaitScaling waits until a scale write to the Deployment would be accepted, or
// refused. A Deployment that does not exist is made for the moment.
func (w *world) awaitScaling(name string, accepted bool) {
	w.Helper()
	probe := w.as(deployer)
	err := w.admin().Get(w.Context(), w.key(name), &appsv1.Deployment{})
	if apierrors.IsNotFound(err) {
		d := w.deployment(name)
		defer func() { require.NoError(w, w.admin().Delete(context.Background(), d)) }()
	}
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		err := w.putScale(probe, name, unusual, client.DryRunAll)
		if accepted {
			assert.NoError(c, err)
			return
		}
		assert.ErrorContains(c, err, "autoscale-guard-scale")
	}, effective, poll)
}

// putScale replaces the scale subresource.
func (w *world) putScale(u *user, name string, replicas int32, opts ...client.SubResourceUpdateOption) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	scale := &autoscalingv1.Scale{ObjectMeta: d.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	return u.SubResource("scale").Update(w.Context(), d, append(opts, client.WithSubResourceBody(scale))...)
}

// patchScale patches the scale subresource.
func (w *world) patchScale(u *user, name string, replicas int32) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	return u.SubResource("scale").Patch(w.Context(), d, patch)
}

// patch sends a merge patch of a Deployment.
func (w *world) patch(u *user, name, patch string, opts ...client.PatchOption) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	return u.Patch(w.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch)), opts...)
}

// kubectl runs the real one as a person with all rights, and gives what it printed.
func (w *world) kubectl(args ...string) (string, error) {
	w.Helper()
	args = append([]string{"--namespace=" + w.namespace, "--as=" + person, "--as-group=" + masters}, args...)
	cmd := exec.CommandContext(w.Context(), kubectlPath, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.cp.Kubeconfig(), "KUBECACHEDIR="+w.TempDir(), "KUBERC=off",
		"KUBE_EDITOR="+w.editor())
	output, err := cmd.CombinedOutput()
	return string(output), err
}

// editor stands for a person who types 9 where a replica count of 3 stood.
func (w *world) editor() string { return `sed -i -e s/replicas:\ 3/replicas:\ 9/` }

// manifest writes a manifest of the Deployment "web" and gives its path. A negative
// replica count leaves the field out.
func (w *world) manifest(image string, replicas int) string {
	w.Helper()
	count := ""
	if replicas >= 0 {
		count = fmt.Sprintf("  replicas: %d\n", replicas)
	}
	text := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
%[2]s  paused: true
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: %[1]s
`, image, count)
	path := filepath.Join(w.TempDir(), "manifest.yaml")
	require.NoError(w, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// requireRefused checks that the guard refused, saying who holds the Deployment and
// the way out.
func requireRefused(t *testing.T, w *world, message, policy, deployment, holder string) {
	t.Helper()
	require.Contains(t, message, "ValidatingAdmissionPolicy '"+policy+"'")
	require.Contains(t, message, "AutoScaler "+holder+" holds the replica count of Deployment "+w.namespace+"/"+deployment)
	require.Contains(t, message, "kubectl -n "+w.namespace+" patch autoscalers.autoscale.example.com "+holder+
		` --type=merge -p '{"spec":{"paused":true,"pausedUntil":null}}'`)
}
