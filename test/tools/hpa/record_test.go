package hpa

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	defaults "k8s.io/kubernetes/pkg/apis/autoscaling/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

var update = flag.Bool("update", false, "write what the controller decides")

// recording is what the plugin's own test reads.
const recording = "../../../cmd/kubectl-autoscaler/internal/hpa/testdata/controller.json"

const period = 15 * time.Second

// scenario is an HPA, the count at the beginning, and what came of each evaluation.
type scenario struct {
	Spec     autoscalingv2.HorizontalPodAutoscalerSpec `json:"spec"`
	Replicas int32                                     `json:"replicas"`
	Steps    []step                                    `json:"steps"`
}

// step is one evaluation: the metrics' values, null for one that has none, and the count
// after it.
type step struct {
	Usages   []*int64 `json:"usages"`
	Replicas int32    `json:"replicas"`
}

func TestTheRecordingIsWhatTheControllerDecides(t *testing.T) {
	// The default ones slow down by real time what fails often.
	utilruntime.ErrorHandlers = nil
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	random := rand.New(rand.NewPCG(37, 2))
	var scenarios []scenario
	for range 40 {
		s := randomScenario(random)
		synctest.Test(t, func(t *testing.T) { play(t, &s) })
		scenarios = append(scenarios, s)
	}
	var now []byte
	now = append(now, "[\n"...)
	for i := range scenarios {
		line, err := json.Marshal(scenarios[i])
		must(t, err)
		if i > 0 {
			now = append(now, ",\n"...)
		}
		now = append(now, line...)
	}
	now = append(now, "\n]\n"...)
	if *update {
		must(t, os.MkdirAll(filepath.Dir(recording), 0o755))
		must(t, os.WriteFile(recording, now, 0o644))
		return
	}
	before, err := os.ReadFile(recording)
	must(t, err)
	if string(before) != string(now) {
		t.Error("the controller decides otherwise than it was recorded; run this test with -update, then that of the plugin")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// randomScenario has loads that jump, drift, stay on a bound of the tolerance and vanish.
func randomScenario(r *rand.Rand) scenario {
	low := 1 + r.Int32N(4)
	s := scenario{Replicas: 1 + r.Int32N(25), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		MinReplicas: &low, MaxReplicas: low + 10 + r.Int32N(40),
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
	}}
	targets := []int64{100_000, 7_500, 333}
	n := 1 + r.IntN(2)
	for i := range n {
		s.Spec.Metrics = append(s.Spec.Metrics, externalMetric(fmt.Sprintf("metric-%d", i), targets[r.IntN(len(targets))]))
	}
	if r.IntN(3) > 0 {
		s.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: randomRules(r), ScaleDown: randomRules(r)}
	}
	level := make([]float64, n) // in replicas
	for i := range level {
		level[i] = r.Float64() * 20
	}
	for range 120 {
		usages := make([]*int64, n)
		for i := range usages {
			target := s.Spec.Metrics[i].External.Target.AverageValue.MilliValue()
			switch r.IntN(40) {
			case 0, 1, 2:
				level[i] = r.Float64() * 45
			case 3:
				level[i] = math.Round(level[i]) * 1.1 // the end of the tolerance
			case 4:
				level[i] = 0
			case 5:
				continue // no value
			case 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20:
				level[i] *= 0.8 + 0.4*r.Float64()
			}
			usages[i] = new(int64(level[i] * float64(target)))
		}
		s.Steps = append(s.Steps, step{Usages: usages})
	}
	return s
}

func externalMetric(name string, milli int64) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: name},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(milli, resource.DecimalSI)},
	}}
}

func randomRules(r *rand.Rand) *autoscalingv2.HPAScalingRules {
	if r.IntN(4) == 0 {
		return nil
	}
	rules := &autoscalingv2.HPAScalingRules{}
	if r.IntN(2) == 0 {
		rules.StabilizationWindowSeconds = new(r.Int32N(40) * 15)
	}
	if r.IntN(2) == 0 {
		rules.SelectPolicy = new([]autoscalingv2.ScalingPolicySelect{
			autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.MinChangePolicySelect, autoscalingv2.DisabledPolicySelect,
		}[r.IntN(4)])
	}
	for range r.IntN(3) {
		p := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 1 + r.Int32N(6), PeriodSeconds: 15 + r.Int32N(12)*15}
		if r.IntN(2) == 0 {
			p.Type, p.Value = autoscalingv2.PercentScalingPolicy, 10+r.Int32N(150)
		}
		rules.Policies = append(rules.Policies, p)
	}
	if r.IntN(3) == 0 {
		rules.Tolerance = resource.NewMilliQuantity(r.Int64N(300), resource.DecimalSI)
	}
	return rules
}

// world is the Deployment and the metrics that the controller sees.
type world struct {
	metricsclient.MetricsClient // of which only external metrics are asked

	mu       sync.Mutex
	scenario *scenario
	replicas int32
	// evaluation counts the controller's looks at the scale, from 1.
	evaluation int
}

// play runs the controller in a bubble of fake time.
func play(t *testing.T, s *scenario) {
	t.Helper()
	w := &world{scenario: s, replicas: s.Replicas}
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "web"}, Spec: *s.Spec.DeepCopy()}
	defaults.SetDefaults_HorizontalPodAutoscaler(hpa) // as the API server would
	client := fake.NewClientset(hpa)
	factory := informers.NewSharedInformerFactory(client, 0)
	scales := &scalefake.FakeScaleClient{}
	scales.AddReactor("get", "deployments", w.get)
	scales.AddReactor("update", "deployments", w.set)
	ctx, cancel := context.WithCancel(t.Context())
	controller := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(),
		testrestmapper.TestOnlyStaticRESTMapper(legacyscheme.Scheme), w, factory.Autoscaling().V2().HorizontalPodAutoscalers(),
		factory.Core().V1().Pods(), period, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	<-time.After(time.Duration(len(s.Steps))*period - period/2)
	synctest.Wait()
	w.mu.Lock()
	if w.evaluation != len(s.Steps) {
		t.Errorf("%d evaluations in %d periods", w.evaluation, len(s.Steps))
	}
	s.Steps[len(s.Steps)-1].Replicas = w.replicas
	w.mu.Unlock()
	cancel()
	factory.Shutdown()
}

func (w *world) get(clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.evaluation > 0 && w.evaluation <= len(w.scenario.Steps) {
		w.scenario.Steps[w.evaluation-1].Replicas = w.replicas
	}
	w.evaluation++
	return true, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "web"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: w.replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: w.replicas, Selector: "app=web"},
	}, nil
}

func (w *world) set(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	scale := action.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
	w.replicas = scale.Spec.Replicas
	return true, scale, nil
}

var errNoValue = errors.New("no value")

// GetExternalMetric gives the value of this evaluation.
func (w *world) GetExternalMetric(name, _ string, _ labels.Selector) ([]int64, time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var i int
	if _, err := fmt.Sscanf(name, "metric-%d", &i); err != nil {
		return nil, time.Time{}, err
	}
	usage := w.scenario.Steps[w.evaluation-1].Usages[i]
	if usage == nil {
		return nil, time.Time{}, errNoValue
	}
	return []int64{*usage}, time.Now(), nil
}
