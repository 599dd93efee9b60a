package certs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// office is an Authority with what it keeps.
type office struct {
	*testing.T
	*Authority
	cluster *fake.Clientset
	clock   *clocktesting.FakeClock
}

func newOffice(t *testing.T, objects ...runtime.Object) *office {
	t.Helper()
	service := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "system", Name: "operator-webhook"}}
	byURL := admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:9443/validate")}
	meta := metav1.ObjectMeta{
		Name: "operator", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "operator", "autoscale.example.com/watch-namespaces": "*"},
	}
	objects = append(objects,
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.ValidatingWebhook{{Name: "a", ClientConfig: service}, {Name: "b", ClientConfig: byURL}}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionv1.MutatingWebhook{{Name: "c", ClientConfig: service}}},
		&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Webhooks: []admissionv1.ValidatingWebhook{{Name: "d"}}},
	)
	o := &office{T: t, cluster: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(now)}
	o.Authority = &Authority{
		Secrets: o.cluster.CoreV1().Secrets("system"), Secret: "cert", Namespace: "system", Service: "operator-webhook",
		Validating:    o.cluster.AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		Mutating:      o.cluster.AdmissionregistrationV1().MutatingWebhookConfigurations(),
		Configuration: "operator", Clock: o.clock,
	}
	return o
}

func emptySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cert", Namespace: "system", Labels: map[string]string{"of": "the chart"}}}
}

func (o *office) secret() *corev1.Secret {
	o.Helper()
	secret, err := o.Secrets.Get(o.Context(), "cert", metav1.GetOptions{})
	require.NoError(o, err)
	return secret
}

// bundles are those of the three webhooks.
func (o *office) bundles() []string {
	o.Helper()
	validating, err := o.Validating.Get(o.Context(), "operator", metav1.GetOptions{})
	require.NoError(o, err)
	mutating, err := o.Mutating.Get(o.Context(), "operator", metav1.GetOptions{})
	require.NoError(o, err)
	return []string{
		string(validating.Webhooks[0].ClientConfig.CABundle), string(validating.Webhooks[1].ClientConfig.CABundle),
		string(mutating.Webhooks[0].ClientConfig.CABundle),
	}
}

// inOrder expects that the Secret's certificate is trusted by each webhook.
func (o *office) inOrder() material {
	o.Helper()
	m := readMaterial(o.secret().Data)
	require.NotNil(o, m.leaf)
	bundle := string(m.bundle())
	assert.Equal(o, []string{bundle, bundle, bundle}, o.bundles())
	assert.NoError(o, verifies(m, m.bundle(), o.clock.Now()))
	return m
}

// writes since the last call, as "verb resource".
func (o *office) writes() []string {
	var all []string
	for _, action := range o.cluster.Actions() {
		if verb := action.GetVerb(); verb != "get" {
			all = append(all, verb+" "+action.GetResource().Resource)
		}
	}
	o.cluster.ClearActions()
	return all
}

func TestAnEmptySecretIsFilledAndTheAPIServerToldOnce(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	first := o.inOrder()
	assert.Equal(t, []string{"update secrets", "update validatingwebhookconfigurations", "update mutatingwebhookconfigurations"}, o.writes())
	assert.Equal(t, map[string]string{"of": "the chart"}, o.secret().Labels)
	other, err := o.Validating.Get(t.Context(), "another", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, other.Webhooks[0].ClientConfig.CABundle, "another's is left alone")

	require.NoError(t, o.Keep(t.Context()))
	assert.Empty(t, o.writes(), "nothing to do")
	assert.Equal(t, first, o.inOrder())
}

func TestASecretThatWasNeverThereIsMade(t *testing.T) {
	o := newOffice(t)
	require.NoError(t, o.Keep(t.Context()))
	o.inOrder()
	assert.Equal(t, corev1.SecretTypeOpaque, o.secret().Type)
}

