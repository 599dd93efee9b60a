package prometheus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

func basicAuth(e *prometheus.Endpoint) {
	e.HTTPClientConfig.BasicAuth = &config.BasicAuth{Username: "operator", Password: "hunter2"}
}

func followRedirects(e *prometheus.Endpoint) { e.HTTPClientConfig.FollowRedirects = true }

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestEndpointIsReadFromYAMLLikePrometheusOwn(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "token"), "first\n")
	var endpoints []prometheus.Endpoint
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
- name: main
  url: https://prometheus.example:9090/prefix
  max_response_bytes: 2048
  max_concurrent_queries: 4
  max_queries_per_minute: 600
  authorization:
    credentials_file: token
  http_headers:
    X-Team:
      values: [platform]
- name: other
  url: http://other.example
  basic_auth: {username: u, password: p}
  follow_redirects: false
`), &endpoints))
	require.Len(t, endpoints, 2)
	assert.Equal(t, "main", endpoints[0].Name)
	assert.Equal(t, int64(2048), endpoints[0].MaxResponseBytes)
	assert.Equal(t, 4, endpoints[0].MaxConcurrentQueries)
	assert.Equal(t, 600, endpoints[0].MaxQueriesPerMinute)
	assert.True(t, endpoints[0].HTTPClientConfig.FollowRedirects, "Prometheus' default")
	assert.False(t, endpoints[1].HTTPClientConfig.FollowRedirects)
	endpoints[0].SetDirectory(dir)
	assert.Equal(t, filepath.Join(dir, "token"), endpoints[0].HTTPClientConfig.Authorization.CredentialsFile)
	_, err := prometheus.NewClient(endpoints, clock)
	require.NoError(t, err)
}

func TestUnknownFieldOfAnEndpointIsRefused(t *testing.T) {
	var e prometheus.Endpoint
	err := yaml.UnmarshalStrict([]byte("name: main\nurl: http://x\ntypo: 1\n"), &e)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "typo")
}

func TestInvalidEndpointsAreRefusedWithTheirFields(t *testing.T) {
	valid := prometheus.Endpoint{Name: "main", URL: "http://prometheus.example"}
	cases := map[string]struct {
		change func(*prometheus.Endpoint)
		says   string
	}{
		"no name":            {func(e *prometheus.Endpoint) { e.Name = "" }, `name: "" is not a DNS label`},
		"name with a dot":    {func(e *prometheus.Endpoint) { e.Name = "a.b" }, `name: "a.b" is not a DNS label`},
		"upper-case name":    {func(e *prometheus.Endpoint) { e.Name = "Main" }, "DNS label"},
		"no url":             {func(e *prometheus.Endpoint) { e.URL = "" }, "url: is required"},
		"no scheme":          {func(e *prometheus.Endpoint) { e.URL = "prometheus:9090" }, "url: must begin with http://"},
		"other scheme":       {func(e *prometheus.Endpoint) { e.URL = "file:///etc/passwd" }, "url: must begin with http://"},
		"no host":            {func(e *prometheus.Endpoint) { e.URL = "http://:9090" }, "url: has no host"},
		"not a url":          {func(e *prometheus.Endpoint) { e.URL = "http://a b:secret@x" }, "url: is not a URL"},
		"credentials":        {func(e *prometheus.Endpoint) { e.URL = "http://u:secret@x" }, "url: must not hold credentials"},
		"query":              {func(e *prometheus.Endpoint) { e.URL = "http://x?tenant=secret" }, "url: must not have a query"},
		"empty query":        {func(e *prometheus.Endpoint) { e.URL = "http://x?" }, "url: must not have a query"},
		"fragment":           {func(e *prometheus.Endpoint) { e.URL = "http://x#secret" }, "url: must not have a fragment"},
		"negative limit":     {func(e *prometheus.Endpoint) { e.MaxResponseBytes = -1 }, "max_response_bytes: -1"},
		"limit beyond":       {func(e *prometheus.Endpoint) { e.MaxResponseBytes = 1 << 40 }, "max_response_bytes: 1099511627776"},
		"no queries at once": {func(e *prometheus.Endpoint) { e.MaxConcurrentQueries = -1 }, "max_concurrent_queries: -1"},
		"too many at once":   {func(e *prometheus.Endpoint) { e.MaxConcurrentQueries = 1001 }, "max_concurrent_queries: 1001"},
		"negative budget":    {func(e *prometheus.Endpoint) { e.MaxQueriesPerMinute = -1 }, "max_queries_per_minute: -1"},
		"budget beyond":      {func(e *prometheus.Endpoint) { e.MaxQueriesPerMinute = 600_001 }, "max_queries_per_minute: 600001"},
		"two ways to prove":  {func(e *prometheus.Endpoint) { basicAuth(e); e.HTTPClientConfig.BearerToken = "secret" }, "at most one of basic_auth"},
		"no such CA file":    {func(e *prometheus.Endpoint) { e.HTTPClientConfig.TLSConfig.CAFile = "no-such-file" }, "no-such-file"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bad := valid
			c.change(&bad)
			_, err := prometheus.NewClient([]prometheus.Endpoint{{Name: "first", URL: "http://x"}, bad}, clock)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "endpoints[1]")
			assert.Contains(t, err.Error(), c.says)
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestAllFaultsOfTheEndpointsAreNamedAtOnce(t *testing.T) {
	_, err := prometheus.NewClient([]prometheus.Endpoint{
		{Name: "main", URL: "http://x"}, {Name: "main", URL: "http://y"}, {Name: "-", URL: "ftp://z"},
	}, clock)
	require.Error(t, err)
	assert.Contains(t, err.Error(), `endpoints[1]: name: "main" is already used by endpoints[0]`)
	assert.Contains(t, err.Error(), `endpoints[2]: name: "-"`)
	assert.Contains(t, err.Error(), "url: must begin with")
}

func TestCredentialsAreSentAndFilesAreReadAgain(t *testing.T) {
	server := newServer(t)
	server.Value(1)
	ask(t, newClient(t, server.URL(), basicAuth))
	user, password, ok := (&http.Request{Header: server.Requests()[0].Header}).BasicAuth()
	require.True(t, ok)
	assert.Equal(t, "operator", user)
	assert.Equal(t, "hunter2", password)

	token := filepath.Join(t.TempDir(), "token")
	writeFile(t, token, "first\n")
	client := newClient(t, server.URL(), func(e *prometheus.Endpoint) { e.HTTPClientConfig.BearerTokenFile = token })
	ask(t, client)
	writeFile(t, token, "second\n")
	ask(t, client)
	require.NoError(t, os.Remove(token))
	assertInvalid(t, ask(t, client), prometheus.ReasonCredentialsUnreadable, "file")

	requests := server.Requests()
	require.Len(t, requests, 3)
	assert.Equal(t, "Bearer first", requests[1].Header.Get("Authorization"))
	assert.Equal(t, "Bearer second", requests[2].Header.Get("Authorization"))
}

func TestServerCertificateIsVerified(t *testing.T) {
	server := fixture.NewTLSMetricServer(t, fixture.WithClock(clock))
	server.Value(3)
	assertInvalid(t, ask(t, newClient(t, server.URL())), prometheus.ReasonUnreachable, "certificate is not trusted")

	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Server().Certificate().Raw}
	writeFile(t, ca, string(pem.EncodeToMemory(&block)))
	got := ask(t, newClient(t, server.URL(), func(e *prometheus.Endpoint) { e.HTTPClientConfig.TLSConfig.CAFile = ca }))
	assert.Equal(t, scaling.Sample{Value: 3, Validity: scaling.Valid}, got)
}

func TestRefusedOAuth2TokenIsUnauthorized(t *testing.T) {
	server, issuer := newServer(t), newServer(t)
	issuer.Raw(`{"error":"invalid_client"}`, http.StatusUnauthorized, "application/json")
	client := newClient(t, server.URL(), oauth2(issuer.URL()))
	got := ask(t, client)
	assertInvalid(t, got, prometheus.ReasonUnauthorized, "OAuth2")
	assert.NotContains(t, got.Message, "hunter2")
	assert.Zero(t, server.RequestCount())
}

func TestTenantHeaderIsSentWithTheCredentials(t *testing.T) {
	server := newServer(t)
	client := newClient(t, server.URL(), basicAuth, func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{
			"X-Scope-OrgID": {Values: []string{"platform"}},
		}}
	})
	require.Equal(t, scaling.Valid, ask(t, client).Validity)
	header := server.Requests()[0].Header
	assert.Equal(t, []string{"platform"}, header.Values("X-Scope-OrgID"))
	assert.Contains(t, header.Get("Authorization"), "Basic ")
	assert.Equal(t, "autoscale-operator", header.Get("User-Agent"))
}

func TestClientCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t)
	names := make(chan string, 2)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
		_, _ = w.Write([]byte(vectorBody(`{"metric":{},"value":[$t,"7"]}`)))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.pool, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)

	ca, cert, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	writeFile(t, ca, string(pem.EncodeToMemory(&block)))
	authority.issue(t, "first", cert, key)
	client := newClient(t, server.URL, func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.TLSConfig = config.TLSConfig{CAFile: ca, CertFile: cert, KeyFile: key}
	})
	require.Equal(t, scaling.Valid, ask(t, client).Validity)
	authority.issue(t, "second", cert, key)
	server.CloseClientConnections() // a connection keeps the certificate it was made with
	require.Equal(t, scaling.Valid, ask(t, client).Validity)
	assert.Equal(t, "first", <-names)
	assert.Equal(t, "second", <-names)

	bare := newClient(t, server.URL, func(e *prometheus.Endpoint) { e.HTTPClientConfig.TLSConfig.CAFile = ca })
	assertInvalid(t, ask(t, bare), prometheus.ReasonUnreachable, "")
	authority.issue(t, "third", cert, key)
	require.NoError(t, os.Remove(key))
	server.CloseClientConnections()
	assertInvalid(t, ask(t, client), prometheus.ReasonCredentialsUnreadable, "file")
}

func TestFC5_NoKindOfCredentialGoesToAnotherHost(t *testing.T) {
	cases := map[string]func(*prometheus.Endpoint){
		"basic":  basicAuth,
		"bearer": func(e *prometheus.Endpoint) { e.HTTPClientConfig.BearerToken = "hunter2" },
		"header": func(e *prometheus.Endpoint) {
			e.HTTPClientConfig.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{"X-Scope-OrgID": {Values: []string{"hunter2"}}}}
		},
	}
	for name, credentials := range cases {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(name, " ", code), func(t *testing.T) {
				thief, server := newServer(t), newServer(t)
				server.Func(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL(), code) })
				got := ask(t, newClient(t, server.URL(), credentials, followRedirects))
				assertInvalid(t, got, prometheus.ReasonRedirected, "final address")
				assert.Zero(t, thief.RequestCount())
			})
		}
	}
}

func oauth2(url string) func(*prometheus.Endpoint) {
	return func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.OAuth2 = &config.OAuth2{ClientID: "operator", ClientSecret: "hunter2", TokenURL: url}
	}
}

func TestTokenIsFetchedOnceAndSent(t *testing.T) {
	server, issuer := newServer(t), newServer(t)
	issuer.Raw(`{"access_token":"abc","token_type":"bearer","expires_in":3600}`, http.StatusOK, "application/json")
	client := newClient(t, server.URL(), oauth2(issuer.URL()), followRedirects)
	for range 3 {
		require.Equal(t, scaling.Valid, ask(t, client).Validity)
	}
	assert.Equal(t, 1, issuer.RequestCount())
	for _, r := range server.Requests() {
		assert.Equal(t, "Bearer abc", r.Header.Get("Authorization"))
		assert.Equal(t, "autoscale-operator", r.Header.Get("User-Agent"))
	}
}

func TestTokenServerThatHangsIsBoundByTheQuerysTimeout(t *testing.T) {
	server, issuer := newServer(t), newServer(t)
	release := make(chan struct{})
	issuer.Func(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"abc","token_type":"bearer","expires_in":3600}`))
	})
	client := newClient(t, server.URL(), oauth2(issuer.URL()))
	q := question("up")
	q.Timeout = 20 * time.Millisecond
	before := runtime.NumGoroutine()
	for range 50 {
		assertInvalid(t, client.Measure(t.Context(), prometheus.Measure{Load: q}), prometheus.ReasonTimeout, "20ms")
	}
	assert.Less(t, runtime.NumGoroutine(), before+40, "goroutines do not pile up")
	assert.Equal(t, 1, issuer.RequestCount())
	close(release)
	assert.Equal(t, scaling.Valid, ask(t, client).Validity, "it recovers")
}

