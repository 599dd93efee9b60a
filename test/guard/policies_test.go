//go:build integration

package guard

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/guard/policies"
)

// guardWith puts the guard in force with other settings until the end of the test.
func (w *world) guardWith(change func(*policies.Values)) {
	w.Helper()
	w.Cleanup(func() { w.replaceGuard(context.Background(), func(*policies.Values) {}) })
	w.replaceGuard(w.Context(), change)
}

func (w *world) replaceGuard(ctx context.Context, change func(*policies.Values)) {
	w.Helper()
	values, err := policies.Defaults(root)
	require.NoError(w, err)
	change(values)
	rendered, err := policies.Render(root, values, policies.MutatingAdmissionPolicies)
	require.NoError(w, err)
	w.replacePolicies(ctx, decode(w, rendered))
}

// replacePolicies puts these in force, in place of the guard's.
func (w *world) replacePolicies(ctx context.Context, objects []*unstructured.Unstructured) {
	w.Helper()
	wanted := map[string]bool{}
	for _, o := range objects {
		wanted[o.GetKind()+o.GetName()] = true
	}
	admin := w.admin()
	for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"} {
		for _, suffix := range []string{"Binding", ""} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("admissionregistration.k8s.io/v1")
			list.SetKind(kind + suffix + "List")
			require.NoError(w, admin.List(ctx, list, client.MatchingLabels{"app.kubernetes.io/component": "guard"}))
			for i := range list.Items {
				if o := &list.Items[i]; !wanted[o.GetKind()+o.GetName()] {
					require.NoError(w, admin.Delete(ctx, o))
				}
			}
		}
	}
	require.NoError(w, install.ApplyPolicies(ctx, w.cp.Config, objects))
}

func decode(t require.TestingT, manifests []byte) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
