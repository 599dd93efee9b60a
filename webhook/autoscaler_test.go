package webhook

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestFC29_ACacheThatIsBehindRefusesNothing(t *testing.T) {
	autoscaler := builders.MakeAutoScaler("ns", "web").UID("new").Metric("load", "total", "100").Obj()
	shut := builders.MakeMetricProfile("total").Allow("other").Obj()
	for name, tc := range map[string]struct{ cached, live []client.Object }{
		"the profile was created a moment ago":            {nil, []client.Object{profile()}},
		"the profile was opened a moment ago":             {[]client.Object{shut}, []client.Object{profile()}},
		"the HPA was deleted a moment ago":                {[]client.Object{profile(), builders.HPA("ns", "old", "web")}, []client.Object{profile()}},
		"an AutoScaler ahead was deleted a moment ago":    {[]client.Object{profile(), stored("first", 60)}, []client.Object{profile()}},
		"an AutoScaler ahead became a dry run":            {[]client.Object{profile(), stored("first", 60)}, []client.Object{profile(), shadow("first")}},
		"one of the same name was deleted a moment ago":   {[]client.Object{profile(), stored("web", 60)}, []client.Object{profile()}},
		"the binding was freed a moment ago":              {[]client.Object{profile(), bindingOf("gone")}, []client.Object{profile(), freeBinding("gone")}},
		"the binding was deleted a moment ago":            {[]client.Object{profile(), freeBinding("gone")}, []client.Object{profile()}},
		"the binding of one that is gone was never freed": {[]client.Object{profile()}, []client.Object{profile(), bindingOf("gone")}},
	} {
		t.Run(name, func(t *testing.T) {
			live := store(t, tc.live...)
			v := validator(t, store(t, tc.cached...), live)

			_, err := v.ValidateCreate(request(t), autoscaler)

			require.NoError(t, err)
			assert.Equal(t, "new", owner(t, live))
		})
	}
}

func shadow(name string) *v1alpha1.AutoScaler {
	a := stored(name, 60)
	a.Spec.DryRun = true
	return a
}

func TestANameThatIsTakenEndsInAlreadyExistsAndClaimsNothing(t *testing.T) {
	existing := builders.MakeAutoScaler("ns", "web").UID("uid-of-web").Obj()
	elsewhere := builders.MakeAutoScaler("ns", "web").UID("uid-of-web").Target("api").Obj()
	waiting := builders.MakeAutoScaler("ns", "web").UID("new").ClaimPolicy(v1alpha1.ClaimWait).Obj()
	bad := builders.MakeAutoScaler("ns", "web").UID("new").Bounds(3, 2).Obj()
	again := builders.MakeAutoScaler("ns", "web").UID("new").Obj()
	for name, tc := range map[string]struct {
		cached, live []client.Object
		create       *v1alpha1.AutoScaler
	}{
		"the cache knows":                            {[]client.Object{existing}, []client.Object{existing, bindingOf("web")}, again},
		"the cache knows and it points elsewhere":    {[]client.Object{elsewhere}, []client.Object{elsewhere}, again},
		"the cache does not know yet":                {nil, []client.Object{existing, bindingOf("web")}, again},
		"the cache does not know yet, and it waits":  {nil, []client.Object{existing, bindingOf("web")}, waiting},
		"the cache does not know yet, and it is bad": {nil, []client.Object{existing, bindingOf("web")}, bad},
		"the cache does not know yet, and an HPA came": {
			[]client.Object{builders.HPA("ns", "late", "web")},
			[]client.Object{existing, bindingOf("web"), builders.HPA("ns", "late", "web")}, again,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := store(t, with(tc.live, profile())...)
			before := owner(t, live)
			v := validator(t, store(t, with(tc.cached, profile())...), live)

			warnings, err := v.ValidateCreate(request(t), tc.create)

			assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
			assert.ErrorContains(t, err, `autoscalers.autoscale.example.com "web" already exists`)
			assert.Empty(t, warnings)
			assert.Equal(t, before, owner(t, live))
		})
	}
}

func TestAFailingLookUpBlamesNobodyAndLeaksNothing(t *testing.T) {
	autoscaler := builders.MakeAutoScaler("ns", "web").Metric("load", "total", "100").Obj()
	for name, err := range map[string]error{
		"a permission of the operator is missing": apierrors.NewForbidden(schema.GroupResource{Resource: "autoscalers"}, "web", errors.New("system:serviceaccount:x")),
		"the API server cannot be reached":        &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/apis", Err: errors.New("dial tcp 10.0.0.1:6443: refused")},
		"a write lost every race":                 apierrors.NewAlreadyExists(schema.GroupResource{Resource: "scalebindings"}, "10.0.0.1"),
	} {
		t.Run(name, func(t *testing.T) {
			failing := interceptor.NewClient(store(t), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return err
				},
			})
			v := validator(t, failing, failing)

			_, refusal := v.ValidateCreate(request(t), autoscaler)

			assert.True(t, apierrors.IsInternalError(refusal), "%v", refusal)
			assert.NotContains(t, refusal.Error(), "10.0.0.1")
			assert.NotContains(t, refusal.Error(), "serviceaccount")
			assert.ErrorContains(t, refusal, "try again")
		})
	}
}

func TestAnObjectThatIsGoingIsNeverRefused(t *testing.T) {
	old := stored("web", 60)
	bad := old.DeepCopy()
	bad.Spec.MaxReplicas, bad.Spec.MinReplicas = 1, 2
	bad.DeletionTimestamp = old.CreationTimestamp.DeepCopy()
	v := validator(t, store(t), store(t))

	_, err := v.ValidateUpdate(request(t), old, bad)
	assert.NoError(t, err)
	_, err = v.ValidateDelete(request(t), bad)
	assert.NoError(t, err)
}
