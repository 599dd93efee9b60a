//go:build integration

// Package corpus applies every manifest of the corpus to a real API server, with the
// operator's own program behind its webhooks.
package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/manifests"
	"example.com/platform/autoscale-operator/test/operator"
)

// settled bounds the wait for the operator's cache to know what was created before.
const settled = 15 * time.Second

func TestCorpus(t *testing.T) {
	cases, err := manifests.Load()
	require.NoError(t, err)
	w := newWorld(t)
	for i, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			r := &run{T: t, world: w, c: moved(t, c, fmt.Sprintf("case-%d", i)), namespace: fmt.Sprintf("case-%d", i)}
			r.prepare()
			if c.Valid {
				r.accepted()
				return
			}
			r.refused()
		})
	}
}

// world is what all cases share.
type world struct {
	admin, operator *client
}

// newWorld starts a control plane and an operator whose webhooks serve and whose
// reconcilers do not run, since the lease is taken: what a case finds in storage is
// what admission left there.
func newWorld(t *testing.T) *world {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Webhooks: true, Guard: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	lead(t, cp.Config)
	operator.Start(t, cp, operator.Options{Config: "limits: {max_replicas: 1000}\nendpoints:\n- name: main\n  url: http://127.0.0.1:1\n"})
	return &world{admin: newClient(t, cp.Config), operator: newClient(t, cp.Operator)}
}

// lead takes the operator's lease for longer than the test lasts.
func lead(t *testing.T, config *rest.Config) {
	t.Helper()
	nobody, seconds, now := "nobody", int32(24*60*60), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: controller.FieldManager, Namespace: install.Namespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &nobody, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
	_, err := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(install.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
}

// run is one case at work, in a namespace of its own.
type run struct {
	*testing.T
	*world
	c         manifests.Case
	namespace string
}

// moved is the case in another namespace.
func moved(t *testing.T, c manifests.Case, namespace string) manifests.Case {
	t.Helper()
	text := func(s string) manifests.Text {
		return manifests.Text(bytes.ReplaceAll([]byte(s), []byte(manifests.Namespace), []byte(namespace)))
	}
	document := func(d manifests.Document) manifests.Document {
		d.Raw = []byte(text(string(d.Raw)))
		d.Object = &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(d.Raw, &d.Object.Object))
		return d
	}
	given := c.Given
	c.Given, c.Object = nil, document(c.Object)
	for _, d := range given {
		c.Given = append(c.Given, document(d))
	}
	c.Causes, c.Warnings = slices.Clone(c.Causes), slices.Clone(c.Warnings)
	for i := range c.Causes {
		c.Causes[i].Message = text(string(c.Causes[i].Message))
	}
	for i := range c.Warnings {
		c.Warnings[i] = text(string(c.Warnings[i]))
	}
	c.Refused = text(string(c.Refused))
	return c
}

func (r *run) prepare() {
	r.Helper()
	ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	require.NoError(r, r.admin.rest.Post().AbsPath("/api/v1/namespaces").Body(ns).Do(r.Context()).Error())
	for _, d := range r.c.Given {
		_, err := r.admin.apply(r.Context(), d)
		require.NoError(r, err, "given %s %s", d.Object.GetKind(), d.Object.GetName())
	}
	// The namespace is this case's own; a MetricProfile is in none.
	r.Cleanup(func() {
		for _, d := range append(r.c.Given, r.c.Object) {
			if d.Object.GetKind() == "MetricProfile" {
				path, err := r.admin.path(d)
				require.NoError(r, err)
				_ = r.admin.rest.Delete().AbsPath(path, d.Object.GetName()).Do(context.Background()).Error()
			}
		}
	})
}

func (r *run) sender() *client {
	if r.c.AsOperator {
		return r.operator
	}
	return r.admin
}

