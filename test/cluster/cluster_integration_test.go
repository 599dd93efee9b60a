//go:build integration

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// superviseDir, when set in the environment, makes the test binary the
// supervisor of a small cluster in that directory.
const superviseDir = "CLUSTER_TEST_SUPERVISE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(superviseDir); dir != "" {
		os.Exit(supervise(dir))
	}
	// Built before the tests, where the progress can be seen.
	tools := append(Options{Nodes: &Nodes{Count: 1}}.Tools(), binaries.Kubectl)
	if _, err := binaries.Build(context.Background(), os.Stderr, tools...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func supervise(dir string) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Supervise(ctx, Options{Dir: dir}, os.NewFile(3, "control"), os.NewFile(4, "report")); err != nil {
		return 1
	}
	return 0
}

func supervisor(dir string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), superviseDir+"="+dir)
		return cmd
	}
}

// bring is Up with what it says in the test's log; whatever happens, the
// cluster is gone after the test.
func bring(t *testing.T, dir string) (already bool) {
	t.Helper()
	t.Cleanup(func() {
		_, err := Down(context.Background(), dir)
		assert.NoError(t, err)
	})
	already, err := Up(t.Context(), dir, t.Output(), supervisor(dir))
	require.NoError(t, err)
	return already
}

// census notes who runs a cluster now; each returned func tells whether that
// process still does.
func census(t *testing.T, dir string) map[string]func() bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.pid"))
	require.NoError(t, err)
	require.Len(t, paths, 3, "owner, etcd and kube-apiserver are recorded")
	copies := t.TempDir()
	running := map[string]func() bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(copies, filepath.Base(path)), data, 0o600))
		name := strings.TrimSuffix(filepath.Base(path), ".pid")
		running[name] = func() bool {
			pid, err := process.Find(copies, name)
			return err != nil || pid != 0
		}
		require.True(t, running[name](), name)
	}
	return running
}

func requireGone(t *testing.T, running map[string]func() bool) {
	t.Helper()
	for name, runs := range running {
		require.Eventually(t, func() bool { return !runs() }, 30*time.Second, 20*time.Millisecond, "%s still runs", name)
	}
}

func kill(t *testing.T, dir, name string) {
	t.Helper()
	pid, err := process.Find(dir, name)
	require.NoError(t, err)
	require.NotZero(t, pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestUpUpDownDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")

	assert.False(t, bring(t, dir), "it did not run before")
	running := census(t, dir)
	config, err := Admin(dir)
	require.NoError(t, err)
	version, err := kubernetes.NewForConfigOrDie(config).Discovery().ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, "v1.37.2", version.GitVersion)

	assert.True(t, bring(t, dir), "the second up finds the first's cluster")
	again, err := Admin(dir)
	require.NoError(t, err)
	assert.Equal(t, config.Host, again.Host)

	ran, err := Down(t.Context(), dir)
	require.NoError(t, err)
	assert.True(t, ran)
	requireGone(t, running)
	assert.NoDirExists(t, dir)

	ran, err = Down(t.Context(), dir)
	require.NoError(t, err)
	assert.False(t, ran)
}

func TestAKilledSupervisorLeavesNothingRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	bring(t, dir)
	running := census(t, dir)

	kill(t, dir, ownerName)

	requireGone(t, running)
	assert.False(t, bring(t, dir), "up starts anew over what was left")
	require.NoError(t, ask(t.Context(), dir))
}

func TestDownAfterAKilledSupervisorRemovesWhatItLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	bring(t, dir)
	running := census(t, dir)
	kill(t, dir, ownerName)

	_, err := Down(t.Context(), dir)

	require.NoError(t, err)
	requireGone(t, running)
	assert.NoDirExists(t, dir)
}

func TestAKilledComponentEndsTheClusterAndTheNextUpSaysSo(t *testing.T) {
	for _, component := range []string{"etcd", "kube-apiserver"} {
		t.Run(component, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cluster")
			bring(t, dir)
			running := census(t, dir)

			kill(t, dir, component)

			requireGone(t, running)
			assert.NoFileExists(t, filepath.Join(dir, kubeconfigName))
			var said bytes.Buffer
			already, err := Up(t.Context(), dir, &said, supervisor(dir))
			require.NoError(t, err)
			assert.False(t, already)
			assert.Contains(t, said.String(), "The last cluster here ended by itself: "+component)
		})
	}
}