func TestFC36ADeletedSecretComesBackWithAnotherCertificateOfTheSameCA(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	before := o.inOrder()
	require.NoError(t, o.Secrets.Delete(t.Context(), "cert", metav1.DeleteOptions{}))
	o.writes()
	require.NoError(t, o.Keep(t.Context()))
	assert.Equal(t, []string{"create secrets"}, o.writes())
	assert.Equal(t, map[string]string{"app.kubernetes.io/managed-by": "Helm"}, o.secret().Labels)
	assert.Equal(t, map[string]string{"meta.helm.sh/release-name": "operator"}, o.secret().Annotations, "it goes with the release")
	after := o.inOrder()
	assert.NotEqual(t, before.leaf.SerialNumber, after.leaf.SerialNumber)
	assert.NoError(t, verifies(before, after.bundle(), now), "what replicas still serve stays trusted")
}

func TestFC36AReplicaThatBecomesTheLeaderKnowsTheCAOfADeletedSecret(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	before := o.inOrder()
	next := &Authority{
		Secrets: o.Secrets, Secret: "cert", Namespace: "system", Service: "operator-webhook",
		Validating: o.Validating, Mutating: o.Mutating, Configuration: "operator", Clock: o.clock,
	}
	read := &Secret{Secrets: o.Secrets, Namespace: "system", Name: "cert", Remember: next.Remember}
	_, err := read.Load(t.Context())
	require.NoError(t, err)
	next.Remember(map[string][]byte{CAFile: []byte("garbage")})
	require.NoError(t, o.Secrets.Delete(t.Context(), "cert", metav1.DeleteOptions{}))
	o.writes()
	require.NoError(t, next.Keep(t.Context()))
	assert.Equal(t, []string{"create secrets"}, o.writes(), "the API server has nothing to learn")
	assert.Equal(t, before.cas, o.inOrder().cas)
}

// As kubectl replace and helm upgrade --force leave it: the chart renders it without data.
func TestFC36AnEmptiedSecretIsFilledWithTheSameCA(t *testing.T) {
	garbage := []byte("garbage")
	for name, tc := range map[string]struct {
		spoil func(data map[string][]byte)
		same  bool // the certificate is of use still
	}{
		"all of it is gone":         {func(data map[string][]byte) { clear(data) }, false},
		"the CA is gone":            {func(data map[string][]byte) { delete(data, CAFile) }, true},
		"the CA and its key are":    {func(data map[string][]byte) { delete(data, CAFile); delete(data, caKey) }, true},
		"the CA is garbage":         {func(data map[string][]byte) { data[CAFile] = garbage }, true},
		"only the CA's key is left": {func(data map[string][]byte) { delete(data, CAFile); delete(data, CertFile); delete(data, KeyFile) }, false},
		"the certificate is gone":   {func(data map[string][]byte) { delete(data, CertFile) }, false},
		"its key is":                {func(data map[string][]byte) { delete(data, KeyFile) }, false},
		"its key is garbage":        {func(data map[string][]byte) { data[KeyFile] = garbage }, false},
		"all of it is garbage": {func(data map[string][]byte) {
			for key := range data {
				data[key] = garbage
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, emptySecret())
			require.NoError(t, o.Keep(t.Context()))
			before := o.inOrder()
			secret := o.secret()
			tc.spoil(secret.Data)
			_, err := o.Secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
			o.writes()
			require.NoError(t, o.Keep(t.Context()))
			assert.Equal(t, []string{"update secrets"}, o.writes(), "the API server has nothing to learn")
			after := o.inOrder()
			assert.Equal(t, before.cas, after.cas)
			assert.Equal(t, before.caKey, after.caKey)
			assert.Equal(t, tc.same, before.leaf.Equal(after.leaf))
			assert.NoError(t, verifies(before, after.bundle(), now), "what replicas still serve stays trusted")
			require.NoError(t, o.Keep(t.Context()))
			assert.Empty(t, o.writes(), "nothing is left to do")
		})
	}
}

