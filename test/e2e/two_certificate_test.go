//go:build e2e

package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keeper is somebody who keeps the serving certificate of the second install by hand: a
// CA of their own, the Secret, and the bundles of the webhook configurations.
type keeper struct {
	*world
	secret string
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey
	// until is when the certificate in the Secret expires.
	until time.Time
}

// keepsCertificate makes the Secret, with a certificate of this life, in the namespace of
// the install that is to come.
func (w *world) keepsCertificate(life time.Duration) *keeper {
	w.Helper()
	k := &keeper{world: w, secret: "kept-by-hand"}
	var err error
	k.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(w, err)
	k.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "by hand"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, k.ca, k.ca, k.key.Public(), k.key)
	require.NoError(w, err)
	k.ca, err = x509.ParseCertificate(der)
	require.NoError(w, err)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: second, Name: k.secret}, Type: corev1.SecretTypeTLS, Data: k.issue(life)})
	return k
}

// issue gives the data of a Secret, with a new certificate.
func (k *keeper) issue(life time.Duration) map[string][]byte {
	k.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(k, err)
	k.until = time.Now().Add(life).Truncate(time.Second)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(k.until.Unix()), DNSNames: []string{secondName + "-webhook." + second + ".svc"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: k.until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, k.ca, key.Public(), k.key)
	require.NoError(k, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(k, err)
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// tells the API server which CA to trust.
func (k *keeper) tells() {
	k.Helper()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.ca.Raw})
	var v admissionv1.ValidatingWebhookConfiguration
	var m admissionv1.MutatingWebhookConfiguration
	key := client.ObjectKey{Name: secondName}
	require.NoError(k, errors.Join(k.client.Get(k.Context(), key, &v), k.client.Get(k.Context(), key, &m)))
	for i := range v.Webhooks {
		require.Empty(k, v.Webhooks[i].ClientConfig.CABundle, "nobody else does")
		v.Webhooks[i].ClientConfig.CABundle = bundle
	}
	for i := range m.Webhooks {
		m.Webhooks[i].ClientConfig.CABundle = bundle
	}
	require.NoError(k, errors.Join(k.client.Update(k.Context(), &v), k.client.Update(k.Context(), &m)))
}

// expires waits for the end of the certificate, and for what comes of it, and renews it.
func (k *keeper) expires(w *world) {
	before := w.operators(secondRelease, second)
	require.Len(w, before, 2)
	require.True(w, time.Now().Before(k.until), "the install took longer than the certificate lives: %s", k.until)
	for i := range before {
		k.servesUntil(w, &before[i], k.until)
	}

	w.until("both replicas to be not ready", time.Until(k.until)+soon, func(ctx context.Context) error { return w.ready(ctx, 0) })
	after := time.Since(k.until)
	assert.Positive(w, after, "not before it had expired")
	for i := range before {
		said := w.readyz(before[i].Name)
		assert.Contains(w, said, "[-]certificate: the serving certificate expired at "+k.until.UTC().Format(time.RFC3339)+" and was not renewed")
		assert.Contains(w, said, "[+]caches ok")
	}
	err := w.client.Create(w.Context(), w.wrong(warehouse), client.DryRunAll)
	require.ErrorContains(w, err, "failed calling webhook", "what nobody has checked is not admitted")
	w.refusesWrong(shop)

	old := k.until
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: second, Name: k.secret}}
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(secret), secret))
	secret.Data = k.issue(time.Hour)
	require.NoError(w, w.client.Update(w.Context(), secret))
	renewed := w.until("both replicas to be ready again", 2*soon, func(ctx context.Context) error { return w.ready(ctx, 2) })
	w.refusesWrong(warehouse)
	now := w.operators(secondRelease, second)
	require.Len(w, now, 2)
	for i := range now {
		assert.Zero(w, now[i].Status.ContainerStatuses[0].RestartCount)
		assert.Contains(w, []string{before[0].Name, before[1].Name}, now[i].Name)
		k.servesUntil(w, &now[i], k.until)
	}
	assert.True(w, k.until.After(old))
	w.report("- a certificate that expires: both replicas were not ready %.0f s later, and `/readyz` says why; the other install went on. "+
		"A new one in the Secret: ready again after %.0f s, without a restart", after.Seconds(), renewed.Seconds())
}

// ready is nil when so many replicas of the second install are.
func (w *world) ready(ctx context.Context, want int) error {
	pods, err := w.podsOf(ctx, secondRelease, second)
	if err != nil {
		return err
	}
	ready := 0
	for i := range pods {
		for _, c := range pods[i].Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if ready != want || len(pods) != 2 {
		return fmt.Errorf("%d of %d replicas are ready", ready, len(pods))
	}
	return nil
}

// readyz is what a replica of the second install says of its readiness.
func (w *world) readyz(pod string) string {
	w.Helper()
	said, err := w.clientset.CoreV1().Pods(second).ProxyGet("http", pod, "8081", "readyz", nil).DoRaw(w.Context())
	require.Error(w, err, "it is not ready")
	return string(said)
}

// servesUntil compares the metric of a replica's certificate with when it expires.
func (k *keeper) servesUntil(w *world, pod *corev1.Pod, until time.Time) {
	w.Helper()
	if !w.callsPods() {
		return
	}
	answer, err := w.clientset.CoreV1().ServiceAccounts(monitoring).CreateToken(w.Context(), "prometheus", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(w, err)
	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "https://"+net.JoinHostPort(pod.Status.PodIP, "8443")+"/metrics", http.NoBody)
	require.NoError(w, err)
	request.Header.Set("Authorization", "Bearer "+answer.Status.Token)
	roots := x509.NewCertPool()
	roots.AddCert(k.ca)
	scraper := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: secondName + "-webhook." + second + ".svc",
	}}}
	response, err := scraper.Do(request)
	require.NoError(w, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(w, err)
	require.Equal(w, http.StatusOK, response.StatusCode, string(text))
	want := fmt.Sprintf("\nautoscale_serving_certificate_not_after_timestamp_seconds %g\n", float64(until.Unix()))
	assert.Contains(w, string(text), want)
}
