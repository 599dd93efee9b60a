//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

const (
	// release is the name of the chart's release, and so of all its objects.
	release       = "autoscale-operator"
	secondRelease = "second"
	thirdRelease  = "third"
	webhookPort   = 9443
	podLabel      = "app.kubernetes.io/instance"
)

func (w *world) chart() string { return filepath.Join(w.root, "charts", "autoscale-operator") }

// upgrade installs a release of a chart, or upgrades it, by a version of helm.
func (w *world) upgrade(helm binaries.Tool, chart, name, namespace string, more ...string) (string, error) {
	w.Helper()
	return w.run(w.tools.Path(helm), append([]string{
		"upgrade", "--install", name, chart, "--namespace=" + namespace, "--create-namespace", "--wait", "--timeout=3m",
		"--set=image.repository=" + repository, "--set=image.tag=" + presentTag,
		"--set=config.endpoints[0].name=main,config.endpoints[0].url=http://prometheus." + monitoring + ":9090",
		"--set=config.endpoints[1].name=hanging,config.endpoints[1].url=http://generator." + shop + "/hanging",
		"--set=metrics.readers[0].namespace=" + monitoring + ",metrics.readers[0].name=prometheus",
	}, more...)...)
}

func (w *world) mustUpgrade(helm binaries.Tool, chart, name, namespace string, more ...string) {
	w.Helper()
	_, err := w.upgrade(helm, chart, name, namespace, more...)
	require.NoError(w, err)
}

// proveAdmission is `helm test`.
func (w *world) proveAdmission(helm binaries.Tool, name, namespace string) {
	w.Helper()
	said := w.must(w.tools.Path(helm), "test", name, "--namespace="+namespace, "--logs")
	assert.Contains(w, said, "Succeeded")
}

// install puts the operator on the cluster as docs/install.md says, with cert-manager.
func (w *world) install() {
	begun := time.Now()
	w.mustUpgrade(binaries.Helm4, w.chart(), release, systemNamespace)
	w.report("- `helm install --wait` with cert-manager: both replicas Ready after %s", time.Since(begun).Round(time.Second))

	pods := w.operators(release, systemNamespace)
	require.Len(w, pods, 2)
	for i := range pods {
		w.isConfined(&pods[i])
	}
	w.do("FC-46 the certificate is cert-manager's, on both replicas, and the API server trusts it", func(w *world) {
		w.ours("the operator's pods are called from here")
		w.servesWhatIsTrusted()
	})
	w.do("the chart's own test proves that admission works", func(w *world) {
		w.proveAdmission(binaries.Helm4, release, systemNamespace)
		w.report("- `helm test`: an AutoScaler that is wrong was refused, as a dry run")
	})
	w.do("its metrics are for those that may read them", func(w *world) {
		w.until("Prometheus to scrape both replicas with its own account", soon, func(ctx context.Context) error {
			up, err := w.measured(ctx, `sum(up{job="operator"})`)
			if err == nil && up != 2 {
				err = fmt.Errorf("%v are up", up)
			}
			return err
		})
		w.report("- metrics: scraped over TLS by the account in `metrics.readers`")
		if w.callsPods() {
			address := net.JoinHostPort(pods[0].Status.PodIP, "8443")
			assert.Equal(w, 401, w.statusOf("https://"+address+"/metrics"), "and for nobody else")
			w.report("- metrics: 401 for anybody else")
		}
	})
}

// operators are the pods of a release that are not about to end.
func (w *world) operators(release, namespace string) []corev1.Pod {
	w.Helper()
	pods, err := w.podsOf(w.Context(), release, namespace)
	require.NoError(w, err)
	return pods
}

func (w *world) podsOf(ctx context.Context, release, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{podLabel: release, "app.kubernetes.io/name": "autoscale-operator"})
	var alive []corev1.Pod
	for i := range list.Items {
		p := &list.Items[i]
		if p.DeletionTimestamp == nil && p.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			alive = append(alive, *p)
		}
	}
	return alive, err
}

// isConfined checks what the kubelet was told about a pod of ours.
func (w *world) isConfined(pod *corev1.Pod) {
	w.Helper()
	require.Len(w, pod.Spec.Containers, 1)
	c := pod.Spec.Containers[0]
	assert.True(w, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.Equal(w, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type)
	assert.True(w, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.False(w, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.Equal(w, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	assert.Zero(w, pod.Status.ContainerStatuses[0].RestartCount)
}

// trusted are the CAs that the API server trusts for our webhooks, all of them the same.
func (w *world) trusted(ctx context.Context) ([]byte, error) {
	var v admissionv1.ValidatingWebhookConfiguration
	var m admissionv1.MutatingWebhookConfiguration
	key := client.ObjectKey{Name: release}
	if err := errors.Join(w.client.Get(ctx, key, &v), w.client.Get(ctx, key, &m)); err != nil {
		return nil, err
	}
	bundles := map[string]bool{}
	for i := range v.Webhooks {
		bundles[string(v.Webhooks[i].ClientConfig.CABundle)] = true
	}
	for i := range m.Webhooks {
		bundles[string(m.Webhooks[i].ClientConfig.CABundle)] = true
	}
	for bundle := range bundles {
		if len(bundles) == 1 && bundle != "" {
			return []byte(bundle), nil
		}
	}
	return nil, fmt.Errorf("there are %d different CA bundles", len(bundles))
}

// servesWhatIsTrusted calls each replica as the API server would, and gives the serial
// numbers of the certificates by the names of the pods.
func (w *world) servesWhatIsTrusted() map[string]string {
	w.Helper()
	if !w.callsPods() {
		return nil
	}
	serials, err := w.handshakes(w.Context())
	require.NoError(w, err)
	return serials
}

func (w *world) handshakes(ctx context.Context) (map[string]string, error) {
	bundle, err := w.trusted(ctx)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	pods, err := w.podsOf(ctx, release, systemNamespace)
	if err == nil && len(pods) != 2 {
		err = fmt.Errorf("there are %d replicas", len(pods))
	}
	if err != nil {
		return nil, err
	}
	serials := map[string]string{}
	for i := range pods {
		dialer := tls.Dialer{
			NetDialer: &net.Dialer{Timeout: 5 * time.Second},
			Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: release + "-webhook." + systemNamespace + ".svc"},
		}
		connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(pods[i].Status.PodIP, strconv.Itoa(webhookPort)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pods[i].Name, err)
		}
		served, _ := connection.(*tls.Conn)
		serials[pods[i].Name] = served.ConnectionState().PeerCertificates[0].SerialNumber.String()
		_ = connection.Close()
	}
	return serials, nil
}

// statusOf is what an address answers to somebody without an account.
func (w *world) statusOf(url string) int {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(w, err)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is about who asks, not who answers
	response, err := c.Do(request)
	require.NoError(w, err)
	defer response.Body.Close()
	return response.StatusCode
}
