//go:build integration

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
	operatortest "example.com/platform/autoscale-operator/test/operator"
)

const anEndpoint = "endpoints: [{name: main, url: 'http://127.0.0.1:1'}]\n"

// starting is a control plane in front of which operators are started, one by one.
type starting struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
}

func newStarting(t *testing.T) *starting {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	c, err := client.New(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return &starting{T: t, controlPlane: cp, client: c}
}

// of is the same for a part of the test.
func (s *starting) of(t *testing.T) *starting {
	t.Helper()
	return &starting{T: t, controlPlane: s.controlPlane, client: s.client}
}

func (s *starting) run(args ...string) *operatortest.Operator {
	s.Helper()
	return operatortest.Run(s.T, s.controlPlane, operatortest.Options{Config: anEndpoint, Args: args})
}

// ends expects that the operator ends by itself, and that its last line is plain.
func (s *starting) ends(o *operatortest.Operator) string {
	s.Helper()
	select {
	case <-o.Done():
	case <-time.After(60 * time.Second):
		require.Fail(s, "it did not end")
	}
	lines := strings.Split(strings.TrimSpace(o.Log()), "\n")
	last := lines[len(lines)-1]
	assert.True(s, strings.HasPrefix(last, "autoscale-operator: "), last)
	assert.NotContains(s, o.Log(), "goroutine ", "no stack trace")
	assert.NotContains(s, o.Log(), "stacktrace")
	return last
}

// readiness waits until /readyz says something.
func (s *starting) readiness(o *operatortest.Operator, within time.Duration, words ...string) {
	s.Helper()
	var text string
	if !assert.Eventually(s, func() bool {
		text, _ = o.Ready(s.Context())
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}, within, 50*time.Millisecond) {
		require.Contains(s, text, strings.Join(words, " … "))
	}
}

func (s *starting) ready(o *operatortest.Operator, within time.Duration) {
	s.Helper()
	require.Eventually(s, func() bool {
		_, err := o.Ready(s.Context())
		return err == nil
	}, within, 50*time.Millisecond)
}

// change changes a CRD, and changes it back when the test ends.
func (s *starting) change(name string, do func(*apiextensionsv1.JSONSchemaProps)) {
	s.Helper()
	write := func(ctx context.Context, do func(*apiextensionsv1.CustomResourceDefinition)) {
		var last error
		require.Eventually(s, func() bool {
			var definition apiextensionsv1.CustomResourceDefinition
			if last = s.client.Get(ctx, client.ObjectKey{Name: name}, &definition); last != nil {
				return false
			}
			do(&definition)
			last = s.client.Update(ctx, &definition)
			return last == nil
		}, 10*time.Second, 50*time.Millisecond, "%v", last)
	}
	var before apiextensionsv1.CustomResourceDefinition
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Name: name}, &before))
	write(s.Context(), func(d *apiextensionsv1.CustomResourceDefinition) { do(d.Spec.Versions[0].Schema.OpenAPIV3Schema) })
	s.Cleanup(func() {
		write(context.WithoutCancel(s.Context()), func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec = before.Spec })
	})
}

func TestWhatKeepsAnOperatorFromStarting(t *testing.T) {
	world := newStarting(t)

	t.Run("FC-44: CRDs that are older than the operator", func(t *testing.T) {
		s := world.of(t)
		s.change("autoscalers.autoscale.example.com", func(root *apiextensionsv1.JSONSchemaProps) {
			status := root.Properties["status"]
			delete(status.Properties, "shadow")
			root.Properties["status"] = status
		})
		last := s.ends(s.run())
		assert.Contains(t, last, "CRD autoscalers.autoscale.example.com is older than this operator: it lacks status.shadow; bring the CRDs up to date")
	})

	t.Run("FC-44: CRDs that are newer do not", func(t *testing.T) {
		s := world.of(t)
		s.change("metricprofiles.autoscale.example.com", func(root *apiextensionsv1.JSONSchemaProps) {
			spec := root.Properties["spec"]
			spec.Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			root.Properties["spec"] = spec
		})
		s.ready(s.run(), 60*time.Second)
	})

	t.Run("another install for all namespaces", func(t *testing.T) {
		s := world.of(t)
		other := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{
			Name: "another-install", Annotations: map[string]string{"autoscale.example.com/watch-namespaces": "*"},
		}}
		require.NoError(t, s.client.Create(t.Context(), other))
		t.Cleanup(func() { require.NoError(t, s.client.Delete(context.WithoutCancel(s.Context()), other)) })
		// The older one goes on, also where it is started again.
		s.ready(s.run(), 60*time.Second)
		last := s.ends(s.run("--webhook-configurations=later", "--webhook-port=0"))
		assert.Contains(t, last, `another autoscale-operator is installed for all namespaces, and this one is for all namespaces: its ValidatingWebhookConfiguration is "another-install"`)
	})

	t.Run("a configuration with a mistake", func(t *testing.T) {
		o := operatortest.Run(t, world.controlPlane, operatortest.Options{Config: anEndpoint + "limits: {max_replica: 1}\n"})
		assert.Contains(t, world.of(t).ends(o), "max_replica")
	})

	t.Run("an address that is taken", func(t *testing.T) {
		s := world.of(t)
		first := s.run()
		s.ready(first, 60*time.Second)
		second := s.run()
		assert.Contains(t, s.ends(second), "address already in use")
		assert.NoError(t, first.Alive(t.Context()))
	})
}

