//go:build e2e

package e2e

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the chart's certificates.
const (
	servingCertificate = release + "-serving"
	servingSecret      = release + "-serving-cert"
	caCertificate      = release + "-ca"
)

// renewals changes the certificates in all ways, while AutoScalers are created and both
// replicas are called as the API server does.
func (w *world) renewals() {
	w.ours("the operator's pods are called from here")
	for _, drill := range []struct {
		name string
		do   func(*world)
	}{
		{"the certificate's Secret is deleted", func(w *world) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: servingSecret}}
			require.NoError(w, w.client.Delete(w.Context(), secret))
		}},
		{"the certificate is renewed", func(w *world) { w.renews(servingCertificate) }},
		{"the CA is renewed, and then the certificate", (*world).renewsCA},
	} {
		w.do(drill.name, func(w *world) {
			before := w.servesWhatIsTrusted()
			begun := time.Now()
			created := w.again(2*time.Second, w.admits)
			called := w.again(time.Second, func(ctx context.Context) error { _, err := w.handshakes(ctx); return err })
			drill.do(w)
			took := w.servesAnother(before)
			admitted, greeted := created(), called()
			assert.Empty(w, admitted.failures)
			assert.Empty(w, greeted.failures)
			often := int(time.Since(begun).Seconds() / 3)
			assert.Greater(w, admitted.done, often, "they were created all the time")
			assert.Greater(w, greeted.done, often, "and both replicas called")
			w.report("- FC-36 %s: both replicas serve another certificate after %.0f s; %d AutoScalers were created and both replicas called %d times meanwhile, without a failure.",
				baseName(w.Name()), took.Seconds(), admitted.done, greeted.done)
		})
	}
}

// servesAnother waits until both replicas serve one certificate that none of them served
// before.
func (w *world) servesAnother(before map[string]string) time.Duration {
	w.Helper()
	return w.until("both replicas to serve another certificate", 2*soon, func(ctx context.Context) error {
		now, err := w.handshakes(ctx)
		if err != nil {
			return err
		}
		serials := map[string]bool{}
		for pod, serial := range now {
			if serial == before[pod] || before[pod] == "" {
				err = errors.Join(err, fmt.Errorf("%s serves %s, before %q", pod, serial, before[pod]))
			}
			serials[serial] = true
		}
		if len(serials) != 1 {
			err = errors.Join(err, fmt.Errorf("they serve %v", now))
		}
		return err
	})
}

// renews asks cert-manager for another certificate before its time, as cmctl does.
func (w *world) renews(name string) {
	w.Helper()
	w.until("cert-manager to be asked", soon, func(ctx context.Context) error {
		c := &unstructured.Unstructured{}
		c.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: name}, c); err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(c.Object, "status", "conditions")
		if err != nil {
			return err
		}
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "acceptance",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339), "observedGeneration": c.GetGeneration(),
		})
		if err := unstructured.SetNestedSlice(c.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		return w.client.Status().Update(ctx, c)
	})
}

// renewsCA renews the CA, and then what it has issued: by that the API server hears of it.
func (w *world) renewsCA() {
	w.Helper()
	old := w.serialOfCA(w.Context())
	require.NotEmpty(w, old)
	w.renews(caCertificate)
	w.until("another CA certificate", soon, func(ctx context.Context) error {
		if now := w.serialOfCA(ctx); now == old || now == "" {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
	w.renews(servingCertificate)
	w.until("the API server to trust it, too", soon, func(ctx context.Context) error {
		now, err := w.trusted(ctx)
		if trusted := serialsOf(now); err == nil && !slices.Contains(trusted, w.serialOfCA(ctx)) {
			err = fmt.Errorf("it trusts %v", trusted)
		}
		return err
	})
}

// serialOfCA is the serial number of the CA certificate; empty where there is none.
func (w *world) serialOfCA(ctx context.Context) string {
	w.Helper()
	var secret corev1.Secret
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: caCertificate}, &secret); err != nil {
		return ""
	}
	return strings.Join(serialsOf(secret.Data[corev1.TLSCertKey]), " ")
}

// serialsOf are the serial numbers of the certificates in a PEM text.
func serialsOf(text []byte) []string {
	var serials []string
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return serials
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			serials = append(serials, c.SerialNumber.String())
		}
	}
}
