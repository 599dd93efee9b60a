package validate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"example.com/platform/autoscale-operator/config/crd"
)

// kinds are the operator's own, as an API server serves them from the definitions of this
// version.
type kinds map[schema.GroupVersionKind]*kind

// kind does what an API server does with an object of it, by the API server's own
// packages and in its order.
type kind struct {
	schema.GroupVersionKind
	namespaced, hasStatus bool
	structural            *structuralschema.Structural
	values                apiservervalidation.SchemaValidator
	rules                 *cel.Validator
}

// loadKinds reads and compiles them once.
var loadKinds = sync.OnceValues(func() (kinds, error) {
	definitions, err := crd.Definitions()
	if err != nil {
		return nil, err
	}
	all := kinds{}
	for _, d := range definitions {
		for i := range d.Spec.Versions {
			if !d.Spec.Versions[i].Served {
				continue
			}
			k, err := newKind(d, &d.Spec.Versions[i])
			if err != nil {
				return nil, fmt.Errorf("CRD %s: %w", d.Name, err)
			}
			all[k.GroupVersionKind] = k
		}
	}
	return all, nil
})

func newKind(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*kind, error) {
	var internal apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, &internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	values, _, err := apiservervalidation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &kind{
		GroupVersionKind: schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind},
		namespaced:       d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		hasStatus:        v.Subresources != nil && v.Subresources.Status != nil,
		structural:       structural, values: values,
		rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// complete fills in the schema's defaults.
func (k *kind) complete(u *unstructured.Unstructured) { defaulting.Default(u.Object, k.structural) }

// decode takes away what the schema does not know, and names it. The error is of
// metadata that are none.
func (k *kind) decode(u *unstructured.Unstructured) (unknown []string, err error) {
	k.complete(u)
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(u.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(u.Object, k.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, k.structural)
	invalid, more := objectmeta.CoerceWithOptions(nil, u.Object, k.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return nil, invalid
	}
	u.SetGroupVersionKind(k.GroupVersionKind)
	if found {
		err = objectmeta.SetObjectMeta(u.Object, meta)
	}
	return append(unknown, more...), err
}

// create prepares a new object: what only the API server and the operator set is not the
// requester's to give.
func (k *kind) create(u *unstructured.Unstructured) {
	if k.hasStatus {
		delete(u.Object, "status")
	}
	if !k.namespaced {
		u.SetNamespace("")
	}
	u.SetGeneration(1)
}

// validate gives the errors of the schema and of its rules.
func (k *kind) validate(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	var meta metav1.ObjectMeta
	if written, ok := u.Object["metadata"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(written, &meta); err != nil {
			return field.ErrorList{field.Invalid(field.NewPath("metadata"), field.OmitValueType{}, err.Error())}
		}
	}
	errs := metavalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, &meta, nil, k.namespaced, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"), true)
	errs = append(errs, apiservervalidation.ValidateCustomResource(nil, u.Object, k.values)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, k.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, u.Object)...)
	if k.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.InternalError(nil, errUnchecked))
		}
	}
	more, _ := k.rules.Validate(ctx, nil, k.structural, u.Object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, more...)
}

// errUnchecked says that there may be more to find. The API server says it, too.
var errUnchecked = errors.New("some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
