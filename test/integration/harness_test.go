//go:build integration

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/fixture"
)

// harness is one test's world: a namespace of the real API server, a metric
// server to switch, a clock to move, and a reconciler to call.
type harness struct {
	*testing.T
	ctx        context.Context
	namespace  string
	client     client.Client
	metrics    *fixture.MetricServer
	clock      *clocktesting.FakePassiveClock
	events     *recordedEvents
	reconciler *controller.Reconciler
	sampler    *promptSampler
	// unanswered: the sampler has no answers yet.
	unanswered bool
	// What the reconciler writes is counted, and may be refused or disturbed.
	scaleWrites, statusWrites atomic.Int32
	beforeScale, beforeStatus func() error
	// afterSample runs once, between the samples and what is done with them.
	afterSample func()
	// staleReplicas is what the reconciler's cache says of an old Deployment, and
	// staleHPAs that it has not seen any HPA yet.
	staleReplicas *int32
	staleHPAs     bool
	// failing makes an API request of the reconciler fail.
	failing func(verb string, obj client.Object) error
}

var testNumber atomic.Int32

// withoutWebhooks labels a namespace that admission leaves alone, as when the
// operator was not there.
const withoutWebhooks = "test-without-webhooks"

func newHarness(t *testing.T, labels ...string) *harness {
	t.Helper()
	h := &harness{
		T: t, ctx: t.Context(), client: admin,
		namespace: fmt.Sprintf("test-%d", testNumber.Add(1)),
		// Not on a whole second: what storage rounds must not look like a change.
		clock:  clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second).Add(123456789)),
		events: &recordedEvents{},
	}
	h.metrics = fixture.NewMetricServer(t, fixture.WithClock(h.clock.Now))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace, Labels: map[string]string{}}}
	for _, label := range labels {
		ns.Labels[label] = "true"
	}
	require.NoError(t, h.client.Create(h.ctx, ns))
	h.restart()
	return h
}

// usable is what a spec must be to be evaluated.
func usable(a *v1alpha1.AutoScaler) bool {
	return len(spec.ValidateAutoScaler(a, v1alpha1.DefaultLimits)) == 0
}

// limit has the reconciler and its arbiter refuse more than so many replicas.
func (h *harness) limit(replicas int32) {
	limits := v1alpha1.Limits{MaxReplicas: replicas}
	h.reconciler.Limits = limits
	h.reconciler.Arbiter.Usable = func(a *v1alpha1.AutoScaler) bool { return len(spec.ValidateAutoScaler(a, limits)) == 0 }
}

// restart replaces the reconciler by a new one: what it had only in memory is gone.
func (h *harness) restart() {
	h.Helper()
	source, err := prometheus.NewClient([]prometheus.Endpoint{{Name: "main", URL: h.metrics.URL()}}, h.clock.Now)
	require.NoError(h, err)
	observed := h.observed()
	managers, err := binding.NewManagers(binding.ManagersOptions{Cached: observed, Live: h.client})
	require.NoError(h, err)
	h.sampler = &promptSampler{h: h, source: source, measures: map[prometheus.Subscriber][]prometheus.Measure{}}
	h.reconciler = &controller.Reconciler{
		Client: observed,
		Arbiter: &binding.Arbiter{
			Live: h.client, Writer: observed, Clock: h.clock, Grace: binding.DefaultGrace, Managers: managers, Usable: usable,
		},
		Managers: managers, Sampler: h.sampler, Telemetry: controller.NewTelemetry(observed, h.clock),
		Events: h.events, Limits: v1alpha1.DefaultLimits, Clock: h.clock,
		Jitter: func(d time.Duration) time.Duration { return d },
	}
}

type recordedEvents struct {
	mu   sync.Mutex
	seen []string
}

func (r *recordedEvents) Eventf(_, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := fmt.Sprintf(note, args...)
	if len(text) > 1024 {
		panic("the API server refuses an event whose note is longer than 1024 bytes: " + text)
	}
	r.seen = append(r.seen, eventtype+" "+reason+" "+text)
}

// take gives the events since the last call.
func (r *recordedEvents) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// deployment creates the Deployment "web".
func (h *harness) deployment(replicas int32) *appsv1.Deployment {
	h.Helper()
	d := builders.Deployment(h.namespace, "web", replicas)
	require.NoError(h, h.client.Create(h.ctx, d))
	return d
}

// profile creates a MetricProfile of this test's own and gives its name.
func (h *harness) profile(name string) string {
	h.Helper()
	full := h.namespace + "-" + name
	require.NoError(h, h.client.Create(h.ctx, builders.MakeMetricProfile(full).Obj()))
	h.Cleanup(func() {
		_ = h.client.Delete(context.Background(), builders.MakeMetricProfile(full).Obj())
	})
	return full
}

// autoscaler starts an AutoScaler "web" over the profile "total".
func (h *harness) autoscaler() *builders.AutoScaler {
	h.Helper()
	return builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.profile("total"), "100")
}

func (h *harness) create(obj client.Object) {
	h.Helper()
	require.NoError(h, h.client.Create(h.ctx, obj))
}

// poll reconciles the AutoScaler "web" once and gives its status.
func (h *harness) poll() *v1alpha1.AutoScaler {
	h.Helper()
	return h.pollNamed("web")
}

func (h *harness) pollNamed(name string) *v1alpha1.AutoScaler {
	h.Helper()
	result, err := h.reconcile(name)
	require.NoError(h, err)
	require.Positive(h, result.RequeueAfter, "every evaluation is followed by another")
	return h.get(name)
}

func (h *harness) reconcile(name string) (ctrl.Result, error) {
	return h.reconciler.Reconcile(h.ctx, ctrl.Request{NamespacedName: h.key(name)})
}

