package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// authorizer answers every question alike and remembers the questions.
type authorizer struct {
	allow bool
	err   error
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (a *authorizer) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	a.asked = append(a.asked, r.Spec)
	r.Status.Allowed = a.allow
	return r, a.err
}

func TestATakeOverNeedsThePermissionWhereThePlatformAsksForIt(t *testing.T) {
	forgotten := freeBinding("gone")
	forgotten.Status.Transitions = nil
	for name, tc := range map[string]struct {
		stored []client.Object
		policy v1alpha1.ClaimPolicy
		from   string // who it is taken over from; empty: no permission is needed
	}{
		"a first claim":                               {nil, "", ""},
		"a binding that its own name held":            {[]client.Object{freeBinding("new")}, "", ""},
		"a binding of which nobody knows who held it": {[]client.Object{forgotten}, "", "was held by another AutoScaler"},
		"a binding that its own name left":            {[]client.Object{bindingOf("new")}, "", ""},
		"a binding that another held":                 {[]client.Object{freeBinding("gone")}, "", `is or was last held by AutoScaler "gone"`},
		"a binding whose owner is gone":               {[]client.Object{bindingOf("gone")}, "", `is or was last held by AutoScaler "gone"`},
		"a line behind another":                       {[]client.Object{stored("first", 60)}, v1alpha1.ClaimWait, `is waited for by AutoScaler "first"`},
		"a line behind the holder":                    {[]client.Object{stored("first", 60), bindingOf("first")}, v1alpha1.ClaimWait, `is or was last held by AutoScaler "first"`},
		"a line behind an HPA and a holder": {
			[]client.Object{stored("first", 60), bindingOf("first"), builders.HPA("ns", "old", "web")}, v1alpha1.ClaimWait, `is or was last held by AutoScaler "first"`,
		},
		"a line behind an HPA, after another": {
			[]client.Object{freeBinding("gone"), builders.HPA("ns", "old", "web")}, v1alpha1.ClaimWait, `is or was last held by AutoScaler "gone"`,
		},
		"a line behind an HPA and a waiter": {
			[]client.Object{stored("first", 60), builders.HPA("ns", "old", "web")}, v1alpha1.ClaimWait, `is waited for by AutoScaler "first"`,
		},
		"a line behind an HPA alone":           {[]client.Object{builders.HPA("ns", "old", "web")}, v1alpha1.ClaimWait, ""},
		"a held binding, and refused for that": {[]client.Object{stored("first", 60), bindingOf("first")}, v1alpha1.ClaimReject, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := with(tc.stored, profile())
			live := store(t, objects...)
			before := owner(t, live)
			v := validator(t, store(t, objects...), live)
			access := &authorizer{}
			v.Access = access
			a := builders.MakeAutoScaler("ns", "new").UID("new").ClaimPolicy(tc.policy).Obj()
			a.CreationTimestamp = metav1.NewTime(now)

			_, err := v.ValidateCreate(request(t), a)

			if tc.from == "" {
				assert.Empty(t, access.asked)
				return
			}
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			for _, want := range []string{"spec.targetRef.name", `verb "claim"`, "scalebindings", "autoscale.example.com", "resourceNames [web]", `"someone"`, `Deployment "web" ` + tc.from} {
				assert.ErrorContains(t, err, want)
			}
			assert.Equal(t, before, owner(t, live), "nothing is claimed")

			access.allow = true
			_, err = v.ValidateCreate(request(t), a)
			assert.NoError(t, err)
		})
	}
}

func TestTheAuthorizerIsToldWhoAsks(t *testing.T) {
	objects := []client.Object{profile(), freeBinding("gone")}
	v := validator(t, store(t, objects...), store(t, objects...))
	access := &authorizer{allow: true}
	v.Access = access

	_, err := v.ValidateCreate(request(t, func(r *admissionv1.AdmissionRequest) {
		r.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"example.com/team": {"a", "b"}}
	}), builders.MakeAutoScaler("ns", "new").UID("new").Obj())

	require.NoError(t, err)
	assert.Equal(t, []authorizationv1.SubjectAccessReviewSpec{{
		User: "someone", UID: "7", Groups: []string{"devs"},
		Extra: map[string]authorizationv1.ExtraValue{"example.com/team": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "ns", Verb: "claim", Group: "autoscale.example.com", Version: "v1alpha1", Resource: "scalebindings", Name: "web",
		},
	}}, access.asked)
}

func TestAnAuthorizerThatFailsRefusesAndClaimsNothing(t *testing.T) {
	objects := []client.Object{profile(), freeBinding("gone")}
	live := store(t, objects...)
	v := validator(t, store(t, objects...), live)
	v.Access = &authorizer{allow: true, err: errors.New("no route to host")}

	_, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "new").UID("new").Obj())

	assert.True(t, apierrors.IsInternalError(err), "%v", err)
	assert.Empty(t, owner(t, live))
}

func TestSomebodyWhoHeldTheBindingBetweenLookAndClaimIsReckonedWith(t *testing.T) {
	backing := store(t, profile())
	looked := false
	live := interceptor.NewClient(backing, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if _, ok := obj.(*v1alpha1.ScaleBinding); ok && !looked {
				looked = true
				require.NoError(t, c.Create(ctx, freeBinding("quick")))
			}
			return err
		},
	})
	v := validator(t, store(t, profile()), live)
	access := &authorizer{}
	v.Access = access

	_, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "new").UID("new").Obj())

	assert.ErrorContains(t, err, `Deployment "web" was held by another AutoScaler, and`)
	assert.Len(t, access.asked, 1)
}