// An up that is interrupted takes with it what it had started so far.
func TestAnInterruptedUpLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	ctx, interrupt := context.WithCancel(t.Context())
	var pids map[string]func() bool
	out := writerFunc(func(text string) {
		if strings.Contains(text, "kube-apiserver is ready") {
			pids = census(t, dir)
			interrupt()
		}
	})

	_, err := Up(ctx, dir, out, supervisor(dir))

	// Ready and the interrupt may pass each other; then the cluster is up.
	if err == nil {
		_, err := Down(t.Context(), dir)
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NotEmpty(t, pids)
	requireGone(t, pids)
	assert.NoDirExists(t, dir)
}

func TestASupervisorGivesUpWhenItsStarterIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	control, starter := io.Pipe()
	report := reportFunc(func(text string) {
		if strings.Contains(text, "etcd is ready") {
			assert.NoError(t, starter.Close())
		}
	})

	err := Supervise(t.Context(), Options{Dir: dir}, control, report)

	require.ErrorIs(t, err, errStarterGone)
	assert.NoDirExists(t, dir)
}

func TestTwoCheckoutsDoNotCollide(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "cluster"), filepath.Join(t.TempDir(), "cluster")}
	hosts := make([]string, len(dirs))
	var done sync.WaitGroup
	for i, dir := range dirs {
		t.Cleanup(func() {
			_, err := Down(context.Background(), dir)
			assert.NoError(t, err)
		})
		done.Go(func() {
			_, err := Up(t.Context(), dir, io.Discard, supervisor(dir))
			if !assert.NoError(t, err) {
				return
			}
			config, err := Admin(dir)
			if assert.NoError(t, err) {
				hosts[i] = config.Host
			}
		})
	}
	done.Wait()
	require.NotEqual(t, hosts[0], hosts[1])

	_, err := Down(t.Context(), dirs[0])
	require.NoError(t, err)
	assert.NoError(t, ask(t.Context(), dirs[1]), "the other one is untouched")
}

func TestSimultaneousUpsStartOneCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() {
		_, err := Down(context.Background(), dir)
		assert.NoError(t, err)
	})
	var started, found int
	var mu sync.Mutex
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			already, err := Up(t.Context(), dir, io.Discard, supervisor(dir))
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			if already {
				found++
			} else {
				started++
			}
		})
	}
	done.Wait()
	assert.Equal(t, 1, started)
	assert.Equal(t, 2, found)
}

func TestStartRefusesADirectoryInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	c, err := Start(t.Context(), Options{Dir: dir, Progress: t.Output()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()

	_, err = Start(t.Context(), Options{Dir: dir})

	require.ErrorIs(t, err, ErrInUse)
	assert.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()), "it names the holder")
	_, err = Down(t.Context(), dir)
	assert.ErrorContains(t, err, "this process's own")
	assert.NoError(t, c.Err(), "the running cluster is untouched")
}

// Deployment, ReplicaSet, scheduler and node together: pods get ready, later
// than the delay, and go away when they are scaled down.
func TestPodsBecomeReadyAfterTheDelay(t *testing.T) {
	const delay = time.Second
	c, err := Start(t.Context(), Options{
		Dir:      filepath.Join(t.TempDir(), "cluster"),
		Nodes:    &Nodes{Count: 2, ReadyDelay: delay},
		Progress: t.Output(),
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()
	client := kubernetes.NewForConfigOrDie(c.Config())
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)

	_, err = deployments.Create(t.Context(), deployment("web", 3), metav1.CreateOptions{})
	require.NoError(t, err)
	readyReplicas := func() int32 {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		return d.Status.ReadyReplicas
	}
	require.Eventually(t, func() bool { return readyReplicas() == 3 }, time.Minute, 50*time.Millisecond)

	pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, pods.Items, 3)
	for _, pod := range pods.Items {
		// Both times are whole seconds.
		scheduled, becameReady := when(t, pod, corev1.PodScheduled), when(t, pod, corev1.PodReady)
		assert.GreaterOrEqual(t, becameReady.Sub(scheduled), delay-time.Second+time.Nanosecond, "%s", pod.Name)
	}

	scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	scale.Spec.Replicas = 1
	_, err = deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 1
	}, time.Minute, 50*time.Millisecond)
}

func when(t *testing.T, pod corev1.Pod, kind corev1.PodConditionType) time.Time {
	t.Helper()
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	require.Fail(t, "no such condition", "%s: %s in %v", pod.Name, kind, pod.Status.Conditions)
	return time.Time{}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none"}}},
			},
		},
	}
}

// writerFunc is a writer that hands on what it gets.
type writerFunc func(text string)

func (f writerFunc) Write(data []byte) (int, error) {
	f(string(data))
	return len(data), nil
}

// reportFunc is a writerFunc that can be closed.
type reportFunc func(text string)

func (f reportFunc) Write(data []byte) (int, error) { return writerFunc(f).Write(data) }
func (reportFunc) Close() error                     { return nil }