func TestEndpointWithOAuth2RunsAsManyQueriesAtOnceAsItMay(t *testing.T) {
	const many = 24
	server, issuer := newServer(t), newServer(t)
	issuer.Raw(`{"access_token":"abc","token_type":"bearer","expires_in":3600}`, http.StatusOK, "application/json")
	all := make(chan struct{})
	var arrived atomic.Int32
	server.Func(func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == many {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(vectorBody(`{"metric":{},"value":[$t,"7"]}`)))
	})
	client := newClient(t, server.URL(), oauth2(issuer.URL()), func(e *prometheus.Endpoint) { e.MaxConcurrentQueries = many })
	var queries sync.WaitGroup
	for range many {
		queries.Go(func() { assert.Equal(t, scaling.Valid, ask(t, client).Validity) })
	}
	queries.Wait()
}

func TestSecretOfOAuth2MayChangeWhileQueriesRun(t *testing.T) {
	server, issuer := newServer(t), newServer(t)
	server.Raw(vectorBody(`{"metric":{},"value":[$t,"7"]}`), http.StatusOK, "application/json")
	issuer.Raw(`{"access_token":"abc","token_type":"bearer","expires_in":3600}`, http.StatusOK, "application/json")
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	rotate := func(secret string) {
		writeFile(t, file+".new", secret)
		require.NoError(t, os.Rename(file+".new", file))
	}
	rotate("0")
	client := newClient(t, server.URL(), func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.OAuth2 = &config.OAuth2{ClientID: "operator", ClientSecretFile: file, TokenURL: issuer.URL()}
	})
	var queries sync.WaitGroup
	for range 4 {
		queries.Go(func() {
			for range 25 {
				assert.Equal(t, scaling.Valid, ask(t, client).Validity)
			}
		})
	}
	for i := range 10 {
		rotate(strconv.Itoa(i))
	}
	queries.Wait()
}

