package binding

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// stage is a set of managers over fake clients.
type stage struct {
	*Managers
	dynamic *dynamicfake.FakeDynamicClient
}

var gvrs = map[string]schema.GroupVersionResource{
	"ScaledObject":           {Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"},
	"WatermarkPodAutoscaler": {Group: "datadoghq.com", Version: "v1alpha1", Resource: "watermarkpodautoscalers"},
}

func newStage(t *testing.T, discovery Discovery, objects ...runtime.Object) *stage {
	t.Helper()
	var hpas []client.Object
	var others []runtime.Object
	for _, obj := range objects {
		if hpa, ok := obj.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			hpas = append(hpas, hpa)
		} else {
			others = append(others, obj)
		}
	}
	scheme := runtime.NewScheme()
	require.NoError(t, autoscalingv2.AddToScheme(scheme))
	typed := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(hpas...).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, HPATarget, IndexHPA).Build()
	kinds := map[schema.GroupVersionResource]string{}
	for kind, gvr := range gvrs {
		kinds[gvr] = kind + "List"
	}
	s := &stage{dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, others...)}
	var err error
	s.Managers, err = NewManagers(ManagersOptions{
		Cached: typed, Live: typed, Dynamic: s.dynamic, Discovery: discovery,
		Registered: DefaultManagers(), Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	return s
}

// refuse makes lists of a resource fail.
func (s *stage) refuse(resource string, err error) {
	s.dynamic.PrependReactor("list", resource, func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func hpa(name, target string) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	h.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: target}
	return h
}

func manager(kind, name, target string) *unstructured.Unstructured {
	gvr := gvrs[kind]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{"namespace": "shop", "name": name, "uid": kind + name},
		"spec":     map[string]any{"scaleTargetRef": map[string]any{"kind": "Deployment", "apiVersion": "apps/v1", "name": target}},
	}}
}

// looks are both ways to look, from caches that are empty and live.
func (s *stage) looks(t *testing.T, target string, check func(t *testing.T, err error)) {
	t.Helper()
	for name, find := range map[string]func(context.Context, string, string) error{"Find": s.Find, "FindLive": s.FindLive} {
		t.Run(name, func(t *testing.T) { check(t, find(t.Context(), "shop", target)) })
	}
}

