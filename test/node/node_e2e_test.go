//go:build e2e

package node

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepNode, when set in the environment, makes the test binary a process that starts
// a node and holds it until it is killed.
const keepNode = "NODE_TEST_KEEP"

func TestMain(m *testing.M) {
	if os.Getenv(keepNode) != "" {
		os.Exit(keep())
	}
	if err := os.Setenv(mark, rand.Text()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// keep starts a node, says where it is, and waits.
func keep() int {
	n, err := Start(context.Background(), Options{Progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(n.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func TestPodsFindEachOther(t *testing.T) {
	before := look(t)
	begun := time.Now()
	n, err := Start(t.Context(), Options{CertManager: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Logf("a node with cert-manager was there after %s", time.Since(begun).Round(time.Millisecond))
	t.Cleanup(func() { assert.NoError(t, n.Stop()) })
	client, err := n.client()
	require.NoError(t, err)
	loadProbe(t, n)
	begun = time.Now()
	pods := map[string]*corev1.Pod{"ask": startProbe(t, client, "ask"), "tell": startProbe(t, client, "tell")}
	t.Logf("two pods, one after the other, were Ready after %s", time.Since(begun).Round(time.Millisecond))
	service := expose(t, client, "tell")

	t.Run("from outside, by the addresses of pods and Services", func(t *testing.T) {
		for name, pod := range pods {
			assert.Equal(t, name, answer(t, "http://"+pod.Status.PodIP+":8080/"))
		}
		assert.Equal(t, "tell", answer(t, "http://"+service.Spec.ClusterIP+"/"))
	})

	t.Run("from a pod, by the name of a Service", func(t *testing.T) {
		for _, host := range []string{"tell", "tell.default", "tell.default.svc.cluster.local"} {
			assert.Equal(t, "tell", answerTo(t, pods["ask"], "http://"+host+"/"), host)
		}
	})

	t.Run("from a pod that the Service leads back to", func(t *testing.T) {
		assert.Equal(t, "tell", answerTo(t, pods["tell"], "http://tell.default/"))
	})

	t.Run("until one of them is cut off", func(t *testing.T) {
		rule := []string{"FORWARD", "--source", pods["ask"].Status.PodIP, "--destination", pods["tell"].Status.PodIP, "--jump", "DROP"}
		require.NoError(t, run(t.Context(), n.Command(append([]string{"iptables", "--insert"}, rule...)...)))
		_, err := get(t.Context(), "http://"+pods["ask"].Status.PodIP+":8080/fetch?url=http://tell/")
		require.ErrorContains(t, err, "502")

		require.NoError(t, run(t.Context(), n.Command(append([]string{"iptables", "--delete"}, rule...)...)))
		assert.Equal(t, "tell", answerTo(t, pods["ask"], "http://tell.default/"))
	})

	t.Run("and a program on this machine finds them, as they find it", func(t *testing.T) {
		listener, err := net.Listen("tcp", netip.AddrPortFrom(n.Address(), 0).String())
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.RemoteAddr) //nolint:gosec // an address, and read by this test
		}))
		require.NoError(t, server.Listener.Close())
		server.Listener = listener
		server.Start()
		defer server.Close()

		from := answerTo(t, pods["ask"], server.URL)

		assert.Equal(t, pods["ask"].Status.PodIP, netip.MustParseAddrPort(from).Addr().String(), "no address is hidden")
	})

	t.Run("and the API server finds them, and the kubelet", func(t *testing.T) {
		log, err := client.CoreV1().Pods("default").GetLogs("ask", &corev1.PodLogOptions{}).DoRaw(t.Context())

		require.NoError(t, err)
		assert.Equal(t, "probe listens\n", string(log))
		body, err := client.CoreV1().Services("default").ProxyGet("http", "tell", "80", "/", nil).DoRaw(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "tell", string(body))
	})

	t.Run("also while the API server is away", func(t *testing.T) {
		require.NoError(t, n.Cluster().StopAPIServer())
		_, err := client.CoreV1().Pods("default").Get(t.Context(), "ask", metav1.GetOptions{})
		require.Error(t, err)
		assert.Equal(t, "tell", answerTo(t, pods["ask"], "http://tell.default/"))

		require.NoError(t, n.Cluster().StartAPIServer(t.Context()))

		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "ask", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, pods["ask"].UID, pod.UID)
		assert.NoError(t, n.Cluster().Err(), "an outage on demand is no failure of the cluster")
	})

	t.Run("and cert-manager's injector puts the CA into a webhook", func(t *testing.T) {
		webhooks := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		_, err := webhooks.Create(t.Context(), unusedWebhook(), metav1.CreateOptions{})
		require.NoError(t, err)
		secret, err := client.CoreV1().Secrets("cert-manager").Get(t.Context(), "proof", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, secret.Data["ca.crt"])

		require.EventuallyWithT(t, func(c *assert.CollectT) {
			webhook, err := webhooks.Get(t.Context(), "unused", metav1.GetOptions{})
			require.NoError(c, err)
			require.Equal(c, string(secret.Data["ca.crt"]), string(webhook.Webhooks[0].ClientConfig.CABundle))
		}, within, 100*time.Millisecond)
	})

	begun = time.Now()
	require.NoError(t, n.Stop())
	t.Logf("all was gone after %s", time.Since(begun).Round(time.Millisecond))
	assertNothingMore(t, before)
	assert.NoError(t, n.Stop(), "it may be stopped again")
}

func TestAStartThatFailsLeavesNothing(t *testing.T) {
	for _, step := range []string{"namespaces", "containerd", "kubelet"} {
		t.Run("after "+step, func(t *testing.T) {
			before := look(t)
			enough := errors.New("this is enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			progress := &trigger{text: step + " is ready", do: func() { cancel(enough) }}

			_, err := Start(ctx, Options{Progress: progress})

			require.Error(t, err)
			assert.True(t, progress.done)
			assertNothingMore(t, before)
		})
	}
}

func TestWhatAKilledStarterLeavesIsRemovedByTheNextStart(t *testing.T) {
	before := look(t)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), keepNode+"=1")
	starter.Stderr = os.Stderr
	_, err := starter.StdinPipe()
	require.NoError(t, err)
	out, err := starter.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, starter.Start())
	dir, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Greater(t, len(look(t).programs), len(before.programs)+5, "its programs are found")

	require.NoError(t, starter.Process.Kill())
	_ = starter.Wait()

	// The kernel ends the programs, and takes the network with them.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		now := look(t)
		assert.Equal(c, before.programs, now.programs)
		assert.Equal(c, before.links, now.links)
		assert.Equal(c, before.mounts, now.mounts)
	}, within, 100*time.Millisecond)
	assert.DirExists(t, strings.TrimSpace(dir), "the folder is what remains")

	n, err := claim(t.Context(), filepath.Dir(strings.TrimSpace(dir)))
	require.NoError(t, err)
	require.NoError(t, n.Stop())

	assertNothingMore(t, before)
}
