// Package certs keeps the certificate that the operator serves with: it is read from
// files that somebody else writes, such as cert-manager, or from a Secret that the
// operator itself keeps. docs/certificates.md is its manual.
package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Names of a serving certificate's parts, as a Secret of type kubernetes.io/tls has
// them and as it is mounted.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

const (
	// refreshEvery is the time between two looks for another certificate. The one that
	// it replaces is good for longer, so nothing is gained by watching.
	refreshEvery = 10 * time.Second
	// awaitEvery is that time while there is none at all.
	awaitEvery = time.Second
)

// Pair is a certificate with its key, each as PEM, and the certificates of those who
// may have signed it, which may be empty.
type Pair struct{ Cert, Key, CA []byte }

// Source is where a Pair comes from. Its error says what is awaited, and from whom.
type Source interface {
	Load(ctx context.Context) (Pair, error)
}

// Serving is the certificate that this replica serves with. A new one is served from
// the next handshake on. One that is of no use (half written, of another key, not
// signed by the CA beside it, not valid at this time) never takes the place of one that is.
type Serving struct {
	source Source
	clock  clock.WithTicker

	mu      sync.RWMutex
	pair    Pair
	current *tls.Certificate
	// trouble is why the newest could not be taken, or nil.
	trouble error
}

// NewServing has nothing to serve with before Refresh or Start.
func NewServing(source Source, clk clock.WithTicker) *Serving {
	return &Serving{source: source, clock: clk, trouble: errors.New("not looked for yet")}
}

// GetCertificate is for a tls.Config.
func (s *Serving) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current == nil {
		return nil, fmt.Errorf("there is no serving certificate yet: %w", s.trouble)
	}
	return s.current, nil
}

// Check is a readiness check: it fails while there is no certificate, or the one that
// is served is not valid at this time. A replica that would fail the API server's TLS
// handshake must not be asked.
func (s *Serving) Check() error {
	current, err := s.GetCertificate(nil)
	if err != nil {
		return err
	}
	now := s.clock.Now()
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch leaf := current.Leaf; {
	case now.After(leaf.NotAfter) && s.trouble != nil:
		return fmt.Errorf("the serving certificate expired at %s, and the next one cannot be used: %w", leaf.NotAfter.UTC().Format(time.RFC3339), s.trouble)
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the serving certificate expired at %s and was not renewed; look at who issues it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the serving certificate is valid from %s only; compare the clocks", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// Refresh looks for another certificate, once.
func (s *Serving) Refresh(ctx context.Context) {
	pair, err := s.source.Load(ctx)
	if err == nil {
		err = s.take(ctx, pair)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && (s.trouble == nil || s.trouble.Error() != err.Error()) {
		log.FromContext(ctx).Info("no other serving certificate is taken", "why", err.Error(), "serving", s.current != nil)
	}
	s.trouble = err
}

// take serves with a pair, if it can be.
func (s *Serving) take(ctx context.Context, pair Pair) error {
	s.mu.RLock()
	same := s.current != nil && bytes.Equal(pair.Cert, s.pair.Cert) && bytes.Equal(pair.Key, s.pair.Key) && bytes.Equal(pair.CA, s.pair.CA)
	s.mu.RUnlock()
	if same {
		return nil
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("the certificate and its key cannot be used: %w", err)
	}
	now := s.clock.Now()
	if err := signed(&certificate, pair.CA, now); err != nil {
		return err
	}
	// Where nothing that is valid is served, one that is not tells more than none.
	if leaf := certificate.Leaf; !validAt(leaf, now) && s.Check() == nil {
		return fmt.Errorf("the certificate is valid from %s to %s; the one before goes on being served",
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	s.mu.Lock()
	s.pair, s.current = pair, &certificate
	s.mu.Unlock()
	log.FromContext(ctx).Info("serving with a new certificate", "notAfter", certificate.Leaf.NotAfter.UTC().Format(time.RFC3339), "serial", certificate.Leaf.SerialNumber.String())
	return nil
}

func validAt(leaf *x509.Certificate, now time.Time) bool {
	return !now.After(leaf.NotAfter) && !now.Before(leaf.NotBefore)
}

// signed says whether one of these CAs signed the certificate. Whether it is valid at
// this time is not asked here.
func signed(certificate *tls.Certificate, ca []byte, now time.Time) error {
	if len(bytes.TrimSpace(ca)) == 0 {
		return nil
	}
	roots, others := x509.NewCertPool(), x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("%s holds no certificate", CAFile)
	}
	for _, der := range certificate.Certificate[1:] {
		if other, err := x509.ParseCertificate(der); err == nil {
			others.AddCert(other)
		}
	}
	leaf := certificate.Leaf
	at := now
	if at.After(leaf.NotAfter) {
		at = leaf.NotAfter
	}
	if at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, CurrentTime: at}); err != nil {
		return fmt.Errorf("the certificate is none of the %s beside it: %w", CAFile, err)
	}
	return nil
}

// Start goes on looking until the context ends.
func (s *Serving) Start(ctx context.Context) error {
	for {
		s.Refresh(ctx)
		wait := refreshEvery
		if _, err := s.GetCertificate(nil); err != nil {
			wait = awaitEvery
		}
		timer := s.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

var notAfter = prometheus.NewDesc("autoscale_serving_certificate_not_after_timestamp_seconds",
	"When the certificate that this replica serves with expires, as a Unix time.", nil, nil)

// Describe is for Prometheus.
func (*Serving) Describe(descs chan<- *prometheus.Desc) { descs <- notAfter }

// Collect tells of the certificate that is served; there is no series while there is none.
func (s *Serving) Collect(collected chan<- prometheus.Metric) {
	if current, err := s.GetCertificate(nil); err == nil {
		collected <- prometheus.MustNewConstMetric(notAfter, prometheus.GaugeValue, float64(current.Leaf.NotAfter.Unix()))
	}
}