func TestSecretOfOAuth2IsReadAgainAndCannotBeAReference(t *testing.T) {
	server, issuer := newServer(t), newServer(t)
	issuer.Raw(`{"access_token":"abc","token_type":"bearer","expires_in":3600}`, http.StatusOK, "application/json")
	file := filepath.Join(t.TempDir(), "secret")
	writeFile(t, file, "first\n")
	client := newClient(t, server.URL(), func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.OAuth2 = &config.OAuth2{ClientID: "operator", ClientSecretFile: file, TokenURL: issuer.URL()}
	})
	ask(t, client)
	writeFile(t, file, "second\n")
	ask(t, client)
	assert.Equal(t, 2, issuer.RequestCount(), "a new secret gets a new token")
	require.NoError(t, os.Remove(file))
	assertInvalid(t, ask(t, client), prometheus.ReasonCredentialsUnreadable, "file")

	_, err := prometheus.NewClient([]prometheus.Endpoint{{Name: "main", URL: "http://x", HTTPClientConfig: config.HTTPClientConfig{
		OAuth2: &config.OAuth2{ClientID: "operator", ClientSecretRef: "somewhere", TokenURL: issuer.URL()},
	}}}, clock)
	require.ErrorContains(t, err, "name a file")
}

// authority issues client certificates.
type authority struct {
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{pool, cert, key}
}

func (a *authority) issue(t *testing.T, name, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	writeFile(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})))
}