// dryRun sends the object as a dry run until the answer is as wanted: the operator's
// cache may not have seen yet what the case is given. The last answer counts.
func (r *run) dryRun(wanted func([]string, error) bool) (warnings []string, err error) {
	r.Helper()
	for end := time.Now().Add(settled); ; {
		r.sender().takeWarnings()
		err = r.sender().create(r.Context(), r.c.Object, true)
		warnings = r.sender().takeWarnings()
		if wanted(warnings, err) || time.Now().After(end) {
			return warnings, err
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *run) refused() {
	_, err := r.dryRun(func(_ []string, err error) bool { return len(r.differences(err)) == 0 })
	require.Error(r, err)
	require.Empty(r, r.differences(err), "a dry run answers\n%s", answerOf(err))

	err = r.sender().create(r.Context(), r.c.Object, false)

	require.Empty(r, r.differences(err), "the request itself answers\n%s", answerOf(err))
	if r.c.Object.Object.GetName() != "" {
		_, err = r.admin.get(r.Context(), r.c.Object)
		assert.True(r, apierrors.IsNotFound(err), "it is not stored: %v", err)
	}
	r.holdsNothing()
}

// holdsNothing expects that no claim was left for what was refused, or only tried.
func (r *run) holdsNothing() {
	r.Helper()
	var list v1alpha1.ScaleBindingList
	answer, err := r.admin.rest.Get().AbsPath("/apis/"+v1alpha1.GroupVersion.String(), "namespaces", r.namespace, "scalebindings").Do(r.Context()).Raw()
	require.NoError(r, err)
	require.NoError(r, yaml.Unmarshal(answer, &list))
	for i := range list.Items {
		if owner := list.Items[i].Spec.OwnerRef; owner != nil {
			assert.Equal(r, "holder", owner.Name, "only what the case was given may hold anything")
		}
	}
}

// notChecked is what the API server adds where a fault in the schema keeps it from
// evaluating rules.
const notChecked = "some validation rules were not checked because the object was invalid"

// differences between what is expected of a refusal and what was answered.
func (r *run) differences(err error) []string {
	if err == nil {
		return []string{"it is accepted"}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return []string{"no answer of the API server: " + err.Error()}
	}
	var causes []metav1.StatusCause
	if status.Status().Details != nil {
		causes = status.Status().Details.Causes
	}
	if r.c.Refused != "" {
		if !r.c.Refused.Matches(status.Status().Message) {
			return []string{"not as expected: " + status.Status().Message}
		}
		return nil
	}
	var all []string
	left := slices.Clone(r.c.Causes)
	for _, cause := range causes {
		if cause.Field == "<nil>" && strings.Contains(cause.Message, notChecked) {
			continue
		}
		i := slices.IndexFunc(left, func(c manifests.Cause) bool { return c.Field == cause.Field && c.Message.Matches(cause.Message) })
		if i < 0 {
			all = append(all, fmt.Sprintf("not expected: %s: %s", cause.Field, cause.Message))
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, c := range left {
		all = append(all, fmt.Sprintf("expected and not said: %s: %s", c.Field, c.Message))
	}
	return all
}

func answerOf(err error) string {
	out, _ := yaml.Marshal(err)
	return string(out)
}

func (r *run) accepted() {
	warnings, err := r.dryRun(func(warnings []string, err error) bool { return err == nil && r.warned(warnings) })
	require.NoError(r, err, "a dry run")
	require.True(r, r.warned(warnings), "a dry run warns\n%q\nand is expected to warn\n%q", warnings, r.c.Warnings)
	if r.c.Object.Object.GetName() == "" || r.c.AsOperator {
		// A name that is generated cannot be applied, and the operator never applies.
		require.NoError(r, r.sender().create(r.Context(), r.c.Object, false))
		return
	}
	_, err = r.admin.get(r.Context(), r.c.Object)
	require.True(r, apierrors.IsNotFound(err), "a dry run stores nothing: %v", err)
	r.holdsNothing()

	r.sender().takeWarnings()
	first, err := r.sender().apply(r.Context(), r.c.Object)
	require.NoError(r, err)
	warnings = r.sender().takeWarnings()
	assert.True(r, r.warned(warnings), "warns\n%q\nand is expected to warn\n%q", warnings, r.c.Warnings)

	again, err := r.sender().apply(r.Context(), r.c.Object)
	require.NoError(r, err)
	assert.Equal(r, first.Object, again.Object, "applying it again changes nothing")
	stored, err := r.admin.get(r.Context(), r.c.Object)
	require.NoError(r, err)
	assert.True(r, holds(stored.Object["spec"], r.c.Object.Object.Object["spec"]), "what was written is what is stored:\n%v", stored.Object["spec"])
}

// holds says whether everything written is in what is stored, beside defaults.
func holds(stored, written any) bool {
	switch written := written.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		for key := range written {
			ok = ok && holds(s[key], written[key])
		}
		return ok
	case []any:
		s, ok := stored.([]any)
		return ok && slices.EqualFunc(s, written, holds)
	}
	s, err := json.Marshal(stored) // a number is one, whatever its Go type
	w, err2 := json.Marshal(written)
	return err == nil && err2 == nil && bytes.Equal(s, w)
}

func (r *run) warned(warnings []string) bool {
	return slices.EqualFunc(r.c.Warnings, warnings, func(want manifests.Text, got string) bool { return want.Matches(got) })
}
