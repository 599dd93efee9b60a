//go:build integration

// Package replay holds kubectl autoscaler replay to what the operator did.
package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
)

const (
	namespace = "production"
	poll      = 15 * time.Second
	polls     = 240
)

// change is a write of the replica count.
type change struct {
	At       time.Time
	From, To int32
}

// scripted is the load at one poll after the other: a rise in steps, noise, answers that
// are none, a spike, silence, and a fall. NaN is what a division by zero gives, and -1
// stands for an answer without a series.
func scripted(n int) float64 {
	noise := 40 * math.Sin(float64(n*n))
	switch {
	case n < 30:
		return 250 + noise
	case n < 60:
		return 250 + 30*float64(n-30) + noise
	case n >= 80 && n < 90:
		return math.NaN()
	case n >= 110 && n < 116:
		return 2600
	case n >= 140 && n < 150:
		return -1
	case n >= 190:
		return 300 + noise
	}
	return 1150 + noise
}

func TestAReplayOfWhatTheOperatorSawGivesTheWritesThatItMade(t *testing.T) {
	w := newWorld(t)
	autoscaler := builders.MakeAutoScaler(namespace, "web").Steps(4, 2).Window(120).DownInterval(45).Metric("load", "total", "100").Obj()
	autoscaler.Spec.Behavior.ToleranceUp = "0.05"
	autoscaler.Spec.Behavior.ScaleUpRate = &v1alpha1.ScaleRate{MaxReplicas: 6, PeriodSeconds: 60}
	autoscaler.Spec.Schedules = []v1alpha1.Schedule{{Name: "floor", Start: "*/20 * * * *", DurationSeconds: 120, MinReplicas: new(int32(5))}}
	profile := builders.MakeMetricProfile("total").Obj()
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, builders.Deployment(namespace, "web", 2), profile, autoscaler,
	} {
		require.NoError(t, w.client.Create(t.Context(), obj))
	}
	dir := t.TempDir()
	manifests, load := filepath.Join(dir, "manifests.yaml"), filepath.Join(dir, "load.csv")
	var trace strings.Builder
	trace.WriteString("time,load\n")
	var wrote []change
	for n := range polls {
		value := scripted(n)
		text := fmt.Sprint(value)
		switch {
		case value < 0:
			text = ""
			w.metrics.Empty()
		default:
			w.metrics.Text(text)
		}
		fmt.Fprintf(&trace, "%s,%s\n", w.clock.Now().UTC().Format(time.RFC3339Nano), text)
		before := w.replicas()
		_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(autoscaler)})
		require.NoError(t, err)
		if after := w.replicas(); after != before {
			wrote = append(wrote, change{w.clock.Now().UTC(), before, after})
		}
		w.clock.SetTime(w.clock.Now().Add(poll))
	}
	require.Greater(t, len(wrote), 20, "something happened")

	require.NoError(t, os.WriteFile(manifests, slices.Concat(manifest(t, autoscaler), []byte("---\n"), manifest(t, profile)), 0o600))
	require.NoError(t, os.WriteFile(load, []byte(trace.String()), 0o600))
	assert.Equal(t, wrote, replayed(t, "-f", manifests, "--load", load, "--replicas", "2"))
}

// manifest is an object as kubectl get gives it.
func manifest(t *testing.T, obj client.Object) []byte {
	t.Helper()
	kind := "AutoScaler"
	if _, ok := obj.(*v1alpha1.MetricProfile); ok {
		kind = "MetricProfile"
	}
	obj.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	text, err := yaml.Marshal(obj)
	require.NoError(t, err)
	return text
}

// replayed gives the changes of the plugin's replay.
func replayed(t *testing.T, args ...string) (changes []change) {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	plugin := filepath.Join(t.TempDir(), "kubectl-autoscaler")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "./cmd/kubectl-autoscaler")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.CommandContext(t.Context(), plugin, append([]string{"replay", "-o", "json"}, args...)...).Output()
	require.NoError(t, err, "%s", output)
	var document struct {
		Polls []struct {
			Time             time.Time
			Before, Replicas int32
		}
	}
	require.NoError(t, json.Unmarshal(output, &document))
	require.Len(t, document.Polls, polls)
	for _, p := range document.Polls {
		if p.Before != p.Replicas {
			changes = append(changes, change{p.Time, p.Before, p.Replicas})
		}
	}
	return changes
}

// world is a real API server, a metric server to switch, a clock to move, and the
// operator's reconciler to call.
type world struct {
	*testing.T
	client     client.Client
	metrics    *fixture.MetricServer
	clock      *clocktesting.FakePassiveClock
	reconciler *controller.Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	live, err := client.NewWithWatch(cp.Config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	// Only one AutoScaler is there, so whoever looks up by an index finds it.
	found := interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			o.FieldSelector = nil
			return c.List(ctx, list, &o)
		},
	})
	// Not on a whole second, as no clock is.
	w := &world{T: t, client: live, clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second).Add(123456 * time.Microsecond))}
	w.metrics = fixture.NewMetricServer(t, fixture.WithClock(w.clock.Now))
	source, err := prometheus.NewClient([]prometheus.Endpoint{{Name: "main", URL: w.metrics.URL()}}, w.clock.Now)
	require.NoError(t, err)
	managers, err := binding.NewManagers(binding.ManagersOptions{Cached: found, Live: live})
	require.NoError(t, err)
	w.reconciler = &controller.Reconciler{
		Client: found,
		Arbiter: &binding.Arbiter{
			Live: live, Writer: live, Clock: w.clock, Grace: binding.DefaultGrace, Managers: managers,
			Usable: func(a *v1alpha1.AutoScaler) bool { return len(spec.ValidateAutoScaler(a, v1alpha1.DefaultLimits)) == 0 },
		},
		Managers: managers, Sampler: &sampler{t: t, source: source, measures: map[prometheus.Subscriber][]prometheus.Measure{}},
		Telemetry: controller.NewTelemetry(found, w.clock), Events: silent{},
		Limits: v1alpha1.DefaultLimits, Clock: w.clock, Jitter: func(d time.Duration) time.Duration { return d },
	}
	return w
}

func (w *world) replicas() int32 {
	w.Helper()
	var d appsv1.Deployment
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, &d))
	return *d.Spec.Replicas
}

type silent struct{}

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// sampler asks whenever it is read, as if the answers had just arrived.
type sampler struct {
	t        *testing.T
	source   *prometheus.Client
	mu       sync.Mutex
	measures map[prometheus.Subscriber][]prometheus.Measure
}

func (s *sampler) Subscribe(id prometheus.Subscriber, _ time.Duration, measures []prometheus.Measure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measures[id] = measures
}

func (s *sampler) Unsubscribe(id prometheus.Subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.measures, id)
}

func (s *sampler) Samples(id prometheus.Subscriber, now time.Time) ([]scaling.Sample, []prometheus.Arrival, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var samples []scaling.Sample
	for _, m := range s.measures[id] {
		samples = append(samples, s.source.Measure(s.t.Context(), m))
	}
	return samples, slices.Repeat([]prometheus.Arrival{{Newest: now, Used: now}}, len(samples)), true
}