// pollFor polls every interval of 15 s until the time has passed.
func (h *harness) pollFor(d time.Duration) *v1alpha1.AutoScaler {
	h.Helper()
	for end := h.clock.Now().Add(d); h.clock.Now().Before(end); {
		h.advance(15 * time.Second)
		h.poll()
	}
	return h.get("web")
}

func (h *harness) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: h.namespace, Name: name}
}

func (h *harness) advance(d time.Duration) { h.clock.SetTime(h.clock.Now().Add(d)) }

func (h *harness) get(name string) *v1alpha1.AutoScaler {
	h.Helper()
	var a v1alpha1.AutoScaler
	require.NoError(h, h.client.Get(h.ctx, h.key(name), &a))
	return &a
}

// edit changes the AutoScaler "web" as its owner would.
func (h *harness) edit(change func(*v1alpha1.AutoScaler)) {
	h.Helper()
	a := h.get("web")
	change(a)
	require.NoError(h, h.client.Update(h.ctx, a))
}

func (h *harness) replicas() int32 {
	h.Helper()
	var d appsv1.Deployment
	require.NoError(h, h.client.Get(h.ctx, h.key("web"), &d))
	require.NotNil(h, d.Spec.Replicas)
	return *d.Spec.Replicas
}

// scaleByHand writes the replica count as somebody else.
func (h *harness) scaleByHand(replicas int32) {
	h.Helper()
	h.scaleAs(replicas, "kubectl-scale")
}

// scaleAs writes the replica count as a field manager.
func (h *harness) scaleAs(replicas int32, manager string) {
	h.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "web"}}
	scale := &autoscalingv1.Scale{ObjectMeta: d.ObjectMeta, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	require.NoError(h, h.client.SubResource("scale").Update(h.ctx, d, client.WithSubResourceBody(scale), client.FieldOwner(manager)))
}

func (h *harness) binding() *v1alpha1.ScaleBinding {
	h.Helper()
	var b v1alpha1.ScaleBinding
	require.NoError(h, h.client.Get(h.ctx, h.key("web"), &b))
	return &b
}

// bindings lists the namespace's bindings.
func (h *harness) bindings() []v1alpha1.ScaleBinding {
	h.Helper()
	var list v1alpha1.ScaleBindingList
	require.NoError(h, h.client.List(h.ctx, &list, client.InNamespace(h.namespace)))
	return list.Items
}

// deleteProfile deletes a profile that profile created.
func (h *harness) deleteProfile(name string) {
	h.Helper()
	require.NoError(h, h.client.Delete(h.ctx, builders.MakeMetricProfile(h.namespace+"-"+name).Obj()))
}

// requireCondition checks a condition and gives its message.
func (h *harness) requireCondition(a *v1alpha1.AutoScaler, name string, status metav1.ConditionStatus, reason string) string {
	h.Helper()
	c := meta.FindStatusCondition(a.Status.Conditions, name)
	require.NotNil(h, c, "condition %s is not set", name)
	require.Equal(h, string(status)+" "+reason, string(c.Status)+" "+c.Reason, "condition %s: %s", name, c.Message)
	require.Equal(h, a.Generation, c.ObservedGeneration)
	return c.Message
}

// only gives the events whose reason is one of these.
func only(events []string, reasons ...string) []string {
	var kept []string
	for _, e := range events {
		for _, r := range reasons {
			if strings.Fields(e)[1] == r {
				kept = append(kept, e)
			}
		}
	}
	return kept
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func claimant(a *v1alpha1.AutoScaler) binding.Claimant {
	return binding.ClaimantOf(a, "someone")
}

// enableWebhooks turns admission on in a namespace that began without it.
func (h *harness) enableWebhooks() {
	h.Helper()
	ns := namespace(h.namespace)
	require.NoError(h, h.client.Get(h.ctx, client.ObjectKeyFromObject(ns), ns))
	delete(ns.Labels, withoutWebhooks)
	require.NoError(h, h.client.Update(h.ctx, ns))
	require.Eventually(h, func() bool { return tryUnknownProfile(h.ctx, h.namespace) != nil },
		20*time.Second, 50*time.Millisecond, "admission did not come into force")
}

// storePastTheSchema stores an AutoScaler that the schema refuses, as an older
// schema would have let it in: the schema is loosened for the moment.
func (h *harness) storePastTheSchema(obj client.Object) {
	h.Helper()
	h.storePastTheSchemaOf("autoscalers", obj)
}

func (h *harness) storePastTheSchemaOf(resource string, obj client.Object) {
	h.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	key := types.NamespacedName{Name: resource + ".autoscale.example.com"}
	require.NoError(h, h.client.Get(h.ctx, key, &crd))
	strict := crd.Spec.DeepCopy()
	yes := true
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	}
	require.NoError(h, h.client.Update(h.ctx, &crd))
	h.awaitSchema(crd.Spec.Names.Kind, true)
	require.NoError(h, h.client.Create(h.ctx, obj))
	require.NoError(h, h.client.Get(h.ctx, key, &crd))
	crd.Spec = *strict
	require.NoError(h, h.client.Update(h.ctx, &crd))
	h.awaitSchema(crd.Spec.Names.Kind, false)
}

// awaitSchema waits until the API server accepts, or refuses, an object without
// what its kind requires.
func (h *harness) awaitSchema(kind string, loose bool) {
	h.Helper()
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": "probe", "namespace": h.namespace},
		"spec":     map[string]any{"epoch": "one", "minReplicas": "two"},
	}}
	require.Eventually(h, func() bool {
		return (h.client.Create(h.ctx, bad.DeepCopy(), client.DryRunAll) == nil) == loose
	}, 20*time.Second, 50*time.Millisecond, "the schema did not come into force")
}
