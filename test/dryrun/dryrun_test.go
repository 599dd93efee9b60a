//go:build integration

// Package dryrun runs the recipe of docs/ci-dry-run.md as a pipeline would: with
// kubectl, against a real API server and the operator's own program.
package dryrun

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/docs/script"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/operator"
)

// config has the rule that the page breaks.
const config = `
endpoints:
- name: main
  url: %s
rules:
- name: large
  action: Deny
  field: spec.maxReplicas
  expression: object.spec.maxReplicas <= 200
  message: more than 200 replicas need an approval
`

// cluster is what the page assumes: an operator, a profile, a Deployment that is held
// and one that is not.
func cluster(t *testing.T) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	quiet := rest.CopyConfig(cp.Config)
	quiet.WarningHandler = rest.NoWarnings{} // those that kubectl gets are shown
	admin, err := client.New(quiet, client.Options{Scheme: scheme})
	require.NoError(t, err)
	metrics := fixture.NewMetricServer(t)
	metrics.Value(300)
	operator.Start(t, cp, operator.Options{Config: fmt.Sprintf(config, metrics.URL())})
	payment := builders.MakeAutoScaler("production", "payment-service").Target("payment-service").Metric("request-rate", "order-service-total-qps", "100").Obj()
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "production"}},
		builders.MakeMetricProfile("order-service-total-qps").Obj(),
		builders.Deployment("production", "order-service", 3),
		builders.Deployment("production", "payment-service", 3),
		payment,
	} {
		require.NoError(t, admin.Create(t.Context(), obj))
	}
	require.Eventually(t, func() bool {
		var guards v1alpha1.ScaleGuardList
		require.NoError(t, admin.List(t.Context(), &guards))
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(payment), payment))
		return len(guards.Items) == 1 && meta.IsStatusConditionTrue(payment.Status.Conditions, v1alpha1.ConditionReady)
	}, 30*time.Second, 50*time.Millisecond, "payment-service is held")
	return cp, admin
}

func TestAPipelineThatAsksBeforeTheMergeIsToldWhatAdmissionWouldSay(t *testing.T) {
	cp, admin := cluster(t)
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)

	require.NoError(t, script.Desk(t, cp.Kubeconfig()).Follow(t.Context(), filepath.Join(root, "docs", "ci-dry-run.md")))

	var scalers v1alpha1.AutoScalerList
	require.NoError(t, admin.List(t.Context(), &scalers))
	require.Len(t, scalers.Items, 1, "nothing was stored")
	assert.Equal(t, "payment-service", scalers.Items[0].Name)
	var bindings v1alpha1.ScaleBindingList
	require.NoError(t, admin.List(t.Context(), &bindings))
	require.Len(t, bindings.Items, 1, "and nothing claimed")
	assert.Equal(t, "payment-service", bindings.Items[0].Name)
	assert.Equal(t, int64(1), bindings.Items[0].Spec.Epoch)
	var profiles v1alpha1.MetricProfileList
	require.NoError(t, admin.List(t.Context(), &profiles))
	assert.Len(t, profiles.Items, 1)
}
