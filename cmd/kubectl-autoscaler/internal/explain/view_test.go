package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

// reader has one AutoScaler that holds its Deployment, and an error in the place of a kind.
type reader struct {
	autoscaler *v1alpha1.AutoScaler
	profile    *v1alpha1.MetricProfile
	refused    string
	err        error
}

func (r *reader) may(o any) error {
	if strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.") == r.refused || strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.") == r.refused {
		return r.err
	}
	return nil
}

func (r *reader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *v1alpha1.AutoScaler:
		r.autoscaler.DeepCopyInto(o)
	case *v1alpha1.MetricProfile:
		r.profile.DeepCopyInto(o)
	case *appsv1.Deployment:
		o.Spec.Replicas = new(int32(9))
	case *v1alpha1.ScaleBinding:
		o.Spec = v1alpha1.ScaleBindingSpec{OwnerRef: &v1alpha1.OwnerReference{Name: "web"}, OwnerUID: r.autoscaler.UID, TargetUID: "d", Epoch: 3, Guard: v1alpha1.GuardClosed}
		o.Status = v1alpha1.ScaleBindingStatus{Phase: v1alpha1.PhaseHeld, Epoch: 3}
	}
	return r.may(into)
}

func (r *reader) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	return r.may(into)
}

func newReader(t *testing.T, refused string, err error) *reader {
	t.Helper()
	p := newPast(t, nil)
	p.autoscaler.UID = "a"
	p.looks(900, 5*time.Minute)
	return &reader{autoscaler: p.autoscaler, profile: p.profiles[0], refused: refused, err: err}
}

func TestWhatMayNotBeReadIsLeftOut(t *testing.T) {
	group := v1alpha1.GroupVersion.Group
	for kind, tc := range map[string]struct {
		err  error
		want string
	}{
		"Deployment":     {apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("no right")), `Count       cannot be read: deployments.apps "web" is forbidden: no right`},
		"ScaleBinding":   {apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "scalebindings"}, "web", errors.New("no right")), "Owner       cannot be read: scalebindings." + group + ` "web" is forbidden: no right`},
		"ScaleGuardList": {apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "scaleguards"}, "", errors.New("no right")), "Guard       closed, and whether the API server has been told cannot be read: scaleguards." + group + " is forbidden: no right"},
		"MetricProfile":  {apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: "metricprofiles"}, "total", errors.New("no right")), "Next        cannot be told: you may not read MetricProfile total"},
		"none":           {nil, "Guard       closing: the API server has not been told yet"},
	} {
		t.Run(kind, func(t *testing.T) {
			g := &gatherer{reader: newReader(t, kind, tc.err)}

			v, err := g.view(t.Context(), "production", "web", noon.Add(5*time.Minute))

			require.NoError(t, err)
			var out bytes.Buffer
			v.print(&out, noon, cli.Color{})
			assert.Contains(t, out.String(), tc.want)
			assert.Contains(t, out.String(), "AutoScaler production/web scales Deployment web")
		})
	}
}

func TestOnlyTheAutoScalersOwnAbsenceIsThat(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")
	v, err := (&gatherer{reader: newReader(t, "ScaleGuardList", gone)}).view(t.Context(), "production", "web", noon)
	require.NoError(t, err)
	assert.Contains(t, v.Unread["guard"], "not found")

	_, err = (&gatherer{reader: newReader(t, "AutoScaler", gone)}).view(t.Context(), "production", "web", noon)
	require.ErrorContains(t, err, "there is no AutoScaler web in namespace production")
	_, err = (&gatherer{reader: newReader(t, "AutoScaler", fmt.Errorf("find it: %w", &meta.NoKindMatchError{}))}).view(t.Context(), "production", "web", noon)
	require.ErrorContains(t, err, "the operator's CRDs are not installed there (see docs/install.md)")
	_, err = (&gatherer{reader: newReader(t, "AutoScaler", errors.New("no route"))}).view(t.Context(), "production", "web", noon)
	require.EqualError(t, err, "read AutoScaler production/web: no route")
}

func TestNoTextMovesTheCursorOrBreaksALine(t *testing.T) {
	const bad = "x\x1b[2J\ny\tz"
	v := &View{
		Target: bad, Still: bad, Unknown: bad, Binding: &Binding{Owner: bad, Phase: bad, Mine: true, WaitsFor: bad},
		Contention: &v1alpha1.Contention{Manager: bad}, Conditions: []metav1.Condition{{Type: bad, Status: bad, Reason: bad, Message: bad}},
		Decision: &v1alpha1.DecisionTrace{Rule: bad, Freeze: bad, Schedules: []string{bad}, Result: 1, Metrics: []v1alpha1.MetricTrace{
			{Name: bad, Validity: bad, Reason: bad, Rule: bad}, {Name: bad, Validity: "Invalid", Reason: bad},
		}},
	}
	for _, binding := range []*Binding{v.Binding, {Owner: bad, Phase: bad}, {Owner: bad, Phase: bad, Mine: true}} {
		for _, unread := range []map[string]string{nil, {"deployment": bad, "binding": bad}, {"guard": bad}} {
			v.Binding, v.Unread = binding, unread
			var out bytes.Buffer
			v.print(&out, noon, cli.Color{})
			assert.NotContains(t, out.String(), "\x1b")
			assert.NotContains(t, out.String(), "\ny")
			assert.NotContains(t, out.String(), "\t")
		}
	}
}
