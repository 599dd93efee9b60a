//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	operatortest "example.com/platform/autoscale-operator/test/operator"
)

// said collects the warnings that a client is told.
type said struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader remembers one.
func (s *said) HandleWarningHeader(_ int, _, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

// take gives the warnings since the last call.
func (s *said) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts := s.texts
	s.texts = nil
	return texts
}

// admitting is a control plane with the real program in front of it, whose caches
// are as late as they are in a cluster, and a person who may do everything.
type admitting struct {
	*testing.T
	controlPlane *controlplane.ControlPlane
	client       client.Client
	warnings     *said
}

func startAdmitting(t *testing.T, config string) *admitting {
	t.Helper()
	a := &admitting{T: t, warnings: &said{}}
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	a.controlPlane = cp
	metrics := fixture.NewMetricServer(t)
	metrics.Value(300)
	operatortest.Start(t, cp, operatortest.Options{Config: fmt.Sprintf("endpoints: [{name: main, url: '%s'}]\n%s", metrics.URL(), config)})
	a.client = a.as(cp.Config)
	require.NoError(t, a.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj()))
	return a
}

func (a *admitting) as(config *rest.Config) client.Client {
	a.Helper()
	config = unlimited(config)
	config.WarningHandler = a.warnings
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(a, err)
	return c
}

func (a *admitting) namespace(name string) {
	a.Helper()
	require.NoError(a, a.client.Create(a.Context(), namespace(name)))
}

func (a *admitting) create(objects ...client.Object) {
	a.Helper()
	for _, obj := range objects {
		require.NoError(a, a.client.Create(a.Context(), obj))
	}
	a.warnings.take()
}

// noPermissionWasMissing looks at all that the operator asked for.
func (a *admitting) noPermissionWasMissing() {
	a.Helper()
	requests, err := a.controlPlane.Requests(a.Context(), controlplane.OperatorUser)
	require.NoError(a, err)
	for _, r := range requests {
		assert.NotEqual(a, int32(http.StatusForbidden), r.Code, "%+v", r)
	}
}

func TestAdmissionByARealOperator(t *testing.T) {
	a := startAdmitting(t, `
defaults:
  poll_interval_seconds: 60
  behavior: {scale_down_max_step: 3}
claims: {require_permission: true}
`)
	t.Run("the configuration's defaults are stored", a.defaultsAreStored)
	t.Run("FC29 a Deployment and its AutoScaler in one apply", a.oneApply)
	t.Run("warnings name what is risky", a.warned)
	t.Run("a take-over needs the verb claim", a.takeOverNeedsTheVerb)
	a.noPermissionWasMissing()
}

func (a *admitting) defaultsAreStored(t *testing.T) {
	a.namespace("defaults")
	open := builders.MakeAutoScaler("defaults", "web").Poll(0).Metric("load", "total", "100").Obj()
	open.Spec.Behavior = nil
	a.create(open)
	assert.Equal(t, int32(60), open.Spec.PollIntervalSeconds)
	assert.Equal(t, &v1alpha1.Behavior{ScaleDownMaxStep: new(int32(3)), ScaleDownStabilizationSeconds: new(int32(300))}, open.Spec.Behavior)
}

// oneApply is what kubectl apply does with a file: one request after the other, with
// the caches of the operator behind by as much as they are.
func (a *admitting) oneApply(t *testing.T) {
	const rounds = 200
	a.namespace("apply")
	for i := range rounds {
		for _, order := range []string{"first", "last"} {
			name := fmt.Sprintf("web-%s-%d", order, i)
			deployment := builders.Deployment("apply", name, 2)
			autoscaler := builders.MakeAutoScaler("apply", name).Target(name).Poll(3600).Metric("load", "total", "100").Obj()
			objects := []client.Object{deployment, autoscaler}
			if order == "last" {
				objects = []client.Object{autoscaler, deployment}
			}
			for _, obj := range objects {
				require.NoError(t, a.client.Create(t.Context(), obj), "the Deployment %s, round %d", order, i)
			}
			told := strings.Join(a.warnings.take(), "\n")
			assert.Equal(t, order == "last", strings.Contains(told, "there is no Deployment"), "the Deployment %s: %q", order, told)
			var b v1alpha1.ScaleBinding
			require.NoError(t, a.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), &b))
			require.Equal(t, autoscaler.UID, b.Spec.OwnerUID)
		}
	}
}

