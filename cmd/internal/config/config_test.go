package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling/prometheus"
)

func load(t *testing.T, content string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return Load(path)
}

func TestTheShippedConfigurationLoads(t *testing.T) {
	c, err := Load(filepath.Join("..", "..", "..", "config", "manager", "config.yaml"))
	require.NoError(t, err)
	assert.Equal(t, int32(1000), c.Bounds().MaxReplicas)
	assert.Equal(t, []string{"main"}, c.EndpointNames())
	_, err = prometheus.NewClient(c.Endpoints, nil)
	assert.NoError(t, err)
}

func TestLimitsHaveADefault(t *testing.T) {
	c, err := load(t, "endpoints: [{name: main, url: 'http://prometheus:9090'}]")
	require.NoError(t, err)
	assert.Equal(t, int32(1000), c.Bounds().MaxReplicas)
}

func TestABadConfigurationSaysWhereAndWhat(t *testing.T) {
	const endpoint = "endpoints: [{name: main, url: 'http://prometheus:9090'}]\n"
	for name, tc := range map[string]struct {
		content string
		want    []string
	}{
		"empty":                 {"", []string{"endpoints"}},
		"not YAML":              {"endpoints: [", []string{"config.yaml: line 1: did not find expected node content"}},
		"a misspelled limit":    {endpoint + "limits: {max_replica: 5}", []string{"config.yaml: line 2: there is no field max_replica here"}},
		"a misspelled section":  {endpoint + "limit: {max_replicas: 5}", []string{"config.yaml: line 2: there is no field limit here"}},
		"a misspelled endpoint": {"endpoints: [{name: main, urll: 'http://prometheus:9090'}]", []string{"line 1: there is no field urll here"}},
		"a misspelled rule":     {endpoint + "rules: [{name: a, messageExpression: x}]", []string{"line 2: there is no field messageExpression here"}},
		"two mistakes":          {endpoint + "limit: 1\nrule: []", []string{"config.yaml: line 2: there is no field limit here; line 3: there is no field rule here"}},
		"many mistakes":         {endpoint + strings.Repeat("\n", 3) + "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\nh: 1\ni: 1\nj: 1\nk: 1\nl: 1", []string{"line 14: there is no field j here; and 2 more mistakes"}},
		"a limit of 0":          {endpoint + "limits: {max_replicas: 0}", []string{"limits.max_replicas", "from 1 to 100000"}},
		"a negative limit":      {endpoint + "limits: {max_replicas: -1}", []string{"limits.max_replicas"}},
		"an enormous limit":     {endpoint + "limits: {max_replicas: 100001}", []string{"limits.max_replicas"}},
		"a limit past int32":    {endpoint + "limits: {max_replicas: 99999999999}", []string{`line 2: "9999999..." is not a whole number below 2147483648`}},
		"a limit in words":      {endpoint + "limits: {max_replicas: many}", []string{`line 2: "many" is not a whole number`}},
		"a list for a name":     {endpoint + "rules: [{name: [a]}]", []string{"line 2: a list is not a text"}},
		"a rule without a list": {endpoint + "rules: {name: a}", []string{"line 2: a field with others below it is not a list"}},
		"a text for a section":  {endpoint + "claims: yes please", []string{`line 2: "yes please" is not a field with others below it`}},
		"a key twice":           {endpoint + endpoint, []string{"line 2: endpoints is there twice"}},
		"binary":                {"\x00\x01", []string{"control characters are not allowed"}},
		"an alias that multiplies": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n" +
			"endpoints: [*f,*f,*f,*f,*f,*f,*f,*f,*f]", []string{"line 1: there is no field a here"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, tc.content)
			require.Error(t, err)
			_, says, _ := strings.Cut(err.Error(), "config.yaml: ")
			assert.NotRegexp(t, `\n|\b(main|config|rules|prometheus|yaml)[.:]|int32|struct|unmarshal`, says, "one line, of the file and not of the program")
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "absent.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestAnAddressForTokensHoldsNoSecret(t *testing.T) {
	for name, tc := range map[string]struct{ url, want string }{
		"credentials":       {"http://u:secret@x/t", "must not hold credentials: use client_id and client_secret_file instead"},
		"a user alone":      {"http://secret@x/t", "must not hold credentials"},
		"a query":           {"http://x/t?key=secret", "must not have a query (the part from '?'): use endpoint_params instead"},
		"an empty query":    {"http://x/secret?", "must not have a query"},
		"a fragment":        {"http://x/t#secret", "must not have a fragment"},
		"what is no URL":    {"http://a b:secret@x", "is not a URL"},
		"a plain address":   {"https://login.example.com:8443/token", ""},
		"a colon in a path": {"https://login.example.com/v1:token", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "endpoints: [{name: a, url: 'http://a'}, {name: b, url: 'http://b', oauth2: {client_id: c, client_secret_file: f, token_url: '"+tc.url+"'}}]")
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "config.yaml: endpoints[1].oauth2.token_url: "+tc.want)
			assert.NotContains(t, err.Error(), "secret@")
			assert.NotContains(t, err.Error(), "=secret")
		})
	}
}

func TestACredentialFileIsFoundBesideTheConfiguration(t *testing.T) {
	c, err := load(t, "endpoints: [{name: main, url: 'http://prometheus:9090', basic_auth: {username: u, password_file: secret}}]")
	require.NoError(t, err)
	file := c.Endpoints[0].HTTPClientConfig.BasicAuth.PasswordFile
	assert.True(t, filepath.IsAbs(file) && strings.HasSuffix(file, "secret"), file)
}
