//go:build integration

package chart

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certManager plays cert-manager: it makes the Secrets of Certificates, and writes the CA
// to whoever asks for it by annotation. It holds one CA, for all.
type certManager struct {
	client client.Client
	ca     *x509.Certificate
	key    crypto.Signer
	pem    []byte
	paused atomic.Bool
}

// pause makes it do nothing, as one that is not installed; resume ends that.
func (m *certManager) pause()  { m.paused.Store(true) }
func (m *certManager) resume() { m.paused.Store(false) }

func startCertManager(w *world) *certManager {
	w.Helper()
	m := &certManager{client: w.client}
	if err := m.makeCA(); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			err := m.round(ctx)
			if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
				w.Log("the cert-manager of the test:", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	w.Cleanup(func() { cancel(); running.Wait() })
	return m
}

func (m *certManager) makeCA() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	m.key, m.pem = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	m.ca, err = x509.ParseCertificate(der)
	return err
}

func (m *certManager) round(ctx context.Context) error {
	if m.paused.Load() {
		return nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cert-manager.io/v1")
	list.SetKind("CertificateList")
	if err := m.client.List(ctx, list); err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, m.issue(ctx, &list.Items[i]))
	}
	return errors.Join(append(errs, m.inject(ctx))...)
}

// issue makes the Secret of a Certificate, if it is not there, and says that it is Ready.
func (m *certManager) issue(ctx context.Context, certificate *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	err := m.client.Get(ctx, client.ObjectKey{Namespace: certificate.GetNamespace(), Name: name}, &corev1.Secret{})
	if err == nil || !apierrors.IsNotFound(err) || certificate.GetDeletionTimestamp() != nil {
		return err
	}
	hosts, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, m.ca, key.Public(), m.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return m.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: certificate.GetNamespace(), Name: name},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
			"ca.crt":  m.pem,
		},
	})
}

// inject fills in the bundles that are missing or another's.
func (m *certManager) inject(ctx context.Context) error {
	var errs []error
	var validating admissionv1.ValidatingWebhookConfigurationList
	errs = append(errs, m.client.List(ctx, &validating))
	for i := range validating.Items {
		c := &validating.Items[i]
		before, changed := c.DeepCopy(), false
		for j := range c.Webhooks {
			changed = m.fill(c, &c.Webhooks[j].ClientConfig) || changed
		}
		if changed {
			errs = append(errs, m.patch(ctx, c, before))
		}
	}
	var mutating admissionv1.MutatingWebhookConfigurationList
	errs = append(errs, m.client.List(ctx, &mutating))
	for i := range mutating.Items {
		c := &mutating.Items[i]
		before, changed := c.DeepCopy(), false
		for j := range c.Webhooks {
			changed = m.fill(c, &c.Webhooks[j].ClientConfig) || changed
		}
		if changed {
			errs = append(errs, m.patch(ctx, c, before))
		}
	}
	return errors.Join(errs...)
}

func (m *certManager) fill(owner client.Object, config *admissionv1.WebhookClientConfig) bool {
	if !strings.Contains(owner.GetAnnotations()["cert-manager.io/inject-ca-from"], "/") || bytes.Equal(config.CABundle, m.pem) {
		return false
	}
	config.CABundle = m.pem
	return true
}

func (m *certManager) patch(ctx context.Context, c, before client.Object) error {
	if err := m.client.Patch(ctx, c, client.MergeFrom(before), client.FieldOwner("cert-manager-cainjector")); err != nil {
		return fmt.Errorf("inject the CA into %s: %w", c.GetName(), err)
	}
	return nil
}
