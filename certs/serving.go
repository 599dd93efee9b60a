// Package certs watches over the certificate that the webhooks serve with.
package certs

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"
)

// Names of the serving certificate's files in its folder, as a Secret of type
// kubernetes.io/tls mounts them.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
)

// Checker is a readiness check: it fails while the certificate in dir cannot be
// read, does not belong to its key, or is not valid at this time. A replica that
// would fail the API server's TLS handshake must not be asked.
func Checker(dir string, clk clock.PassiveClock) func(*http.Request) error {
	return func(*http.Request) error { return check(dir, clk.Now()) }
}

func check(dir string, now time.Time) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile))
	if err != nil {
		return fmt.Errorf("the webhook's serving certificate cannot be used: %w", err)
	}
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the webhook's serving certificate expired at %s; look at its cert-manager Certificate, or renew it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the webhook's serving certificate is valid from %s only; compare the clocks", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
