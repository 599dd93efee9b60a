package race

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
)

// forwarder is the one webhook address in front of the operators, as a Service is:
// it asks them in turn, and the next one where one does not answer the phone. Some
// answers are lost on the way.
type forwarder struct {
	backends  []string
	transport http.RoundTripper
	faults    *faults
	next      atomic.Uint64
	// served counts the admissions that each operator answered.
	served [2]atomic.Int64
}

func startForwarder(t *testing.T, address, certDir string, ports []int, f *faults) *forwarder {
	t.Helper()
	certFile, keyFile := filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key")
	certificate, err := os.ReadFile(certFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	fw := &forwarder{faults: f, transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	for _, port := range ports {
		fw.backends = append(fw.backends, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: &httputil.ReverseProxy{
			Rewrite:      func(*httputil.ProxyRequest) {}, // the transport chooses
			Transport:    fw,
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, certFile, keyFile) }()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		assert.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return fw
}

var errLost = errors.New("the answer was lost")

// RoundTrip asks the operators in turn.
func (f *forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	first := f.next.Add(1)
	for i := range f.backends {
		n := int(first+uint64(i)) % len(f.backends) //nolint:gosec // a remainder
		var response *http.Response
		if response, err = f.ask(r.Context(), n, r, body); err == nil {
			return f.deliver(body, response)
		}
		var dial *net.OpError
		if !errors.As(err, &dial) || dial.Op != "dial" {
			return nil, err // it may have begun
		}
	}
	return nil, err
}

func (f *forwarder) ask(ctx context.Context, n int, r *http.Request, body []byte) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = "https", f.backends[n], ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response, err := f.transport.RoundTrip(out)
	if err == nil {
		f.served[n].Add(1)
	}
	return response, err
}

// deliver loses some answers.
func (f *forwarder) deliver(body []byte, response *http.Response) (*http.Response, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	if review.Request == nil {
		return nil, errors.New("an admission review without a request")
	}
	q := review.Request
	if f.faults.of("admission "+string(q.Operation)+" "+q.Resource.Resource+" "+q.Namespace+" "+q.Name, admissionAnswer...).kind == "" {
		return response, nil
	}
	f.faults.happened("admission answer lost")
	_ = response.Body.Close()
	return nil, errLost
}
