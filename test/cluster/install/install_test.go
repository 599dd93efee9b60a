package install

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
)

func TestReadingManifests(t *testing.T) {
	root := t.TempDir()
	i := installer{options: Options{Root: root}}
	write := func(name, content string) {
		path := filepath.Join(root, "config", "crd", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}

	_, err := i.read("config/crd", true)
	require.ErrorContains(t, err, "make generate", "an empty folder names the way out")
	none, err := i.read("config/crd", false)
	require.NoError(t, err)
	assert.Empty(t, none)

	write("a.yaml", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")
	write("notes.txt", "not a manifest")
	objects, err := i.read("config/crd", true)
	require.NoError(t, err)
	require.Len(t, objects, 2, "both documents, and not the empty one")
	assert.Equal(t, "a", objects[0].GetName())
	assert.Equal(t, "b", objects[1].GetName())

	write("b.yaml", "apiVersion: v1\nkind: [\n")
	_, err = i.read("config/crd", true)
	assert.ErrorContains(t, err, "b.yaml", "what cannot be read is named")
}

func TestARoleIsGivenToTheOperatorUnderItsOwnName(t *testing.T) {
	role := object("rbac.authorization.k8s.io/v1", "Role", Namespace, "leases")

	b := binding(role)

	assert.Equal(t, "RoleBinding", b.GetKind())
	assert.Equal(t, Namespace, b.GetNamespace())
	assert.Equal(t, "leases", b.GetName())
	assert.Equal(t, map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leases"}, b.Object["roleRef"])
	assert.Equal(t, []any{map[string]any{"kind": "ServiceAccount", "namespace": Namespace, "name": ServiceAccount}}, b.Object["subjects"])
}

func configuration(clientConfig map[string]any) *unstructured.Unstructured {
	c := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "ours")
	c.Object["webhooks"] = []any{map[string]any{"name": "w.example.com", "failurePolicy": "Fail", "clientConfig": clientConfig}}
	return c
}

func TestRedirect(t *testing.T) {
	i := installer{options: Options{WebhookPort: 20443}}

	t.Run("replaces the service by the operator's URL and certificate, and nothing else", func(t *testing.T) {
		c := configuration(map[string]any{"service": map[string]any{"name": "s", "namespace": "n", "path": "/validate-x"}})

		require.NoError(t, i.redirect(c, []byte("the CA")))

		assert.Equal(t, []any{map[string]any{"name": "w.example.com", "failurePolicy": "Fail", "clientConfig": map[string]any{
			"url": "https://127.0.0.1:20443/validate-x", "caBundle": base64.StdEncoding.EncodeToString([]byte("the CA")),
		}}}, c.Object["webhooks"])
	})

	t.Run("does the same for mutating webhooks", func(t *testing.T) {
		c := configuration(map[string]any{"service": map[string]any{"path": "/mutate-x"}})
		c.SetKind("MutatingWebhookConfiguration")

		require.NoError(t, i.redirect(c, []byte("the CA")))

		webhook, _ := c.Object["webhooks"].([]any)[0].(map[string]any)
		assert.Equal(t, map[string]any{
			"url": "https://127.0.0.1:20443/mutate-x", "caBundle": base64.StdEncoding.EncodeToString([]byte("the CA")),
		}, webhook["clientConfig"])
	})

	t.Run("names a webhook that has no path to keep", func(t *testing.T) {
		err := i.redirect(configuration(map[string]any{"url": "https://example.com"}), nil)

		assert.ErrorContains(t, err, "w.example.com")
	})

	t.Run("refuses a configuration without webhooks", func(t *testing.T) {
		err := i.redirect(object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "ours"), nil)

		assert.ErrorContains(t, err, "no webhooks")
	})
}

func TestCertificate(t *testing.T) {
	read := func(t *testing.T, dir string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
		require.NoError(t, err)
		return data
	}

	t.Run("serves 127.0.0.1, verified by the CA that is returned", func(t *testing.T) {
		dir := t.TempDir()
		ca, err := certificate(dir)
		require.NoError(t, err)
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		require.NoError(t, err)
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(ca))

		_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: WebhookHost})

		assert.NoError(t, err)
	})

	t.Run("is kept while it is good", func(t *testing.T) {
		dir := t.TempDir()
		first, err := certificate(dir)
		require.NoError(t, err)

		second, err := certificate(dir)

		require.NoError(t, err)
		assert.Equal(t, first, second)
	})

	t.Run("is made anew when its key is lost", func(t *testing.T) {
		dir := t.TempDir()
		first, err := certificate(dir)
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, "tls.key")))

		second, err := certificate(dir)

		require.NoError(t, err)
		assert.NotEqual(t, first, second)
		assert.Equal(t, second, read(t, dir))
		assert.True(t, usable(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")))
	})

	t.Run("is made anew when it is for another host", func(t *testing.T) {
		dir := t.TempDir()
		cert, key, err := certutil.GenerateSelfSignedCertKey("elsewhere", []net.IP{net.IPv4(192, 0, 2, 1)}, nil)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), cert, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))

		_, err = certificate(dir)

		require.NoError(t, err)
		assert.NotEqual(t, cert, read(t, dir))
	})
}