func TestFC49ABundleThatIsTakenAwayIsPutBack(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	validating, err := o.Validating.Get(t.Context(), "operator", metav1.GetOptions{})
	require.NoError(t, err)
	validating.Webhooks[1].ClientConfig.CABundle = nil
	_, err = o.Validating.Update(t.Context(), validating, metav1.UpdateOptions{})
	require.NoError(t, err)
	o.writes()
	require.NoError(t, o.Keep(t.Context()))
	assert.Equal(t, []string{"update validatingwebhookconfigurations"}, o.writes())
	o.inOrder()
}

func TestARenewalChangesTheSecretAlone(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	before := o.inOrder()
	o.writes()
	o.clock.SetTime(before.leaf.NotAfter.Add(-leafRenewBefore + time.Minute))
	require.NoError(t, o.Keep(t.Context()))
	assert.Equal(t, []string{"update secrets"}, o.writes())
	after := o.inOrder()
	assert.NotEqual(t, before.leaf.SerialNumber, after.leaf.SerialNumber)
	assert.Equal(t, before.cas, after.cas)
}

func TestFC36ACAIsRenewedInTwoSteps(t *testing.T) {
	o := newOffice(t, emptySecret())
	require.NoError(t, o.Keep(t.Context()))
	first := o.inOrder()
	o.clock.SetTime(now.Add(caLife - 364*day)) // the certificate has long expired
	require.NoError(t, o.Keep(t.Context()))
	o.clock.Step(settle)
	require.NoError(t, o.Keep(t.Context()))
	o.clock.Step(leafLife - leafRenewBefore - time.Hour)
	require.NoError(t, o.Keep(t.Context()))
	m := o.inOrder()
	require.Len(t, m.cas, 2)
	assert.Equal(t, first.cas[0].Raw, m.cas[1].Raw, "the CA before is trusted until it expires")
	assert.NoError(t, m.leaf.CheckSignatureFrom(m.cas[0]))
}

func TestWhatCannotBeKeptIsToldAndTriedAgain(t *testing.T) {
	for _, tc := range []struct{ verb, resource, want string }{
		{"get", "validatingwebhookconfigurations", "the ValidatingWebhookConfiguration of the serving certificate"},
		{"get", "mutatingwebhookconfigurations", "the MutatingWebhookConfiguration of the serving certificate"},
		{"get", "secrets", "the Secret of the serving certificate"},
		{"update", "secrets", "the Secret of the serving certificate"},
		{"update", "validatingwebhookconfigurations", "the CA in the ValidatingWebhookConfiguration"},
		{"update", "mutatingwebhookconfigurations", "the CA in the MutatingWebhookConfiguration"},
	} {
		t.Run(tc.verb+" "+tc.resource, func(t *testing.T) {
			o := newOffice(t, emptySecret())
			refusing := true
			o.cluster.PrependReactor(tc.verb, tc.resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
				err := apierrors.NewForbidden(action.GetResource().GroupResource(), "operator", errors.New("no"))
				return refusing, nil, err
			})
			err := o.Keep(t.Context())
			assert.ErrorContains(t, err, tc.want)
			assert.True(t, apierrors.IsForbidden(err))
			refusing = false
			require.NoError(t, o.Keep(t.Context()))
			o.inOrder()
		})
	}
}

func TestTheAuthorityLooksEveryTenSeconds(t *testing.T) {
	o := newOffice(t, emptySecret())
	assert.True(t, o.NeedLeaderElection())
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- o.Start(ctx) }()
	looked := func() bool { return o.bundles()[2] != "" }
	require.Eventually(t, looked, 10*time.Second, time.Millisecond, "at once")
	require.NoError(t, o.Secrets.Delete(t.Context(), "cert", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		o.clock.Step(keepEvery)
		_, err := o.Secrets.Get(t.Context(), "cert", metav1.GetOptions{})
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	cancel()
	assert.NoError(t, <-ended)
}
