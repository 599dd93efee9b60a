package crd

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const autoscalers = "autoscalers.autoscale.example.com"

func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all, err := Definitions()
	require.NoError(t, err)
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, d := range all {
		byName[d.Name] = d
	}
	require.Len(t, byName, 4)
	return byName
}

// schemaOf a field of the first version, by names that stand within each other.
func schemaOf(d *apiextensionsv1.CustomResourceDefinition, path ...string) *apiextensionsv1.JSONSchemaProps {
	schema := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range path {
		if name == "[]" {
			schema = schema.Items.Schema
			continue
		}
		inner := schema.Properties[name]
		schema = &inner
	}
	return schema
}

func TestFC44WhatAnOlderDefinitionLacksIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		older func(*apiextensionsv1.CustomResourceDefinition)
		want  []string
	}{
		"the same": {func(*apiextensionsv1.CustomResourceDefinition) {}, nil},
		"a field of the status": {
			func(d *apiextensionsv1.CustomResourceDefinition) { delete(schemaOf(d, "status").Properties, "memory") },
			[]string{"status.memory"},
		},
		"a field of each metric, and one of the spec": {
			func(d *apiextensionsv1.CustomResourceDefinition) {
				delete(schemaOf(d, "spec", "metrics", "[]").Properties, "maxAgeSeconds")
				delete(schemaOf(d, "spec").Properties, "claimPolicy")
			},
			[]string{"spec.claimPolicy", "spec.metrics[].maxAgeSeconds"},
		},
		"a value of an enumeration": {
			func(d *apiextensionsv1.CustomResourceDefinition) {
				spec := schemaOf(d, "spec")
				policy := spec.Properties["claimPolicy"]
				policy.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"Reject"`)}}
				spec.Properties["claimPolicy"] = policy
			},
			[]string{`spec.claimPolicy="Wait"`},
		},
		"the version": {
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Name = "v1alpha0" },
			[]string{"version v1alpha1"},
		},
		"the version, which is not served": {
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false },
			[]string{"version v1alpha1"},
		},
		"the status subresource": {
			func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Subresources = nil },
			[]string{"the status subresource of v1alpha1"},
		},
		"nothing, where unknown fields are kept": {
			func(d *apiextensionsv1.CustomResourceDefinition) {
				schema := d.Spec.Versions[0].Schema.OpenAPIV3Schema
				schema.Properties, schema.XPreserveUnknownFields = nil, new(true)
			},
			nil,
		},
		"nothing, where it is newer": {
			func(d *apiextensionsv1.CustomResourceDefinition) {
				schemaOf(d, "spec").Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
				later := d.Spec.Versions[0]
				later.Name = "v1beta1"
				d.Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{later}, d.Spec.Versions...)
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			known := definitions(t)[autoscalers]
			served := known.DeepCopy()
			tc.older(served)
			assert.Equal(t, tc.want, Lacking(served, known))
		})
	}
}

// cluster has the definitions, changed.
func cluster(t *testing.T, change func(map[string]*apiextensionsv1.CustomResourceDefinition)) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	all := definitions(t)
	change(all)
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, d := range all {
		builder.WithObjects(d)
	}
	return builder.Build()
}

func TestFC44AnOutdatedClusterIsSaidInOneLine(t *testing.T) {
	assert.NoError(t, Check(t.Context(), cluster(t, func(map[string]*apiextensionsv1.CustomResourceDefinition) {})))

	err := Check(t.Context(), cluster(t, func(all map[string]*apiextensionsv1.CustomResourceDefinition) {
		delete(all, "scaleguards.autoscale.example.com")
		spec := schemaOf(all[autoscalers], "spec")
		for _, name := range []string{"behavior", "claimPolicy", "dryRun", "fallback", "paused"} {
			delete(spec.Properties, name)
		}
	}))
	var outdated *OutdatedError
	require.ErrorAs(t, err, &outdated)
	assert.EqualError(t, err, "CRD autoscalers.autoscale.example.com is older than this operator: it lacks spec.behavior, spec.claimPolicy, spec.dryRun and 2 more; "+
		"CRD scaleguards.autoscale.example.com is missing; bring the CRDs up to date before the operator: "+
		"helm upgrade with crds.enabled=true, or kubectl apply --server-side --force-conflicts -f config/crd of this version")
}

func TestAClusterThatDoesNotAnswerIsNotOutdated(t *testing.T) {
	down := interceptor.NewClient(cluster(t, func(map[string]*apiextensionsv1.CustomResourceDefinition) {}), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
	err := Check(t.Context(), down)
	var outdated *OutdatedError
	assert.NotErrorAs(t, err, &outdated)
	assert.ErrorContains(t, err, "looking at CRD autoscalers.autoscale.example.com: connection refused")
}

func TestTheDefinitionsAreThoseOfTheAPI(t *testing.T) {
	all := definitions(t)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	assert.Equal(t, []string{autoscalers, "metricprofiles.autoscale.example.com", "scalebindings.autoscale.example.com", "scaleguards.autoscale.example.com"}, names)
}
