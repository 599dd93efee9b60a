//go:build integration

package chart

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func (w *world) crd() *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Name: "autoscalers.autoscale.example.com"}, &crd))
	return &crd
}

// FC-44, FC-45, FC-49: an install, a test, upgrades, a rollback, an uninstall, and an install
// under another name. What is scaled goes on, and what is stored stays.
func TestFC45_TheLifeOfARelease(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		const release, namespace = "autoscale-operator", "scaling"

		// An earlier version, whose CRD was another.
		w.must(w.upgrade(older(w.T), release, namespace, w.atomic())...)
		require.Empty(w, w.crd().Spec.Names.ShortNames)
		w.must("test", release, "--namespace="+namespace)
		autoscaler := w.shop("shop")
		bundles := w.bundles()
		for name, bundle := range bundles {
			assert.NotEmpty(w, bundle, name)
		}

		// FC-44: the CRDs are upgraded with the chart. FC-49: the bundles are not the chart's.
		w.must(w.upgrade(chartDir, release, namespace, w.atomic(), "--set=logLevel=debug")...)
		assert.Equal(w, []string{"asc"}, w.crd().Spec.Names.ShortNames)
		assert.Equal(w, bundles, w.bundles())
		w.admits()
		w.must("test", release, "--namespace="+namespace)
		w.unchanged(autoscaler)

		// A chart above may stop bringing the CRDs, and begin again.
		w.must(w.upgrade(chartDir, release, namespace, "--set=crds.enabled=false")...)
		w.unchanged(autoscaler)
		w.must(w.upgrade(chartDir, release, namespace)...)

		// A rollback of the operator takes no AutoScaler away.
		w.must("rollback", release, "2", "--namespace="+namespace, "--wait", "--timeout=90s")
		assert.Equal(w, bundles, w.bundles())
		w.admits()
		w.unchanged(autoscaler)

		w.must("rollback", release, "1", "--namespace="+namespace, "--wait", "--timeout=90s")
		assert.Empty(w, w.crd().Spec.Names.ShortNames, "its CRDs go back with it")
		w.unchanged(autoscaler)

		// Uninstalled, nothing blocks anybody, and everything stays as it is.
		w.must("uninstall", release, "--namespace="+namespace, "--wait")
		assert.False(w, w.exists(&admissionv1.ValidatingWebhookConfiguration{}, "", release))
		assert.False(w, w.exists(&admissionv1.ValidatingAdmissionPolicy{}, "", release+"-guard-scale"))
		w.unchanged(autoscaler)
		paused := autoscaler.DeepCopy()
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(autoscaler), paused))
		paused.Spec.Paused = true
		require.NoError(w, w.client.Update(w.Context(), paused, client.DryRunAll))

		// Another name: the CRDs bear the old one's, and helm asks before it takes them.
		said := w.refused(w.upgrade(chartDir, "scaler", namespace)...)
		assert.Contains(w, said, "invalid ownership metadata")
		w.must(w.upgrade(chartDir, "scaler", namespace, "--take-ownership")...)
		assert.Equal(w, "scaler", w.crd().Annotations["meta.helm.sh/release-name"])
		w.admits()
		w.unchanged(autoscaler)
		w.must(w.upgrade(chartDir, "scaler", namespace)...)

		// No finalizer of ours: a namespace goes, with the operator and without.
		require.NoError(w, w.client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
		require.NoError(w, poll(w.Context(), w.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	})
}

// unchanged checks that an AutoScaler and what it holds are the same objects as before,
// and the count is what it was.
func (w *world) unchanged(before *v1alpha1.AutoScaler) {
	w.Helper()
	var now v1alpha1.AutoScaler
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(before), &now))
	assert.Equal(w, before.UID, now.UID)
	assert.Equal(w, before.Spec, now.Spec)
	assert.Equal(w, before.UID, w.binding(before.Namespace).Spec.OwnerUID)
	assert.EqualValues(w, demanded, w.replicas(before.Namespace))
}