func TestWhatKeepsAnOperatorFromBeingReady(t *testing.T) {
	world := newStarting(t)

	t.Run("FC-38: a permission that is missing is named within seconds, and its grant is enough", func(t *testing.T) {
		s := world.of(t)
		var role rbacv1.ClusterRole
		require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Name: "autoscale-operator"}, &role))
		whole := role.DeepCopy()
		for i := range role.Rules {
			if role.Rules[i].Resources[0] == "horizontalpodautoscalers" {
				role.Rules[i].Verbs = []string{"get", "list"}
			}
		}
		require.NoError(t, s.client.Update(t.Context(), &role))
		o := s.run()
		s.readiness(o, 20*time.Second, "[-]caches: not synced: HorizontalPodAutoscaler (", "cannot watch resource \"horizontalpodautoscalers\"", "[+]certificate ok", "[+]webhooks ok")
		assert.Contains(t, o.Log(), `cannot watch resource \"horizontalpodautoscalers\"`)
		require.NoError(t, o.Alive(t.Context()))

		whole.ResourceVersion = role.ResourceVersion
		require.NoError(t, s.client.Update(t.Context(), whole))
		s.ready(o, 90*time.Second)
	})

	t.Run("a certificate that is not there yet is awaited, without a restart", func(t *testing.T) {
		s, dir := world.of(t), t.TempDir()
		o := s.run("--webhook-cert-dir="+dir, "--cert-secret=serving-cert")
		s.readiness(o, 60*time.Second, "[+]caches ok", "[-]certificate: there is no serving certificate yet: "+dir+"/tls.crt is not there: they come from Secret "+install.Namespace+"/serving-cert")
		assert.Contains(t, o.Log(), "serving-cert")
		for _, name := range []string{"tls.crt", "tls.key"} {
			content, err := os.ReadFile(filepath.Join(s.controlPlane.WebhookCertDir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		}
		s.ready(o, 20*time.Second)
	})

	t.Run("the signal to end, and meanwhile it serves", func(t *testing.T) {
		s := world.of(t)
		leads := func() string {
			var lease coordinationv1.Lease
			err := s.client.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: controller.FieldManager}, &lease)
			if err != nil || lease.Spec.HolderIdentity == nil {
				return ""
			}
			return *lease.Spec.HolderIdentity
		}
		before := leads() // an operator that was killed holds it until it runs out
		o := s.run("--shutdown-delay=3s")
		s.ready(o, 60*time.Second)
		require.Eventually(t, func() bool { now := leads(); return now != "" && now != before }, 60*time.Second, 50*time.Millisecond)
		process, err := os.FindProcess(o.PID())
		require.NoError(t, err)
		require.NoError(t, process.Signal(syscall.SIGTERM))
		s.readiness(o, 3*time.Second, "[-]process: this replica is ending", "[+]webhooks ok")
		require.NoError(t, o.Alive(t.Context()))
		select {
		case <-o.Done():
		case <-time.After(30 * time.Second):
			require.Fail(t, "it did not end")
		}
		assert.Contains(t, o.Log(), "serving until the Service has forgotten this replica")
		assert.Empty(t, leads(), "the lease is released")
	})
}
