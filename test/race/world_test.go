//go:build integration

package race

import (
	"context"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/cluster/process"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
)

const (
	// profileName is the MetricProfile of all AutoScalers here.
	profileName = "race"
	// demand is what it answers; a targetPerReplica of demand/(n-½) makes n.
	demand = 1000
	// killEvery is the least time between two kills: a leader that is killed must be
	// replaced (its lease lasts 15 s) and get something done before the next one goes.
	killEvery = 40 * time.Second
)

// world is one control plane with two operators, each behind a proxy.
type world struct {
	*testing.T
	seed         uint64
	client       client.WithWatch
	controlPlane *controlplane.ControlPlane
	recorder     *recorder
	faults       *faults
	forwarder    *forwarder
	operators    [2]*operator

	// mu guards which operator may be killed.
	mu       sync.Mutex
	killed   time.Time
	stopping bool
	watchers sync.WaitGroup

	// count counts what clients were told.
	count func(outcome)
}

// operator is the real program, started again whenever it was killed.
type operator struct {
	index  int
	spec   process.Spec
	probes string
	// The rest is guarded by world.mu. It is ready unless it was killed or ended by
	// itself; it ends when its lease cannot be renewed.
	process     *process.Process
	ready       bool
	starts      int
	kills, ends int
}

func startWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	w := &world{T: t, seed: seed, controlPlane: cp, recorder: newRecorder(), faults: newFaults(seed)}
	w.client, err = client.NewWithWatch(unlimited(cp.Config), client.Options{Scheme: knownKinds(t)})
	require.NoError(t, err)
	w.watchAll()

	metrics := fixture.NewMetricServer(t)
	metrics.Value(demand)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "endpoints:\n- name: main\n  url: %s\n", metrics.URL()), 0o600))
	manager := buildManager(t, dir)
	var ports []int
	for i := range w.operators {
		ports = append(ports, freePort(t))
		w.operators[i] = w.operator(i, ports[i], dir, manager, config)
	}
	w.forwarder = startForwarder(t, net.JoinHostPort(cp.WebhookHost, strconv.Itoa(cp.WebhookPort)), cp.WebhookCertDir, ports, w.faults)
	t.Cleanup(w.stopOperators)
	for _, o := range w.operators {
		require.NoError(t, w.start(o))
	}
	// The faults have begun: an answer of admission may be lost.
	require.Eventually(t, func() bool {
		err := w.client.Create(t.Context(), builders.MakeMetricProfile(profileName).Obj())
		return err == nil || apierrors.IsAlreadyExists(err)
	}, 30*time.Second, 100*time.Millisecond, "the MetricProfile is admitted")
	w.awaitAdmission()
	return w
}

func knownKinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		require.NoError(t, add(known))
	}
	return known
}

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return config
}

func buildManager(t *testing.T, dir string) string {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	manager := filepath.Join(dir, "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", manager, "./cmd/manager")
	build.Dir = root
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return manager
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// operator prepares one operator behind a proxy of its own.
func (w *world) operator(i, webhookPort int, dir, manager, config string) *operator {
	w.Helper()
	p := newProxy(w.T, i, w.recorder, w.faults, w.controlPlane.Operator)
	o := &operator{index: i, probes: net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(w.T)))}
	p.kill = func() bool { return w.kill(o) }
	kubeconfig := filepath.Join(dir, fmt.Sprintf("operator-%d.kubeconfig", i))
	throughProxy(w.T, w.controlPlane.OperatorKubeconfig, kubeconfig, p.server)
	o.spec = process.Spec{
		Path: manager, Dir: dir, Ready: o.answersReady,
		Args: []string{
			"--kubeconfig=" + kubeconfig, "--config=" + config, "--namespace=" + install.Namespace,
			"--webhook-cert-dir=" + w.controlPlane.WebhookCertDir, "--webhook-port=" + strconv.Itoa(webhookPort),
			"--metrics-bind-address=0", "--health-probe-bind-address=" + o.probes, "--leader-elect=true", "--shutdown-delay=0s",
		},
	}
	return o
}

// throughProxy is the operator's kubeconfig with the proxy's address.
func throughProxy(t *testing.T, from, to string, proxy *httptest.Server) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(from)
	require.NoError(t, err)
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthority = proxy.URL, ""
		cluster.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	}
	require.NoError(t, clientcmd.WriteToFile(*config, to))
}

func (o *operator) answersReady(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.probes+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}

