package crd

import (
	"bytes"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Lacking names what a served definition does not have of a known one, in order:
// versions, the status subresource, fields, and values of enumerations. Bounds and
// rules that differ are not compared: with those of another version an object may be
// refused, but nothing is lost.
func Lacking(served, known *apiextensionsv1.CustomResourceDefinition) []string {
	var lacking []string
	for i := range known.Spec.Versions {
		want := &known.Spec.Versions[i]
		at := slices.IndexFunc(served.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == want.Name && v.Served
		})
		if at < 0 {
			lacking = append(lacking, "version "+want.Name)
			continue
		}
		have := &served.Spec.Versions[at]
		if statusOf(want) && !statusOf(have) {
			lacking = append(lacking, "the status subresource of "+want.Name)
		}
		if want.Schema != nil && have.Schema != nil {
			lacking = append(lacking, lackingOf("", have.Schema.OpenAPIV3Schema, want.Schema.OpenAPIV3Schema)...)
		}
	}
	return lacking
}

func statusOf(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}

// lackingOf walks a schema; path is the field that it describes.
func lackingOf(path string, served, known *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case known == nil:
		return nil
	case served == nil:
		return []string{path}
	case served.XPreserveUnknownFields != nil && *served.XPreserveUnknownFields:
		return nil
	}
	var lacking []string
	for _, name := range slices.Sorted(maps.Keys(known.Properties)) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		want := known.Properties[name]
		have, found := served.Properties[name]
		if !found {
			lacking = append(lacking, field)
			continue
		}
		lacking = append(lacking, lackingOf(field, &have, &want)...)
	}
	for _, value := range known.Enum {
		if len(served.Enum) > 0 && !slices.ContainsFunc(served.Enum, func(v apiextensionsv1.JSON) bool { return bytes.Equal(v.Raw, value.Raw) }) {
			lacking = append(lacking, path+"="+string(value.Raw))
		}
	}
	if known.Items != nil {
		var have *apiextensionsv1.JSONSchemaProps
		if served.Items != nil {
			have = served.Items.Schema
		}
		lacking = append(lacking, lackingOf(path+"[]", have, known.Items.Schema)...)
	}
	if known.AdditionalProperties != nil {
		var have *apiextensionsv1.JSONSchemaProps
		if served.AdditionalProperties != nil {
			have = served.AdditionalProperties.Schema
		}
		lacking = append(lacking, lackingOf(path+".*", have, known.AdditionalProperties.Schema)...)
	}
	return lacking
}
