//go:build integration

package chart

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Who issues the certificate may change with an upgrade, either way and back by a rollback.
// The leader of before issues nothing for those that are to take its place.
func TestWhoIssuesTheCertificateChangesWithAnUpgrade(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		const release, namespace = "autoscale-operator", "scaling"
		const own, provided = release + "-self-managed-cert", release + "-serving-cert"
		selfManaged := w.upgrade(chartDir, release, namespace, "--set=certificates.mode=self-managed", w.atomic())

		w.must(selfManaged...)
		autoscaler := w.shop("shop")
		w.trusts(own)

		w.must(w.upgrade(chartDir, release, namespace, w.atomic())...)
		w.trusts(provided)
		w.unchanged(autoscaler)
		assert.False(w, w.exists(&corev1.Secret{}, namespace, own), "its CA key is gone")

		w.must(selfManaged...)
		w.trusts(own)
		w.unchanged(autoscaler)

		w.must("rollback", release, "2", "--namespace="+namespace, "--wait", "--timeout=90s")
		w.trusts(provided)
		w.unchanged(autoscaler)
	})
}

// trusts waits until the API server trusts the CA in a Secret and no other, and checks that
// what it asks about is admitted then.
func (w *world) trusts(secret string) {
	w.Helper()
	require.EventuallyWithT(w, func(c *assert.CollectT) {
		var s corev1.Secret
		require.NoError(c, w.client.Get(w.Context(), client.ObjectKey{Namespace: "scaling", Name: secret}, &s))
		require.NotEmpty(c, s.Data["tls.crt"])
		for name, bundle := range w.bundles() {
			assert.Equal(c, string(s.Data["ca.crt"]), bundle, name)
		}
	}, soon, 100*time.Millisecond)
	w.admits()
}
