//go:build e2e

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/filelock"
)

// within bounds what a node does by itself: starting a pod, a rule of kube-proxy.
const within = 60 * time.Second

const probeImage = "localhost/probe:test"

// mark is set in the environment of this process, and so of every program that a
// node started from here consists of.
const mark = "NODE_TEST_MARK"

// traces is what nodes have left on this machine: those that nobody holds any more.
type traces struct {
	programs, links, cgroups, folders, mounts []string
}

// look takes stock. Nodes of others come and go meanwhile.
func look(t *testing.T) traces {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	own := filepath.Join(root, "bin", "test", "node-")
	found := traces{
		programs: marked(t),
		links:    orphans(t, "/sys/class/net/asonode*"),
		folders:  orphans(t, own+"*"),
	}
	roots, err := hierarchies()
	require.NoError(t, err)
	for _, root := range roots {
		found.cgroups = append(found.cgroups, orphans(t, filepath.Join(root, "autoscale-operator-node-*"))...)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.HasPrefix(line, "node ") || strings.Contains(line, own) || strings.Contains(line, "/netns/cni-") {
			found.mounts = append(found.mounts, line)
		}
	}
	return found
}

// assertNothingMore checks that nothing is left that was not there before. What somebody
// killed had left may have gone meanwhile: the next start removes it.
func assertNothingMore(t *testing.T, before traces) {
	t.Helper()
	now := look(t)
	assert.Subset(t, before.programs, now.programs)
	assert.Subset(t, before.links, now.links)
	assert.Subset(t, before.cgroups, now.cgroups)
	assert.Subset(t, before.folders, now.folders)
	assert.Subset(t, before.mounts, now.mounts)
}

// orphans are the files that bear the number of a node that no live process holds.
func orphans(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	for _, path := range glob(t, pattern) {
		number := path[strings.LastIndexFunc(path, func(r rune) bool { return !unicode.IsDigit(r) })+1:]
		lock, err := filelock.Try(filepath.Join(locks, number), "a look")
		if errors.Is(err, filelock.ErrHeld) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, lock.Remove())
		found = append(found, path)
	}
	return found
}

// marked are the programs with this process's mark in their environment, but for
// this process.
func marked(t *testing.T) []string {
	t.Helper()
	want := mark + "=" + os.Getenv(mark)
	var found []string
	for _, path := range glob(t, "/proc/[0-9]*") {
		// Whoever has ended meanwhile is no trace.
		environment, err := os.ReadFile(filepath.Join(path, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environment), "\x00"), want) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(path, "cmdline"))
		if err == nil && filepath.Base(path) != strconv.Itoa(os.Getpid()) {
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	slices.Sort(found)
	return found
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return paths
}

// trigger does something when a text is written to it.
type trigger struct {
	text string
	do   func()
	done bool
}

func (w *trigger) Write(data []byte) (int, error) {
	if !w.done && strings.Contains(string(data), w.text) {
		w.done = true
		w.do()
	}
	return len(data), nil
}

func loadProbe(t *testing.T, n *Node) {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	archive := filepath.Join(t.TempDir(), "probe.tar")
	require.NoError(t, WriteImage(t.Context(), root, archive, "localhost/probe", "test", "test/node/probe"))
	require.NoError(t, n.Load(t.Context(), archive))
}

// startProbe starts a pod, labeled with its name, and returns it when it is Ready.
func startProbe(t *testing.T, client kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullNever,
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}},
					PeriodSeconds: 1,
				},
				SecurityContext: &corev1.SecurityContext{
					RunAsNonRoot: new(true), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
					Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("500m")},
				},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	var pod *corev1.Pod
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pod, err = pods.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(c, err)
		ready := slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
		require.True(c, ready, "%+v", pod.Status.ContainerStatuses)
	}, within, 100*time.Millisecond)
	return pod
}

// expose makes a Service for the pods with that label, and waits for its way to them.
func expose(t *testing.T, client kubernetes.Interface, name string) *corev1.Service {
	t.Helper()
	service, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := get(t.Context(), "http://"+service.Spec.ClusterIP+"/")
		require.NoError(c, err)
	}, within, 100*time.Millisecond)
	return service
}

// unusedWebhook is for objects that nobody can create, with the CA of the certificate
// that cert-manager has issued at its start.
func unusedWebhook() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: "unused", Annotations: map[string]string{"cert-manager.io/inject-ca-from": "cert-manager/proof"},
		},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "unused.example.com",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: metav1.NamespaceDefault, Name: "none"},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"unused.example.com"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
			}},
		}},
	}
}

// get asks for a page; any answer but 200 is an error.
func get(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", page, response.Status, body)
	}
	return string(body), err
}

// answer is what a page says to somebody outside.
func answer(t *testing.T, page string) string {
	t.Helper()
	body, err := get(t.Context(), page)
	require.NoError(t, err)
	return body
}

// answerTo is what a page says to a pod.
func answerTo(t *testing.T, pod *corev1.Pod, page string) string {
	t.Helper()
	return answer(t, "http://"+pod.Status.PodIP+":8080/fetch?url="+url.QueryEscape(page))
}
