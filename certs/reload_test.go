package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// replica serves HTTPS with what is in a folder, and gives its URL.
func replica(t *testing.T, dir string) (*Serving, string) {
	t.Helper()
	s := NewServing(&Files{Dir: dir}, clock.RealClock{})
	s.Refresh(t.Context())
	// Not a server of httptest, which serves a certificate of its own too.
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: s.GetCertificate, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s, "https://" + listener.Addr().String()
}

// Two replicas are asked all the time, each time with a new handshake, while the files
// of both are replaced again and again, one file after the other. No request fails, and
// both serve the last certificate in the end.
func TestFC36RenewalUnderLoadFailsNoRequestOnEitherReplica(t *testing.T) {
	m, dir := issued(t, time.Now()), t.TempDir()
	put := func(m material) {
		write(t, dir, CertFile, m.certPEM)
		write(t, dir, KeyFile, m.keyPEM)
	}
	put(m)
	write(t, dir, CAFile, m.bundle())
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(m.bundle()))
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	var asked, failed atomic.Int64
	var replicas []*Serving
	for range 2 {
		s, url := replica(t, dir)
		replicas = append(replicas, s)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
		asking.Go(func() {
			for ctx.Err() == nil {
				asked.Add(1)
				if response, err := client.Get(url); err != nil {
					failed.Add(1)
					t.Log(err)
				} else {
					_ = response.Body.Close()
				}
			}
		})
		asking.Go(func() {
			for ctx.Err() == nil {
				s.Refresh(ctx)
			}
		})
	}
	for range 50 {
		m = m.reissued(t, time.Now())
		put(m)
	}
	assert.Eventually(t, func() bool {
		for _, s := range replicas {
			if current, err := s.GetCertificate(nil); err != nil || !current.Leaf.Equal(m.leaf) {
				return false
			}
		}
		return asked.Load() > 100
	}, 30*time.Second, 5*time.Millisecond)
	cancel()
	asking.Wait()
	assert.Zero(t, failed.Load())
}
