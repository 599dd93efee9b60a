//go:build integration

package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestAnAPIServerComesBackFromAnOutageWithAllItKnew(t *testing.T) {
	c, err := Start(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "cluster"), Progress: t.Output()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Stop()) }()
	maps := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps(metav1.NamespaceDefault)
	before, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, c.StartAPIServer(t.Context()), "was not stopped")

	for range 2 {
		require.NoError(t, c.StopAPIServer())
		require.NoError(t, c.StopAPIServer(), "once more changes nothing")
		_, err = maps.Get(t.Context(), "kept", metav1.GetOptions{})
		require.Error(t, err)

		require.NoError(t, c.StartAPIServer(t.Context()))
		after, err := maps.Get(t.Context(), "kept", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, before.UID, after.UID)
		require.NoError(t, c.Err(), "an outage on demand is no failure")
	}

	kill(t, c.Dir(), apiServerName)
	<-c.Ended()
	assert.ErrorContains(t, c.Err(), apiServerName)
}
