package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
)

// WebhookHost is the address on which the operator serves its webhooks.
const WebhookHost = "127.0.0.1"

// renewBefore is how much of its life a certificate must have left to be kept.
const renewBefore = 24 * time.Hour

// webhooks applies the generated webhook configurations with the operator's
// address in place of the service that a cluster would have, and its certificate.
func (i installer) webhooks(ctx context.Context) error {
	if i.options.WebhookPort == 0 {
		return nil
	}
	ca, err := certificate(i.certDir())
	if err != nil {
		return fmt.Errorf("the webhooks' certificate: %w", err)
	}
	configurations, err := i.read("config/webhook", true)
	if err != nil {
		return err
	}
	for _, configuration := range configurations {
		if err := i.redirect(configuration, ca); err != nil {
			return fmt.Errorf("%s %s: %w", configuration.GetKind(), configuration.GetName(), err)
		}
		if err := i.apply(ctx, configuration); err != nil {
			return err
		}
	}
	return nil
}

// redirect replaces the service of each webhook by a URL.
func (i installer) redirect(configuration *unstructured.Unstructured, ca []byte) error {
	webhooks, found, err := unstructured.NestedSlice(configuration.Object, "webhooks")
	if err != nil {
		return err
	}
	if !found {
		return errors.New("it has no webhooks")
	}
	for _, entry := range webhooks {
		webhook, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("webhooks holds %T, not an object", entry)
		}
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("webhook %v has no clientConfig.service.path", webhook["name"])
		}
		webhook["clientConfig"] = map[string]any{
			"url":      i.webhookURL(path),
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	return unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks")
}

// certificate returns the CA of the serving certificate in dir, making both if
// there is none or its time is nearly up.
func certificate(dir string) ([]byte, error) {
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if usable(certFile, keyFile) {
		return os.ReadFile(certFile)
	}
	// The certificate is followed by the CA that signed it.
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.ParseIP(WebhookHost)}, nil)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(certFile, cert, 0o600); err != nil {
		return nil, err
	}
	return cert, os.WriteFile(keyFile, key, 0o600)
}

func usable(certFile, keyFile string) bool {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return false
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	return err == nil && leaf.VerifyHostname(WebhookHost) == nil && time.Now().Add(renewBefore).Before(leaf.NotAfter)
}
