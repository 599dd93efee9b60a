package prometheus_test

import (
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"

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
		"no name":           {func(e *prometheus.Endpoint) { e.Name = "" }, `name: "" is not a DNS label`},
		"name with a dot":   {func(e *prometheus.Endpoint) { e.Name = "a.b" }, `name: "a.b" is not a DNS label`},
		"upper-case name":   {func(e *prometheus.Endpoint) { e.Name = "Main" }, "DNS label"},
		"no url":            {func(e *prometheus.Endpoint) { e.URL = "" }, "url: is required"},
		"no scheme":         {func(e *prometheus.Endpoint) { e.URL = "prometheus:9090" }, "url: must begin with http://"},
		"other scheme":      {func(e *prometheus.Endpoint) { e.URL = "file:///etc/passwd" }, "url: must begin with http://"},
		"no host":           {func(e *prometheus.Endpoint) { e.URL = "http://:9090" }, "url: has no host"},
		"not a url":         {func(e *prometheus.Endpoint) { e.URL = "http://a b:secret@x" }, "url: is not a URL"},
		"credentials":       {func(e *prometheus.Endpoint) { e.URL = "http://u:secret@x" }, "url: must not hold credentials"},
		"query":             {func(e *prometheus.Endpoint) { e.URL = "http://x?tenant=secret" }, "url: must not have a query"},
		"empty query":       {func(e *prometheus.Endpoint) { e.URL = "http://x?" }, "url: must not have a query"},
		"fragment":          {func(e *prometheus.Endpoint) { e.URL = "http://x#secret" }, "url: must not have a fragment"},
		"negative limit":    {func(e *prometheus.Endpoint) { e.MaxResponseBytes = -1 }, "max_response_bytes: -1"},
		"limit beyond":      {func(e *prometheus.Endpoint) { e.MaxResponseBytes = 1 << 40 }, "max_response_bytes: 1099511627776"},
		"two ways to prove": {func(e *prometheus.Endpoint) { basicAuth(e); e.HTTPClientConfig.BearerToken = "secret" }, "at most one of basic_auth"},
		"no such CA file":   {func(e *prometheus.Endpoint) { e.HTTPClientConfig.TLSConfig.CAFile = "no-such-file" }, "no-such-file"},
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
	client := newClient(t, server.URL(), func(e *prometheus.Endpoint) {
		e.HTTPClientConfig.OAuth2 = &config.OAuth2{ClientID: "operator", ClientSecret: "hunter2", TokenURL: issuer.URL()}
	})
	got := ask(t, client)
	assertInvalid(t, got, prometheus.ReasonUnauthorized, "OAuth2")
	assert.NotContains(t, got.Message, "hunter2")
	assert.Zero(t, server.RequestCount())
}
