package validate

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
	return u
}

func TestThePatchIsThatOfKubectlApply(t *testing.T) {
	const stored = "apiVersion: autoscale.example.com/v1alpha1\nkind: AutoScaler\nmetadata: {name: web, uid: u, labels: {a: b}%s}\nspec: {dryRun: true, maxReplicas: 9, minReplicas: 2}\nstatus: {x: 1}\n"
	const wanted = "apiVersion: autoscale.example.com/v1alpha1\nkind: AutoScaler\nmetadata: {name: web, labels: {c: d}}\nspec: {maxReplicas: 5}\n"
	const lastApplied = `, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"apiVersion":"autoscale.example.com/v1alpha1","kind":"AutoScaler","metadata":{"name":"web","labels":{"a":"b"}},"spec":{"dryRun":true,"maxReplicas":9}}'}`
	for name, tc := range map[string]struct{ annotation, want string }{
		"what was applied is known":     {lastApplied, `{"metadata":{"labels":{"a":null,"c":"d"}},"spec":{"dryRun":null,"maxReplicas":5}}`},
		"what was applied is not known": {"", `{"metadata":{"labels":{"c":"d"}},"spec":{"dryRun":null,"maxReplicas":5,"minReplicas":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := applyPatch(decoded(t, fmt.Sprintf(stored, tc.annotation)), decoded(t, wanted))
			require.NoError(t, err)
			assert.JSONEq(t, tc.want, string(patch))
		})
	}
}

func TestUnknownFieldsOfTheServersAnswerAreParted(t *testing.T) {
	const said = `strict decoding error: unknown field "spec.a", unknown field "spec.metrics[0].b"`
	want := []Finding{{Field: "spec.a", Message: `unknown field "spec.a"`}, {Field: "spec.metrics[0].b", Message: `unknown field "spec.metrics[0].b"`}}
	whole := `{"spec":{"note":"strict decoding error: unknown field \"x\""}}`

	assert.Equal(t, want, causes(apierrors.NewBadRequest(`AutoScaler in version "v1alpha1" cannot be handled as a AutoScaler: `+said)))
	assert.Equal(t, want, causes(apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), whole, said)})))
	assert.Equal(t, []Finding{{Message: "cannot unmarshal"}}, causes(apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), `{"a":1}`, "cannot unmarshal")})))
}
