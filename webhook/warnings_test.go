package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// deployment is "web" with a replica count that these field managers set.
func deployment(replicas int32, managers ...string) *appsv1.Deployment {
	d := builders.Deployment("ns", "web", replicas)
	for _, m := range managers {
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: m, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		})
	}
	return d
}

func TestWhatIsLegalButWorthKnowingIsSaid(t *testing.T) {
	ours := builders.MakeAutoScaler("ns", "web").UID("new")
	for name, tc := range map[string]struct {
		stored []client.Object
		a      *v1alpha1.AutoScaler
		want   []string
	}{
		"nothing": {[]client.Object{deployment(2)}, ours.Obj(), nil},
		"the target is missing": {nil, ours.Obj(), []string{
			`spec.targetRef.name: there is no Deployment "web" in namespace "ns" yet`,
		}},
		"the target is at zero": {[]client.Object{deployment(0)}, ours.Obj(), []string{
			`spec.targetRef.name: Deployment "web" is scaled to 0`,
		}},
		"other writers set the count": {[]client.Object{deployment(2, "kubectl-client-side-apply", "autoscale-operator", "argocd")}, ours.Obj(), []string{
			`spec.replicas of Deployment "web" was last set by argocd, kubectl-client-side-apply;`,
		}},
		"only the operator set the count": {[]client.Object{deployment(2, "autoscale-operator")}, ours.Obj(), nil},
		"the count is above the maximum": {[]client.Object{deployment(30)}, ours.Obj(), []string{
			`spec.maxReplicas: Deployment "web" has 30 replicas and will be scaled down to 20`,
		}},
		"the count is above the cap of a schedule": {[]client.Object{deployment(15)}, scheduled(v1alpha1.Schedule{MaxReplicas: new(int32(10))}), []string{
			`spec.maxReplicas: Deployment "web" has 15 replicas and will be scaled down to 10`,
		}},
		"the count is above the maximum, and a schedule allows it": {
			[]client.Object{deployment(30)}, scheduled(v1alpha1.Schedule{MaxReplicas: new(int32(40))}), nil,
		},
		"the count is above the maximum, and frozen": {
			[]client.Object{deployment(30)}, scheduled(v1alpha1.Schedule{Freeze: v1alpha1.FreezeScaleDown}), nil,
		},
		"the count is above the maximum, and paused": {[]client.Object{deployment(30)}, paused(now.Add(time.Hour)), nil},
		"the count is above the maximum, and a pause is over": {[]client.Object{deployment(30)}, paused(now), []string{
			"will be scaled down to 20", "spec.pausedUntil: this time has passed",
		}},
		"a dry run beside an HPA": {
			[]client.Object{deployment(30, "kubectl"), builders.HPA("ns", "old", "web")},
			builders.MakeAutoScaler("ns", "web").UID("new").DryRun().Obj(),
			[]string{`spec.dryRun: HorizontalPodAutoscaler "old" scales the Deployment`},
		},
		"bounds that allow one count": {[]client.Object{deployment(2)}, builders.MakeAutoScaler("ns", "web").UID("new").Bounds(2, 2).Obj(), []string{
			"spec.maxReplicas: it equals minReplicas",
		}},
		"windows shorter than a poll": {[]client.Object{deployment(2)}, shortWindows(), []string{
			"spec.behavior.scaleDownStabilizationSeconds: 14 s is shorter than the poll interval of 15 s",
			"spec.metrics[0].behavior.scaleDownStabilizationSeconds: 1 s",
		}},
		"several, in one order": {[]client.Object{deployment(30, "kubectl")}, builders.MakeAutoScaler("ns", "web").UID("new").Bounds(2, 2).Window(5).Obj(), []string{
			"was last set by kubectl", "will be scaled down to 2", "it equals minReplicas", "5 s is shorter",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := with(tc.stored, profile())
			cached := withManagedFields(store(t, objects...), tc.stored)
			v := validator(t, cached, store(t, objects...))

			warnings, err := v.ValidateCreate(request(t), tc.a)

			require.NoError(t, err)
			require.Len(t, warnings, len(tc.want), "%q", warnings)
			for i, want := range tc.want {
				assert.Contains(t, warnings[i], want)
			}
		})
	}
}

// withManagedFields gives the Deployment's, which the fake client keeps for itself.
func withManagedFields(c client.WithWatch, objects []client.Object) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if d, ok := obj.(*appsv1.Deployment); ok && err == nil {
				d.ManagedFields = objects[0].GetManagedFields()
			}
			return err
		},
	})
}

// scheduled is one with a schedule that is always in force.
func scheduled(s v1alpha1.Schedule) *v1alpha1.AutoScaler {
	s.Name, s.Start, s.DurationSeconds = "always", "* * * * *", 3600
	a := builders.MakeAutoScaler("ns", "web").UID("new").Obj()
	a.Spec.Schedules = []v1alpha1.Schedule{s}
	return a
}

func paused(until time.Time) *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler("ns", "web").UID("new").Paused().Obj()
	a.Spec.PausedUntil = &metav1.Time{Time: until}
	return a
}

func shortWindows() *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler("ns", "web").UID("new").Window(14).Obj()
	a.Spec.Metrics[0].Behavior = &v1alpha1.Behavior{ScaleDownStabilizationSeconds: new(int32(1))}
	return a
}

func TestFC29_ADeploymentThatTheCacheHasNotSeenIsNotWarnedOf(t *testing.T) {
	v := validator(t, store(t), store(t, deployment(2)))
	assert.Empty(t, v.warnings(t.Context(), builders.MakeAutoScaler("ns", "web").Obj(), verdict{}))
}

func TestWhatCannotBeLookedUpIsNotWarnedOf(t *testing.T) {
	failing := interceptor.NewClient(store(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		},
	})
	v := validator(t, failing, failing)
	assert.Empty(t, v.warnings(t.Context(), builders.MakeAutoScaler("ns", "web").DryRun().Obj(), verdict{}))
}

func TestWarningsAreBoundedAndOneLineEach(t *testing.T) {
	long := make([]string, 30)
	for i := range long {
		long[i] = "first\nsecond\x00 " + strings.Repeat("ä", 500)
	}

	answer := said(long)

	require.Len(t, answer, maxWarnings+1)
	assert.Equal(t, "and 14 more warnings", answer[maxWarnings])
	for _, w := range answer {
		assert.LessOrEqual(t, len(w), maxWarningLength)
		assert.NotContains(t, w, "\n")
		assert.True(t, strings.HasPrefix(w, "first second ") || strings.HasPrefix(w, "and "), w)
	}
}