func (a *admitting) warned(t *testing.T) {
	a.namespace("warned")
	d := builders.Deployment("warned", "web", 30)
	require.NoError(t, a.client.Create(t.Context(), d, client.FieldOwner("a-pipeline")))
	first := builders.MakeAutoScaler("warned", "web").Window(10).Paused().Metric("load", "total", "100").Obj()
	first.Spec.PollIntervalSeconds = 0 // the platform's 60
	require.NoError(t, a.client.Create(t.Context(), first))
	told := a.warnings.take()
	require.Len(t, told, 2, "%q", told)
	assert.Contains(t, told[0], `spec.replicas of Deployment "web" was last set by a-pipeline;`)
	assert.Contains(t, told[1], "10 s is shorter than the poll interval of 60 s")

	require.NoError(t, a.client.Create(t.Context(), builders.MakeAutoScaler("warned", "waits").ClaimPolicy(v1alpha1.ClaimWait).Metric("load", "total", "100").Obj()))
	told = a.warnings.take()
	require.NotEmpty(t, told)
	assert.Contains(t, told[0], `AutoScaler "web" holds the replica count; this one stands by`)

	require.NoError(t, a.client.Create(t.Context(), builders.HPA("warned", "old", "api")))
	a.warnings.take()
	shadow := builders.MakeAutoScaler("warned", "shadow").Target("api").DryRun().Metric("load", "total", "100").Obj()
	require.NoError(t, a.client.Create(t.Context(), shadow))
	assert.Contains(t, strings.Join(a.warnings.take(), "\n"), `HorizontalPodAutoscaler "old" scales the Deployment`)
}

func (a *admitting) takeOverNeedsTheVerb(t *testing.T) {
	const ns = "claims"
	a.namespace(ns)
	grant := func(name string, rules ...rbacv1.PolicyRule) {
		a.create(
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: rules},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "devs"}},
			})
	}
	group := []string{v1alpha1.GroupVersion.Group}
	grant("edit", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"autoscalers"}, Verbs: []string{"*"}})
	alice := a.as(a.controlPlane.UserConfig("alice", "devs"))
	autoscaler := func(name, target string) *v1alpha1.AutoScaler {
		return builders.MakeAutoScaler(ns, name).Target(target).ClaimPolicy(v1alpha1.ClaimReject).Metric("load", "total", "100").Obj()
	}
	require.Eventually(t, func() bool { return alice.Create(t.Context(), autoscaler("own", "own")) == nil },
		20*time.Second, 50*time.Millisecond, "a first claim needs no permission but to create AutoScalers")
	held := autoscaler("before", "web")
	a.create(held)

	assert.ErrorContains(t, alice.Create(t.Context(), autoscaler("after", "web")), `held by AutoScaler "before"`)
	waiting := autoscaler("after", "web")
	waiting.Spec.ClaimPolicy = v1alpha1.ClaimWait
	assert.ErrorContains(t, alice.Create(t.Context(), waiting), `the verb "claim"`, "to wait is to take over later")
	require.NoError(t, a.client.Delete(t.Context(), held))
	require.Eventually(t, func() bool {
		err := alice.Create(t.Context(), autoscaler("after", "web"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), `the verb "claim" on resource scalebindings`)
	}, 20*time.Second, 50*time.Millisecond, "once the holder is gone, it is the permission that is missing")

	grant("take-over", rbacv1.PolicyRule{APIGroups: group, Resources: []string{"scalebindings"}, ResourceNames: []string{"web"}, Verbs: []string{"claim"}})
	require.Eventually(t, func() bool { return alice.Create(t.Context(), autoscaler("after", "web")) == nil }, 20*time.Second, 50*time.Millisecond)
	assert.ErrorContains(t, alice.Update(t.Context(), pointedAt(t, alice, ns, "own", "web")), `held by AutoScaler "after"`)
}

// pointedAt is a stored AutoScaler with another target.
func pointedAt(t *testing.T, c client.Client, ns, name, target string) *v1alpha1.AutoScaler {
	t.Helper()
	var a v1alpha1.AutoScaler
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &a))
	a.Spec.TargetRef.Name = target
	return &a
}