// Two operators share a cluster, each for namespaces of its own; whatever would overlap is
// refused before anything of it is made, with the name of the one that is there.
func TestTwoInstallsShareACluster(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		// Its rights are put into them, so they must be there.
		w.namespace("shop")
		w.namespace("bank")
		w.must(w.upgrade(chartDir, "one", "operator-one", "--set=watchNamespaces={shop}")...)
		w.must(w.upgrade(chartDir, "two", "operator-two", "--set=watchNamespaces={bank},crds.enabled=false")...)

		first, second := w.shop("shop"), w.shop("bank")
		w.unchanged(first)
		w.unchanged(second)
		w.must("test", "one", "--namespace=operator-one")
		w.must("test", "two", "--namespace=operator-two")

		for name, tc := range map[string]struct {
			namespace string
			flags     []string
			want      string
		}{
			"one for all namespaces": {"operator-three", nil,
				`release "one" in namespace "operator-one" (ValidatingWebhookConfiguration one-autoscale-operator) watches the namespaces shop, and this one would watch all`},
			"one that overlaps": {"operator-three", []string{"--set=watchNamespaces={depot,bank}"},
				`release "two" in namespace "operator-two" (ValidatingWebhookConfiguration two-autoscale-operator) watches the namespace bank, which is in this one's watchNamespaces too`},
			"one in a namespace that has one": {"operator-one", []string{"--set=watchNamespaces={depot}"},
				`is installed in this namespace already`},
		} {
			said := w.refused(w.upgrade(chartDir, "three", tc.namespace, append(tc.flags, "--set=crds.enabled=false")...)...)
			assert.Contains(w, said, tc.want, name)
			assert.False(w, w.exists(&admissionv1.ValidatingWebhookConfiguration{}, "", "three-autoscale-operator"), name)
		}

		// One goes, the other stays as it is.
		w.must("uninstall", "two", "--namespace=operator-two", "--wait")
		w.unchanged(first)
		w.admits()
	})
}

func TestASecondInstallForAllNamespacesIsRefused(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		w.must(w.upgrade(chartDir, "one", "operator-one")...)

		for _, flags := range [][]string{nil, {"--set=watchNamespaces={shop}"}} {
			said := w.refused(w.upgrade(chartDir, "two", "operator-two", append(flags, "--set=crds.enabled=false")...)...)
			assert.Contains(w, said, `release "one" in namespace "operator-one" (ValidatingWebhookConfiguration one-autoscale-operator) watches all namespaces`)
		}
	})
}

// The operator's rights are put into its namespaces. One that is missing is named before
// anything is made; those that come with the release are not.
func TestANamespaceThatIsNotThereIsRefused(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		w.namespace("shop")
		said := w.refused(w.upgrade(chartDir, "one", "operator-one", "--set=watchNamespaces={shop,depot}")...)
		assert.Contains(w, said, `watchNamespaces: there is no namespace "depot"`)
		assert.Contains(w, said, "kubectl create namespace depot")
		assert.False(w, w.exists(&apiextensionsv1.CustomResourceDefinition{}, "", "autoscalers.autoscale.example.com"))

		w.must(w.install(w.umbrella("steps"), "--dry-run=server", "--set=autoscale-operator.watchNamespaces={depot}")...)
		w.must(w.upgrade(chartDir, "one", "operator-one", "--set=watchNamespaces={shop,operator-one}")...)
	})
}

// Where there is no cert-manager the operator issues its certificate itself, and nothing of
// it is left when it goes.
func TestAnInstallWithoutCertManager(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		const release, namespace = "autoscale-operator", "scaling"

		w.must(w.upgrade(chartDir, release, namespace, "--set=certificates.mode=self-managed", w.atomic())...)

		w.must("test", release, "--namespace="+namespace)
		autoscaler := w.shop("shop")
		bundles := w.bundles()
		for name, bundle := range bundles {
			assert.NotEmpty(w, bundle, name)
		}
		w.must(w.upgrade(chartDir, release, namespace, "--set=certificates.mode=self-managed", "--set=logLevel=debug")...)
		assert.Equal(w, bundles, w.bundles(), "FC-49")
		w.admits()
		w.unchanged(autoscaler)

		const name = release + "-self-managed-cert"
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		require.NoError(w, w.client.Delete(w.Context(), secret))
		w.trusts(name)
		assert.Equal(w, bundles, w.bundles(), "another certificate, of the same CA")

		w.must("uninstall", release, "--namespace="+namespace, "--wait")
		assert.False(w, w.exists(&corev1.Secret{}, namespace, name), "the one that the operator made goes, too")
	})
}

// FC-46: cert-manager comes seconds later than the chart. The pods wait for their Secret, and
// helm for the pods.
func TestFC46_ACertificateThatIsLate(t *testing.T) {
	withEachOnACluster(t, func(w *world) {
		w.certManager.pause()
		go func() {
			// Long after everything of the release is there.
			_ = poll(w.Context(), func(ctx context.Context) error {
				var pods corev1.PodList
				if err := w.client.List(ctx, &pods, client.MatchingLabels{"app.kubernetes.io/name": "autoscale-operator"}); err != nil {
					return err
				}
				for i := range pods.Items {
					for _, c := range pods.Items[i].Status.Conditions {
						if strings.Contains(c.Message, `secrets "autoscale-operator-serving-cert" not found`) {
							w.certManager.resume()
							return nil
						}
					}
				}
				return errors.New("no pod waits for the certificate")
			})
		}()

		w.must(w.upgrade(chartDir, "autoscale-operator", "scaling", w.atomic())...)

		w.must("test", "autoscale-operator", "--namespace=scaling")
	})
}
