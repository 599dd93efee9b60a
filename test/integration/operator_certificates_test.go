//go:build integration

package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/install"
	operatortest "example.com/platform/autoscale-operator/test/operator"
)

const servingCert = "autoscale-operator-serving-cert"

// selfManaged are the rights that keeping a certificate needs beside the operator's own.
func (s *starting) selfManaged() {
	s.Helper()
	meta := metav1.ObjectMeta{Name: "autoscale-operator-certificates"}
	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: install.Namespace, Name: install.ServiceAccount}}
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
		ResourceNames: []string{"autoscale-operator"}, Verbs: []string{"get", "update"},
	}}}))
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subject,
	}))
	meta.Namespace = install.Namespace
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{servingCert}, Verbs: []string{"get", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
	}}))
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subject,
	}))
}

// bundle is what the API server trusts.
func (s *starting) bundle() []byte {
	s.Helper()
	var c admissionv1.ValidatingWebhookConfiguration
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Name: "autoscale-operator"}, &c))
	return c.Webhooks[0].ClientConfig.CABundle
}

// shake shakes hands with a replica as the API server would, and gives the serial
// number of its certificate.
func shake(ctx context.Context, port int, bundle []byte) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func (s *starting) secret() *corev1.Secret {
	s.Helper()
	var secret corev1.Secret
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Namespace: install.Namespace, Name: servingCert}, &secret))
	return &secret
}

// without takes something out of the Secret.
func (s *starting) without(keys ...string) {
	s.Helper()
	require.Eventually(s, func() bool {
		secret := s.secret()
		for _, key := range keys {
			delete(secret.Data, key)
		}
		return s.client.Update(s.Context(), secret) == nil
	}, 10*time.Second, 50*time.Millisecond)
}

// The operator keeps its own certificate. While it is renewed, its Secret deleted and
// its CA followed by another, AutoScalers are created all the time and each replica is
// asked for a handshake with what the API server trusts at that moment: none fails.
func TestFC36SelfManagedCertificatesAreRenewedWithoutAFailedAdmission(t *testing.T) {
	s := newStarting(t)
	s.selfManaged()
	require.NoError(t, s.client.Create(t.Context(), namespace("shop")))
	args := []string{
		"--certificates=self-managed", "--cert-secret=" + servingCert, "--webhook-service=autoscale-operator-webhook", "--webhook-cert-dir=/nowhere",
	}
	_, port, err := net.SplitHostPort(operatortest.FreeAddress(t))
	require.NoError(t, err)
	second, err := strconv.Atoi(port)
	require.NoError(t, err)
	for _, more := range [][]string{nil, {"--webhook-port=" + port}} {
		operatortest.Start(t, s.controlPlane, operatortest.Options{Config: anEndpoint, Args: append(more, args...)})
	}
	ports := []int{s.controlPlane.WebhookPort, second}
	require.Eventually(t, func() bool {
		return client.IgnoreAlreadyExists(s.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj())) == nil
	}, 30*time.Second, 50*time.Millisecond, "the API server trusts the operator")

	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	var admissions, handshakes, failures atomic.Int64
	fails := func(err error) {
		if err != nil && ctx.Err() == nil {
			failures.Add(1)
			t.Log(err)
		}
	}
	busy.Go(func() {
		for ctx.Err() == nil {
			admissions.Add(1)
			a := builders.MakeAutoScaler("shop", "web").Metric("load", "total", "100").Obj()
			fails(s.client.Create(ctx, a, client.DryRunAll))
		}
	})
	for _, port := range ports {
		busy.Go(func() {
			for ctx.Err() == nil {
				handshakes.Add(1)
				var c admissionv1.ValidatingWebhookConfiguration
				if err := s.client.Get(ctx, client.ObjectKey{Name: "autoscale-operator"}, &c); err != nil {
					fails(err)
					continue
				}
				_, err := shake(ctx, port, c.Webhooks[0].ClientConfig.CABundle)
				fails(err)
			}
		})
	}
	defer busy.Wait()
	defer cancel()

	both := func(serial string) func() bool {
		return func() bool {
			for _, port := range ports {
				if now, err := shake(t.Context(), port, s.bundle()); err != nil || now == serial {
					return false
				}
			}
			return true
		}
	}
	serial := func() string {
		now, err := shake(t.Context(), ports[0], s.bundle())
		require.NoError(t, err)
		return now
	}
	before := serial()
	s.without("tls.crt", "tls.key")
	require.Eventually(t, both(before), 60*time.Second, 100*time.Millisecond, "another certificate on both replicas")

	before = serial()
	trusted := s.bundle()
	require.NoError(t, s.client.Delete(t.Context(), s.secret()))
	require.Eventually(t, both(before), 60*time.Second, 100*time.Millisecond, "the Secret comes back, with another certificate")
	assert.Equal(t, string(trusted), string(s.bundle()), "of the same CA")

	before = serial()
	s.without("ca.key")
	require.Eventually(t, func() bool { return len(s.bundle()) > len(trusted) }, 60*time.Second, 100*time.Millisecond, "another CA beside the one before")
	assert.Equal(t, before, serial(), "and still the same certificate")

	cancel()
	busy.Wait()
	assert.Zero(t, failures.Load())
	t.Logf("%d admissions and %d handshakes", admissions.Load(), handshakes.Load())
	assert.Greater(t, admissions.Load(), int64(100))
	s.noPermissionWasMissing()
}

func (s *starting) noPermissionWasMissing() {
	s.Helper()
	for _, r := range s.requests() {
		assert.NotEqual(s, int32(http.StatusForbidden), r.Code, "%+v", r)
	}
}

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	s := newStarting(t)
	address := operatortest.FreeAddress(t)
	operatortest.Start(t, s.controlPlane, operatortest.Options{Config: anEndpoint, Args: []string{"--metrics-bind-address=" + address}})
	admin, err := kubernetes.NewForConfig(unlimited(s.controlPlane.Config))
	require.NoError(t, err)
	require.NoError(t, s.client.Create(t.Context(), namespace("monitoring")))
	token := func(account string) string {
		_, err := admin.CoreV1().ServiceAccounts("monitoring").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		require.NoError(t, err)
		answer, err := admin.CoreV1().ServiceAccounts("monitoring").CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		require.NoError(t, err)
		return answer.Status.Token
	}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(s.bundle()))
	scraper := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	scrape := func(token string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", http.NoBody)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := scraper.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(text)
	}

	code, _ := scrape("")
	assert.Equal(t, http.StatusUnauthorized, code)
	code, _ = scrape("nonsense")
	assert.NotEqual(t, http.StatusOK, code)
	code, _ = scrape(token("nobody"))
	assert.Equal(t, http.StatusForbidden, code)

	reader := metav1.ObjectMeta{Name: "metrics-reader"}
	require.NoError(t, s.client.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: reader, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}}))
	require.NoError(t, s.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: reader, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "monitoring", Name: "prometheus"}},
	}))
	prometheus := token("prometheus")
	var text string
	require.Eventually(t, func() bool {
		code, text = scrape(prometheus)
		return code == http.StatusOK
	}, 60*time.Second, time.Second, "a refusal is remembered for half a minute")
	assert.Contains(t, text, "\nautoscale_leader ")
	serving, err := tls.LoadX509KeyPair(s.controlPlane.WebhookCertDir+"/tls.crt", s.controlPlane.WebhookCertDir+"/tls.key")
	require.NoError(t, err)
	assert.Contains(t, text, fmt.Sprintf("\nautoscale_serving_certificate_not_after_timestamp_seconds %g\n", float64(serving.Leaf.NotAfter.Unix())))
}
