package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// answering is a client whose creates are answered by these errors, in turn; the last one
// stays.
func answering(t *testing.T, answers ...error) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			assert.Equal(t, "shop", obj.GetNamespace())
			answer := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return answer
		},
	}).Build()
}

func TestAdmissionIsTriedUntilTheWebhookRefuses(t *testing.T) {
	kind := v1alpha1.GroupVersion.WithKind("AutoScaler").GroupKind()
	invalid := func(path string) error {
		return apierrors.NewInvalid(kind, "helm-test", field.ErrorList{field.Invalid(field.NewPath(path), "x", "there is no such MetricProfile")})
	}
	refused := invalid("spec.metrics[0].metricProfileRef")
	down := apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	for name, tc := range map[string]struct {
		answers []error
		want    string // none: it works
	}{
		"the webhook refuses":                {[]error{refused}, ""},
		"it refuses when it has come up":     {[]error{down, down, refused}, ""},
		"it refuses when the kind is served": {[]error{apierrors.NewNotFound(schema.GroupResource{}, "autoscalers"), refused}, ""},
		"it never answers":                   {[]error{down}, "the webhook did not answer: Internal error occurred: failed calling webhook"},
		"nobody asks it":                     {[]error{nil}, "was admitted to namespace shop: nobody asks the webhook"},
		"somebody else refuses":              {[]error{invalid("spec.minReplicas")}, "the webhook did not answer"},
		"the account may not create AutoScalers": {
			[]error{apierrors.NewForbidden(schema.GroupResource{Resource: "autoscalers"}, "helm-test", errors.New("no"))}, "this account may not try it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder

			err := tryUntilRefused(t.Context(), answering(t, tc.answers...), "shop", time.Millisecond, 200*time.Millisecond, &out)

			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				assert.Empty(t, out.String())
				return
			}
			require.NoError(t, err)
			assert.Contains(t, out.String(), "admission works")
			assert.Contains(t, out.String(), "there is no such MetricProfile")
		})
	}
}

func TestTheEndOfTheTimeIsNoAnswerWhereThereWasOne(t *testing.T) {
	down := apierrors.NewInternalError(errors.New(`failed calling webhook: no endpoints available for service "autoscale-operator-webhook"`))
	for name, tc := range map[string]struct {
		answered int // tries, before one that has no answer
		want     string
	}{
		"an answer, then none": {1, "the webhook did not answer: Internal error occurred: failed calling webhook: no endpoints available"},
		"never an answer":      {0, "the webhook did not answer: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			c := fake.NewClientBuilder().WithScheme(newScheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
					tries++
					if tries <= tc.answered {
						return down
					}
					<-ctx.Done()
					return ctx.Err()
				},
			}).Build()

			err := tryUntilRefused(t.Context(), c, "shop", time.Millisecond, 200*time.Millisecond, io.Discard)

			require.ErrorContains(t, err, tc.want)
			assert.Equal(t, tc.answered+1, tries)
		})
	}
}
