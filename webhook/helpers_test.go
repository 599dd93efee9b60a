package webhook

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/scaling/spec"
	"example.com/platform/autoscale-operator/test/builders"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// store is a client with the indexes of the operator's cache over these objects.
func store(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, appsv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme,
	} {
		require.NoError(t, add(s))
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.ScaleBinding{}).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, binding.HPATarget, binding.IndexHPA).
		WithIndex(&v1alpha1.AutoScaler{}, binding.AutoScalerTarget, binding.IndexAutoScaler).
		WithIndex(&v1alpha1.AutoScaler{}, binding.AutoScalerProfile, binding.IndexProfiles).Build()
}

// calls counts what reaches the API server.
type calls struct{ reads, writes int }

// counted counts the calls of a client; its bindings' status writes too.
func counted(c client.WithWatch, n *calls) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			n.reads++
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			n.reads++
			return c.List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			n.writes++
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			n.writes++
			return c.Update(ctx, obj, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			n.writes++
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
}

// validator is one whose cache knows of one store and whose API server is another.
func validator(t *testing.T, cached, live client.WithWatch) *AutoScalerValidator {
	t.Helper()
	managers, err := binding.NewManagers(binding.ManagersOptions{Cached: cached, Live: live})
	require.NoError(t, err)
	return &AutoScalerValidator{
		Cached: cached, Live: live, Managers: managers, Limits: v1alpha1.DefaultLimits, FieldManager: "autoscale-operator",
		Arbiter: &binding.Arbiter{
			Live: live, Writer: live, Managers: managers, Grace: binding.DefaultGrace, Clock: clocktesting.NewFakePassiveClock(now),
			Usable: func(a *v1alpha1.AutoScaler) bool {
				return len(spec.ValidateAutoScaler(a, v1alpha1.DefaultLimits)) == 0
			},
		},
	}
}

// request is the context of an admission request.
func request(t *testing.T, change ...func(*admissionv1.AdmissionRequest)) context.Context {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		UserInfo:  authenticationv1.UserInfo{Username: "someone", UID: "7", Groups: []string{"devs"}},
	}}
	for _, f := range change {
		f(&req.AdmissionRequest)
	}
	return admission.NewContextWithRequest(t.Context(), req)
}

func dryRun(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }

// stored is an AutoScaler of the Deployment "web" that was created this many seconds
// ago.
func stored(name string, age int) *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler("ns", name).UID("uid-of-" + name).Obj()
	a.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(age) * time.Second))
	return a
}

// bindingOf is a binding of the Deployment "web" that an AutoScaler was confirmed for.
func bindingOf(owner string) *v1alpha1.ScaleBinding {
	return &v1alpha1.ScaleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: v1alpha1.ScaleBindingSpec{
			TargetRef: v1alpha1.TargetReference{Name: "web"}, Epoch: 1,
			OwnerRef: &v1alpha1.OwnerReference{Name: owner}, OwnerUID: stored(owner, 0).UID,
			ClaimedAt: &metav1.Time{Time: now.Add(-time.Hour)},
		},
		Status: v1alpha1.ScaleBindingStatus{
			Phase: v1alpha1.PhaseHeld, Epoch: 1,
			Transitions: []v1alpha1.BindingTransition{{Epoch: 1, Owner: owner, Phase: v1alpha1.PhaseHeld}},
		},
	}
}

// freeBinding was held by an AutoScaler.
func freeBinding(lastOwner string) *v1alpha1.ScaleBinding {
	b := bindingOf(lastOwner)
	b.Spec.OwnerRef, b.Spec.OwnerUID, b.Spec.ClaimedAt = nil, "", nil
	b.Spec.Epoch, b.Status.Epoch, b.Status.Phase = 2, 2, v1alpha1.PhaseFree
	b.Status.Transitions = append([]v1alpha1.BindingTransition{{Epoch: 2, Phase: v1alpha1.PhaseFree}}, b.Status.Transitions...)
	return b
}

// with gives a list of its own.
func with(objects []client.Object, more ...client.Object) []client.Object {
	return slices.Concat(objects, more)
}

func profile() *v1alpha1.MetricProfile { return builders.MakeMetricProfile("total").Obj() }

// owner names who holds the Deployment "web" for the API server, or nobody.
func owner(t *testing.T, c client.Client) string {
	t.Helper()
	var b v1alpha1.ScaleBinding
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "web"}, &b)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return ""
	}
	require.NoError(t, err)
	if b.Spec.OwnerRef == nil {
		return ""
	}
	return string(b.Spec.OwnerUID)
}
