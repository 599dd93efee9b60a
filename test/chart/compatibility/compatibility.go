// Package compatibility tells what a new version of a CRD takes away from those who use the
// old one: their stored objects, their manifests, their clients.
package compatibility

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Broken lists what of the old CRD the new one breaks, each with its place. What is new is
// fine as long as nobody must know it.
func Broken(old, now *apiextensionsv1.CustomResourceDefinition) []string {
	var r report
	r.same("spec.group", old.Spec.Group, now.Spec.Group)
	r.same("spec.scope", old.Spec.Scope, now.Spec.Scope)
	r.same("spec.names.kind", old.Spec.Names.Kind, now.Spec.Names.Kind)
	r.same("spec.names.plural", old.Spec.Names.Plural, now.Spec.Names.Plural)
	r.same("spec.names.listKind", old.Spec.Names.ListKind, now.Spec.Names.ListKind)
	for _, name := range old.Spec.Names.ShortNames {
		if !slices.Contains(now.Spec.Names.ShortNames, name) {
			r.add("spec.names.shortNames", "%s is gone", name)
		}
	}
	for i := range old.Spec.Versions {
		r.version(&old.Spec.Versions[i], now)
	}
	return r.found
}

type report struct{ found []string }

func (r *report) add(path, format string, args ...any) {
	r.found = append(r.found, path+": "+fmt.Sprintf(format, args...))
}

func (r *report) same(path string, old, now any) {
	if !reflect.DeepEqual(old, now) {
		r.add(path, "it was %v and is %v", show(old), show(now))
	}
}

// show prints what pointers point at.
func show(v any) any {
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer {
		if p.IsNil() {
			return "not set"
		}
		return p.Elem().Interface()
	}
	return v
}

func (r *report) version(old *apiextensionsv1.CustomResourceDefinitionVersion, crd *apiextensionsv1.CustomResourceDefinition) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == old.Name })
	if i < 0 {
		r.add(old.Name, "the version is gone; objects may be stored in it")
		return
	}
	now := &crd.Spec.Versions[i]
	if old.Served && !now.Served {
		r.add(old.Name, "the version is not served any more")
	}
	if old.Subresources != nil {
		if now.Subresources == nil || old.Subresources.Status != nil && now.Subresources.Status == nil {
			r.add(old.Name, "its status is no subresource any more")
		}
		if now.Subresources != nil {
			r.same(old.Name+" scale", old.Subresources.Scale, now.Subresources.Scale)
		}
	}
	r.schema(old.Name, old.Schema.OpenAPIV3Schema, now.Schema.OpenAPIV3Schema)
}

// schema compares what is allowed at a place, and below.
func (r *report) schema(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	r.same(path+" type", old.Type, now.Type)
	r.same(path+" format", old.Format, now.Format)
	r.same(path+" pattern", old.Pattern, now.Pattern)
	r.same(path+" default", old.Default, now.Default)
	r.same(path+" int-or-string", old.XIntOrString, now.XIntOrString)
	r.same(path+" list type", old.XListType, now.XListType)
	r.same(path+" list keys", old.XListMapKeys, now.XListMapKeys)
	r.same(path+" map type", old.XMapType, now.XMapType)
	if old.Nullable && !now.Nullable {
		r.add(path, "it may not be null any more")
	}
	if old.XPreserveUnknownFields != nil && *old.XPreserveUnknownFields && (now.XPreserveUnknownFields == nil || !*now.XPreserveUnknownFields) {
		r.add(path, "unknown fields are dropped now")
	}
	r.bounds(path, old, now)
	r.enum(path, old.Enum, now.Enum)
	r.rules(path, old.XValidations, now.XValidations)
	for _, name := range now.Required {
		if !slices.Contains(old.Required, name) {
			r.add(path+"."+name, "it is required now")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		was := old.Properties[name]
		is, ok := now.Properties[name]
		if !ok {
			r.add(path+"."+name, "the field is gone")
			continue
		}
		r.schema(path+"."+name, &was, &is)
	}
	r.items(path, old, now)
}

func (r *report) items(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	if old.Items != nil && old.Items.Schema != nil {
		if now.Items == nil || now.Items.Schema == nil {
			r.add(path+"[]", "it is no list any more")
		} else {
			r.schema(path+"[]", old.Items.Schema, now.Items.Schema)
		}
	}
	if old.AdditionalProperties != nil && old.AdditionalProperties.Schema != nil {
		if now.AdditionalProperties == nil || now.AdditionalProperties.Schema == nil {
			r.add(path+"{}", "it is no map any more")
		} else {
			r.schema(path+"{}", old.AdditionalProperties.Schema, now.AdditionalProperties.Schema)
		}
	}
}

// bounds may be wider, and may be gone.
func (r *report) bounds(path string, old, now *apiextensionsv1.JSONSchemaProps) {
	for _, b := range []struct {
		name     string
		old, now *float64
		lower    bool
	}{
		{"minimum", old.Minimum, now.Minimum, true},
		{"maximum", old.Maximum, now.Maximum, false},
		{"minLength", number(old.MinLength), number(now.MinLength), true},
		{"maxLength", number(old.MaxLength), number(now.MaxLength), false},
		{"minItems", number(old.MinItems), number(now.MinItems), true},
		{"maxItems", number(old.MaxItems), number(now.MaxItems), false},
		{"minProperties", number(old.MinProperties), number(now.MinProperties), true},
		{"maxProperties", number(old.MaxProperties), number(now.MaxProperties), false},
	} {
		if b.now == nil {
			continue
		}
		if b.old == nil || b.lower && *b.now > *b.old || !b.lower && *b.now < *b.old {
			r.add(path, "%s was %v and is %v", b.name, show(b.old), show(b.now))
		}
	}
	if now.ExclusiveMinimum && !old.ExclusiveMinimum || now.ExclusiveMaximum && !old.ExclusiveMaximum || now.UniqueItems && !old.UniqueItems {
		r.add(path, "its bounds exclude more")
	}
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

func (r *report) enum(path string, old, now []apiextensionsv1.JSON) {
	if len(now) == 0 {
		return
	}
	if len(old) == 0 {
		r.add(path, "only some values are allowed now")
	}
	for _, value := range old {
		if !slices.ContainsFunc(now, func(v apiextensionsv1.JSON) bool { return bytes.Equal(v.Raw, value.Raw) }) {
			r.add(path, "the value %s is gone", value.Raw)
		}
	}
}

// rules may go. A new one refuses something, whatever it says.
func (r *report) rules(path string, old, now apiextensionsv1.ValidationRules) {
	for i := range now {
		if !slices.ContainsFunc(old, func(rule apiextensionsv1.ValidationRule) bool { return rule.Rule == now[i].Rule }) {
			r.add(path, "there is a rule more: %s", now[i].Rule)
		}
	}
}
