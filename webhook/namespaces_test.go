package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/test/builders"
)

func TestAnAutoScalerOfANamespaceThatIsNotWatchedIsRefused(t *testing.T) {
	v := &AutoScalerValidator{Namespaces: []string{"bank", "shop"}}
	a := builders.MakeAutoScaler("art", "web").Metric("load", "total", "100").Obj()
	changed := a.DeepCopy()
	changed.Spec.MaxReplicas++

	_, onCreate := v.ValidateCreate(t.Context(), a)
	_, onUpdate := v.ValidateUpdate(t.Context(), a, changed)
	for _, err := range []error{onCreate, onUpdate} {
		require.True(t, apierrors.IsForbidden(err), err)
		assert.ErrorContains(t, err, "this operator watches bank, shop, and not namespace art; add it to the operator's watchNamespaces")
	}

	changed.DeletionTimestamp = new(metav1.Now())
	_, err := v.ValidateUpdate(t.Context(), a, changed)
	assert.NoError(t, err, "what goes may go")
	_, err = v.ValidateDelete(t.Context(), a)
	assert.NoError(t, err)
	a.Namespace = "shop"
	assert.NoError(t, v.outside(a))
	a.Namespace = "anywhere"
	assert.NoError(t, (&AutoScalerValidator{}).outside(a))
}

func TestAProfileOfAnotherOperatorsEndpointIsAdmittedWithAWarning(t *testing.T) {
	p := builders.MakeMetricProfile("total").Obj()
	p.Spec.Endpoint = "theirs"
	_, err := (&MetricProfileValidator{Endpoints: []string{"main"}}).ValidateCreate(t.Context(), p)
	assert.ErrorContains(t, err, "spec.endpoint")

	v := &MetricProfileValidator{Endpoints: []string{"main", "other"}, Namespaces: []string{"shop"}}
	warnings, err := v.ValidateCreate(t.Context(), p)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Equal(t, `spec.endpoint: the operator that watches shop has no endpoint "theirs", it has main, other; AutoScalers there hold their count with this profile`, warnings[0])
	p.Spec.Endpoint = "main"
	warnings, err = v.ValidateCreate(t.Context(), p)
	assert.NoError(t, err)
	assert.Empty(t, warnings)
}
