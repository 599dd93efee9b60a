package certs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestFilesAreReadAndTheCAIsOptional(t *testing.T) {
	m, dir := issued(t, now), t.TempDir()
	from := &Files{Dir: dir, Origin: "they come from Secret system/cert"}
	_, err := from.Load(t.Context())
	assert.EqualError(t, err, filepath.Join(dir, "tls.crt")+" is not there: they come from Secret system/cert")

	write(t, dir, CertFile, m.certPEM)
	_, err = from.Load(t.Context())
	assert.ErrorContains(t, err, "tls.key is not there")

	write(t, dir, KeyFile, m.keyPEM)
	pair, err := from.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Pair{Cert: m.certPEM, Key: m.keyPEM}, pair)

	write(t, dir, CAFile, m.bundle())
	pair, err = from.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, m.pair(), pair)

	require.NoError(t, os.Remove(filepath.Join(dir, CAFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, CAFile), 0o700))
	_, err = from.Load(t.Context())
	assert.ErrorContains(t, err, CAFile, "what is there and cannot be read is an error")
}

func TestASecretSaysWhoIsToFillIt(t *testing.T) {
	m := issued(t, now)
	secrets := fake.NewClientset().CoreV1().Secrets("system")
	from := &Secret{Secrets: secrets, Namespace: "system", Name: "cert"}
	_, err := from.Load(t.Context())
	assert.EqualError(t, err, "the Secret system/cert is not there; the leader makes it")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cert", Namespace: "system"}}
	secret, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = from.Load(t.Context())
	assert.EqualError(t, err, "the Secret system/cert holds no certificate yet; the leader issues it")

	secret.Data, err = m.data()
	require.NoError(t, err)
	_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	pair, err := from.Load(t.Context())
	require.NoError(t, err)
	assert.Equal(t, m.pair(), pair)
}