func TestAManagerIsNamedWithTheWayOut(t *testing.T) {
	made := hpa("keda-hpa-web", "web")
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "ScaledObject", Name: "web-scaler", Controller: ptr.To(true)}}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"an HPA": {
			[]runtime.Object{hpa("web-hpa", "web")},
			`HorizontalPodAutoscaler "web-hpa" already scales Deployment "web"; delete it first (kubectl -n shop delete hpa web-hpa), or set dryRun to compare beside it`,
		},
		"a ScaledObject": {
			[]runtime.Object{manager("ScaledObject", "web-scaler", "web")},
			`ScaledObject "web-scaler" already scales Deployment "web"; delete it first (kubectl -n shop delete scaledobjects.keda.sh web-scaler), or set dryRun to compare beside it`,
		},
		"a WatermarkPodAutoscaler": {
			[]runtime.Object{manager("WatermarkPodAutoscaler", "w", "web")},
			`WatermarkPodAutoscaler "w" already scales Deployment "web"; delete it first (kubectl -n shop delete watermarkpodautoscalers.datadoghq.com w), or set dryRun to compare beside it`,
		},
		"a ScaledObject rather than the HPA that it made": {
			[]runtime.Object{made, manager("ScaledObject", "web-scaler", "web")},
			`ScaledObject "web-scaler" already scales`,
		},
		"an HPA whose maker is not registered, or not seen": {
			[]runtime.Object{made},
			`HorizontalPodAutoscaler "keda-hpa-web", made by ScaledObject "web-scaler", already scales Deployment "web"; delete ScaledObject "web-scaler" first, or set dryRun to compare beside it`,
		},
		"of several, the same one always": {
			[]runtime.Object{hpa("c", "web"), hpa("a", "other"), hpa("b", "web")},
			`HorizontalPodAutoscaler "b"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			newStage(t, nil, tc.objects...).looks(t, "web", func(t *testing.T, err error) {
				t.Helper()
				var conflict *ManagerError
				require.ErrorAs(t, err, &conflict)
				assert.ErrorContains(t, err, tc.want)
				assert.Equal(t, "shop", conflict.Namespace)
				assert.Equal(t, "web", conflict.Target)
			})
		})
	}
}

func TestWhatIsNoConflict(t *testing.T) {
	other := hpa("web", "web")
	other.Namespace = "elsewhere"
	going := manager("ScaledObject", "going", "web")
	going.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
	going.SetFinalizers([]string{"finalizer.keda.sh"})
	broken := manager("ScaledObject", "broken", "web")
	broken.Object["spec"] = "web"
	for name, obj := range map[string]runtime.Object{
		"nothing at all":                      nil,
		"a manager in another namespace":      other,
		"a manager of a longer name":          hpa("my-web", "my-web"),
		"a registered one that is going":      going,
		"a registered one that says nonsense": broken,
		"a registered one of another target":  manager("WatermarkPodAutoscaler", "web", "worker"),
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if obj != nil {
				objects = append(objects, obj)
			}
			newStage(t, nil, objects...).looks(t, "web", func(t *testing.T, err error) {
				t.Helper()
				assert.NoError(t, err)
			})
		})
	}
}

func TestABrokenManagerDoesNotHideAnother(t *testing.T) {
	broken := manager("ScaledObject", "a-broken", "web")
	broken.Object["spec"] = map[string]any{"scaleTargetRef": map[string]any{"name": int64(1)}}
	newStage(t, nil, broken, manager("ScaledObject", "b", "web")).looks(t, "web", func(t *testing.T, err error) {
		t.Helper()
		assert.ErrorContains(t, err, `ScaledObject "b"`)
	})
}

func TestAKindThatIsNotServedIsNoError(t *testing.T) {
	s := newStage(t, nil, hpa("web", "web"))
	gone := apierrors.NewNotFound(gvrs["ScaledObject"].GroupResource(), "")
	s.refuse("*", gone)
	s.looks(t, "worker", func(t *testing.T, err error) {
		t.Helper()
		assert.NoError(t, err)
	})
	s.looks(t, "web", func(t *testing.T, err error) {
		t.Helper()
		assert.ErrorContains(t, err, "HorizontalPodAutoscaler")
	})
}

func TestAFailureIsToldUnlessAConflictIsKnown(t *testing.T) {
	forbidden := apierrors.NewForbidden(gvrs["ScaledObject"].GroupResource(), "", errors.New(`User "u" cannot list resource "scaledobjects"`))
	s := newStage(t, nil, hpa("web", "web"))
	s.refuse("scaledobjects", forbidden)
	s.refuse("watermarkpodautoscalers", apierrors.NewServiceUnavailable("down"))
	s.looks(t, "worker", func(t *testing.T, err error) {
		t.Helper()
		require.Error(t, err)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.ErrorContains(t, err, `looking for scaledobjects.keda.sh of Deployment shop/worker: scaledobjects.keda.sh is forbidden: User "u" cannot list resource "scaledobjects"`)
		assert.ErrorContains(t, err, "watermarkpodautoscalers.datadoghq.com")
	})
	s.looks(t, "web", func(t *testing.T, err error) {
		t.Helper()
		var conflict *ManagerError
		assert.ErrorAs(t, err, &conflict, "the conflict that is known counts")
	})
}

func TestNoManagersMayBeRegistered(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, autoscalingv2.AddToScheme(scheme))
	typed := clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(hpa("web", "web")).
		WithIndex(&autoscalingv2.HorizontalPodAutoscaler{}, HPATarget, IndexHPA).Build()
	m, err := NewManagers(ManagersOptions{Cached: typed, Live: typed})
	require.NoError(t, err)
	var conflict *ManagerError
	assert.ErrorAs(t, m.Find(t.Context(), "shop", "web"), &conflict)
	assert.NoError(t, m.FindLive(t.Context(), "shop", "worker"))
}

func TestALookThatIsCutShortIsNotAnAllClear(t *testing.T) {
	s := newStage(t, nil, manager("ScaledObject", "web", "web"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.FindLive(ctx, "shop", "web")
	require.Error(t, err)
	assert.ErrorIs(t, err, context.Canceled)
}

// The cache of a cluster's ScaledObjects must not hold their triggers.
func TestTheCacheKeepsNamesAndTargetsOnly(t *testing.T) {
	s := newStage(t, nil)
	large := manager("ScaledObject", "web", "web")
	large.SetResourceVersion("7")
	large.SetAnnotations(map[string]string{"note": fmt.Sprint(make([]int, 1000))})
	large.Object["status"] = map[string]any{"conditions": []any{"x"}}
	assert.Equal(t, &managerObject{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ScaledObjectweb", ResourceVersion: "7"},
		deployments: []string{"web"},
	}, s.registered[0].slim(t.Context(), large))
}