// start starts an operator, waits until it is ready, and starts it again whenever it
// ends, as a kubelet does.
func (w *world) start(o *operator) error {
	w.mu.Lock()
	o.starts++
	spec := o.spec
	spec.Name = fmt.Sprintf("manager-%d-%d", o.index, o.starts)
	w.mu.Unlock()
	p, err := process.Start(w.Context(), spec)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return p.Stop()
	}
	o.process, o.ready = p, true
	w.watchers.Go(func() {
		<-p.Done()
		if w.ended(o) {
			_ = p.Stop() // only its record is left
			if err := w.start(o); err != nil && w.Context().Err() == nil {
				w.Errorf("operator %d did not start again: %v", o.index, err)
			}
		}
	})
	return nil
}

// ended takes note of an operator's end and says whether it is to start again.
func (w *world) ended(o *operator) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopping && o.ready {
		o.ends++
		w.Logf("operator %d ended by itself, see %s", o.index, filepath.Base(o.process.LogPath()))
		w.keepLog(o)
	}
	o.ready = false
	return !w.stopping
}

// kill ends an operator at once, unless the other one is not ready or the last kill
// was a moment ago.
func (w *world) kill(o *operator) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping || !o.ready || !w.operators[1-o.index].ready || time.Since(w.killed) < killEvery {
		return false
	}
	victim, err := os.FindProcess(o.process.PID())
	if err != nil || victim.Kill() != nil {
		return false
	}
	w.killed, o.ready = time.Now(), false
	o.kills++
	return true
}

// stopOperators ends all killing, and then the operators.
func (w *world) stopOperators() {
	w.mu.Lock()
	w.stopping = true
	for _, o := range w.operators {
		if o.process != nil {
			_ = o.process.Stop()
			if w.Failed() {
				w.keepLog(o)
			}
		}
	}
	w.mu.Unlock()
	w.watchers.Wait()
}

// keepLog leaves an operator's log with what a failed run leaves.
func (w *world) keepLog(o *operator) {
	log, err := os.ReadFile(o.process.LogPath())
	if err == nil {
		err = os.WriteFile(filepath.Join(outputDir(w.T), filepath.Base(o.process.LogPath())), log, 0o600)
	}
	if err != nil {
		w.Logf("the log of operator %d was not kept: %v", o.index, err)
	}
}

// outputDir is where a failed run leaves its histories.
func outputDir(t *testing.T) string {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	dir := filepath.Join(root, "bin", "race")
	require.NoError(t, os.MkdirAll(dir, 0o750))
	return dir
}

// awaitAdmission waits until the API server asks the operators.
func (w *world) awaitAdmission() {
	w.Helper()
	probe := builders.MakeAutoScaler(metav1.NamespaceDefault, "probe").Metric("load", "missing", "1").Obj()
	require.Eventually(w, func() bool {
		return apierrors.IsInvalid(w.client.Create(w.Context(), probe.DeepCopy(), client.DryRunAll))
	}, 30*time.Second, 100*time.Millisecond, "admission did not come into force")
}

// watchAll lets the recorder follow what is stored.
func (w *world) watchAll() {
	w.Helper()
	w.follow(&v1alpha1.ScaleBindingList{}, func(obj runtime.Object, deleted bool) {
		w.recorder.sawBinding(obj.(*v1alpha1.ScaleBinding), deleted)
	})
	w.follow(&v1alpha1.AutoScalerList{}, func(obj runtime.Object, deleted bool) {
		w.recorder.sawAutoScaler(obj.(*v1alpha1.AutoScaler), deleted)
	})
	w.follow(&appsv1.DeploymentList{}, func(obj runtime.Object, deleted bool) {
		w.recorder.sawDeployment(obj.(*appsv1.Deployment), deleted)
	})
}

// follow sends the events of a kind to saw, none left out.
func (w *world) follow(kind client.ObjectList, saw func(obj runtime.Object, deleted bool)) {
	w.Helper()
	require.NoError(w, w.client.List(w.Context(), kind))
	watcher, err := toolswatch.NewRetryWatcherWithContext(w.Context(), kind.GetResourceVersion(), watchKind{w.client, kind})
	require.NoError(w, err)
	var following sync.WaitGroup
	following.Go(func() {
		for event := range watcher.ResultChan() {
			switch event.Type {
			case watch.Added, watch.Modified, watch.Deleted:
				saw(event.Object, event.Type == watch.Deleted)
			case watch.Error:
				if w.Context().Err() == nil {
					w.Errorf("a watch ended: %v", apierrors.FromObject(event.Object))
				}
			case watch.Bookmark:
			}
		}
	})
	w.Cleanup(func() {
		watcher.Stop()
		following.Wait()
	})
}

type watchKind struct {
	client client.WithWatch
	kind   client.ObjectList
}

func (k watchKind) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return k.client.Watch(ctx, k.kind.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options})
}

// random is the chance of one round.
func (w *world) random(scenario string, number int) *rand.Rand {
	return randomOf(w.seed, fmt.Sprintf("%s %d", scenario, number))
}
