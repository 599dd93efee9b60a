package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// installed is an install's webhook configuration, made in this minute.
func installed(name, namespaces string, minute int) admissionv1.ValidatingWebhookConfiguration {
	return admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
			Annotations: map[string]string{watchAnnotation: namespaces},
		},
		Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: name + "-system", Name: "webhook"},
		}}},
	}
}

func TestOfTwoInstallsForANamespaceTheOlderOneRuns(t *testing.T) {
	stranger := installed("cert-manager", "", 0)
	stranger.Annotations = nil
	for name, tc := range map[string]struct {
		own, other string
		otherFirst bool
		refused    bool
	}{
		"both for all, this one older":                      {"*", "*", false, false},
		"both for all, the other one older":                 {"*", "*", true, true},
		"this one for all, the other for one":               {"*", "shop", true, true},
		"this one for one, the other for all":               {"shop", "*", true, true},
		"one in common":                                     {"art,shop", "bank,shop", true, true},
		"one in common, and this one older":                 {"art,shop", "bank,shop", false, false},
		"none in common":                                    {"art", "bank,shop", true, false},
		"the other's list cannot be read: all":              {"art", "?", true, true},
		"the other's list is empty: all":                    {"art", "", true, true},
		"a name that begins like another is another's name": {"shop", "shop-2", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{namespace: "own-system", webhookConfigurations: "own"}
			if tc.own != allNamespaces {
				var err error
				o.watchNamespaces, err = splitNamespaces(tc.own)
				require.NoError(t, err)
			}
			minute := 9
			if tc.otherFirst {
				minute = 1
			}
			err := overlapping([]admissionv1.ValidatingWebhookConfiguration{installed("own", tc.own, 5), installed("other", tc.other, minute), stranger}, o)
			var overlap *overlapError
			assert.Equal(t, tc.refused, errors.As(err, &overlap), err)
		})
	}
}

func TestAnInstallThatIsNotThisOnesOwnIsAnothers(t *testing.T) {
	all := []admissionv1.ValidatingWebhookConfiguration{installed("own", "*", 1)}
	for name, o := range map[string]*options{
		"it has another name":                    {namespace: "own-system", webhookConfigurations: "mine"},
		"this one was not told its own":          {namespace: "own-system"},
		"its Service is in another namespace":    {namespace: "mine", webhookConfigurations: "own"},
		"and so for a part of all namespaces":    {namespace: "mine", webhookConfigurations: "own", watchNamespaces: []string{"a"}},
		"and so where both are for all the rest": {namespace: "mine", webhookConfigurations: "own", watchNamespaces: nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Error(t, overlapping(all, o)) })
	}
	byURL := installed("own", "*", 1)
	byURL.Webhooks[0].ClientConfig = admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443")}
	assert.NoError(t, overlapping([]admissionv1.ValidatingWebhookConfiguration{byURL}, &options{namespace: "mine", webhookConfigurations: "own"}))
	assert.NoError(t, overlapping(nil, &options{namespace: "mine"}))
}

// They would share a lease: one of them would scale, and nobody for the other.
func TestOfTwoInstallsInOneNamespaceTheOlderOneRuns(t *testing.T) {
	other := installed("other", "bank", 1)
	other.Webhooks[0].ClientConfig.Service.Namespace = "own-system"
	own := installed("own", "shop", 5)
	o := &options{namespace: "own-system", webhookConfigurations: "own", watchNamespaces: []string{"shop"}}

	err := overlapping([]admissionv1.ValidatingWebhookConfiguration{own, other}, o)

	var overlap *overlapError
	require.ErrorAs(t, err, &overlap)
	for _, want := range []string{
		"another autoscale-operator runs in namespace own-system", `ValidatingWebhookConfiguration is "other"`,
		"a namespace of its own", "kubectl delete validatingwebhookconfiguration other",
	} {
		assert.ErrorContains(t, err, want)
	}
	other.CreationTimestamp = metav1.NewTime(own.CreationTimestamp.Add(time.Minute))
	assert.NoError(t, overlapping([]admissionv1.ValidatingWebhookConfiguration{own, other}, o))
}

func TestTheRefusalNamesTheOtherInstallAndTheWaysOut(t *testing.T) {
	other := installed("first", "shop,bank", 1)
	err := overlapping([]admissionv1.ValidatingWebhookConfiguration{other}, &options{namespace: "mine"})
	require.Error(t, err)
	for _, want := range []string{
		"installed for namespaces bank, shop, and this one is for all namespaces", `ValidatingWebhookConfiguration is "first"`,
		"set watchNamespaces", "kubectl delete validatingwebhookconfiguration first",
	} {
		assert.ErrorContains(t, err, want)
	}
	other.Annotations["meta.helm.sh/release-name"], other.Annotations["meta.helm.sh/release-namespace"] = "scaler", "platform"
	err = overlapping([]admissionv1.ValidatingWebhookConfiguration{other}, &options{namespace: "mine"})
	assert.ErrorContains(t, err, "helm -n platform uninstall scaler")
}

func TestOtherInstallsAreLookedForInTheCluster(t *testing.T) {
	other := installed("first", "*", 1)
	cluster := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(&other).Build()
	var overlap *overlapError
	assert.ErrorAs(t, soleInstall(t.Context(), cluster, &options{namespace: "mine"}), &overlap)
	refusing := interceptor.NewClient(cluster, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	})
	assert.EqualError(t, soleInstall(t.Context(), refusing, &options{}), "looking for other installs of the operator: forbidden")
}
