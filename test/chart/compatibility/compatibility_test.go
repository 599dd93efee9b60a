package compatibility

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, path string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict(data, crd))
	return crd
}

// The gate. Within a version a field may come, and a bound may be wider; what takes
// something away needs a new version of the API. docs/release.md says when the copies are
// made anew.
func TestFC44_TheCRDsBreakNothingOfTheLastRelease(t *testing.T) {
	released, err := filepath.Glob(filepath.Join("..", "testdata", "released-crds", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, released)
	for _, path := range released {
		old, now := read(t, path), read(t, filepath.Join("..", "..", "..", "config", "crd", filepath.Base(path)))

		assert.Empty(t, Broken(old, now), filepath.Base(path))
	}
}

// sample has one of everything that is compared.
const sample = `
spec:
  group: example.com
  names: {kind: Thing, plural: things, listKind: ThingList, shortNames: [th]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: self.min <= self.max
            properties:
              min: {type: integer, format: int32, minimum: 1, maximum: 10, nullable: true}
              max: {type: integer, default: 3}
              name: {type: string, minLength: 1, maxLength: 10, pattern: '^a'}
              policy: {type: string, enum: [A, B]}
              list: {type: array, minItems: 1, maxItems: 3, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}}
              map: {type: object, maxProperties: 3, additionalProperties: {type: string, maxLength: 5}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func parse(t *testing.T) (crd *apiextensionsv1.CustomResourceDefinition, spec *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	crd = &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(sample), crd))
	properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	s := properties["spec"]
	return crd, &s
}

func TestWhatBreaks(t *testing.T) {
	type props = apiextensionsv1.JSONSchemaProps
	field := func(name string, change func(*props)) func(*apiextensionsv1.CustomResourceDefinition, *props) {
		return func(_ *apiextensionsv1.CustomResourceDefinition, spec *props) {
			p := spec.Properties[name]
			change(&p)
			spec.Properties[name] = p
		}
	}
	crd := func(change func(*apiextensionsv1.CustomResourceDefinition)) func(*apiextensionsv1.CustomResourceDefinition, *props) {
		return func(c *apiextensionsv1.CustomResourceDefinition, _ *props) { change(c) }
	}
	spec := func(change func(*props)) func(*apiextensionsv1.CustomResourceDefinition, *props) {
		return func(_ *apiextensionsv1.CustomResourceDefinition, s *props) { change(s) }
	}
	for name, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition, *props)
		want   string
	}{
		"another scope":             {crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Scope = "Cluster" }), "spec.scope: it was Namespaced and is Cluster"},
		"another plural":            {crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.Plural = "thingses" }), "spec.names.plural: it was things and is thingses"},
		"a short name that is gone": {crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Names.ShortNames = nil }), "spec.names.shortNames: th is gone"},
		"a version that is gone":    {crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Name = "v2" }), "v1: the version is gone; objects may be stored in it"},
		"a version that is not served": {
			crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Served = false }), "v1: the version is not served any more",
		},
		"a status that is none": {
			crd(func(c *apiextensionsv1.CustomResourceDefinition) { c.Spec.Versions[0].Subresources = nil }), "v1: its status is no subresource any more",
		},
		"a field that is gone":       {spec(func(s *props) { delete(s.Properties, "max") }), "v1.spec.max: the field is gone"},
		"a field that is required":   {spec(func(s *props) { s.Required = []string{"max"} }), "v1.spec.max: it is required now"},
		"a rule more":                {spec(func(s *props) { s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: "false"}) }), "v1.spec: there is a rule more: false"},
		"another type":               {field("max", func(p *props) { p.Type = "string" }), "v1.spec.max type: it was integer and is string"},
		"another format":             {field("min", func(p *props) { p.Format = "int64" }), "v1.spec.min format: it was int32 and is int64"},
		"another default":            {field("max", func(p *props) { p.Default = &apiextensionsv1.JSON{Raw: []byte("4")} }), "v1.spec.max default: "},
		"a pattern":                  {field("policy", func(p *props) { p.Pattern = "A" }), "v1.spec.policy pattern: it was  and is A"},
		"a higher minimum":           {field("min", func(p *props) { p.Minimum = new(2.0) }), "v1.spec.min: minimum was 1 and is 2"},
		"a lower maximum":            {field("min", func(p *props) { p.Maximum = new(9.0) }), "v1.spec.min: maximum was 10 and is 9"},
		"a maximum":                  {field("max", func(p *props) { p.Maximum = new(9.0) }), "v1.spec.max: maximum was not set and is 9"},
		"a shorter text":             {field("name", func(p *props) { p.MaxLength = new(int64(9)) }), "v1.spec.name: maxLength was 10 and is 9"},
		"a longer text":              {field("name", func(p *props) { p.MinLength = new(int64(2)) }), "v1.spec.name: minLength was 1 and is 2"},
		"a shorter list":             {field("list", func(p *props) { p.MaxItems = new(int64(2)) }), "v1.spec.list: maxItems was 3 and is 2"},
		"a smaller map":              {field("map", func(p *props) { p.MaxProperties = new(int64(2)) }), "v1.spec.map: maxProperties was 3 and is 2"},
		"an exclusive bound":         {field("min", func(p *props) { p.ExclusiveMinimum = true }), "v1.spec.min: its bounds exclude more"},
		"null is refused":            {field("min", func(p *props) { p.Nullable = false }), "v1.spec.min: it may not be null any more"},
		"a value that is gone":       {field("policy", func(p *props) { p.Enum = p.Enum[1:] }), `v1.spec.policy: the value "A" is gone`},
		"values where all were free": {field("name", func(p *props) { p.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"a"`)}} }), "v1.spec.name: only some values are allowed now"},
		"another kind of list":       {field("list", func(p *props) { p.XListType = new("atomic") }), "v1.spec.list list type: it was set and is atomic"},
		"an item of another type":    {field("list", func(p *props) { p.Items.Schema.Type = "integer" }), "v1.spec.list[] type: it was string and is integer"},
		"a value of another length":  {field("map", func(p *props) { p.AdditionalProperties.Schema.MaxLength = new(int64(4)) }), "v1.spec.map{}: maxLength was 5 and is 4"},
		"a map that is none":         {field("map", func(p *props) { p.AdditionalProperties = nil }), "v1.spec.map{}: it is no map any more"},
		"a list that is none":        {field("list", func(p *props) { p.Items = nil }), "v1.spec.list[]: it is no list any more"},
		"unknown fields are dropped": {field("free", func(p *props) { p.XPreserveUnknownFields = nil }), "v1.spec.free: unknown fields are dropped now"},
	} {
		t.Run(name, func(t *testing.T) {
			old, _ := parse(t)
			now, s := parse(t)
			tc.change(now, s)
			now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = *s

			found := Broken(old, now)

			require.Len(t, found, 1)
			assert.Contains(t, found[0], tc.want)
		})
	}
}

func TestWhatBreaksNothing(t *testing.T) {
	old, _ := parse(t)
	now, spec := parse(t)
	spec.Properties["new"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	spec.XValidations = nil
	minimum := spec.Properties["min"]
	minimum.Minimum, minimum.Maximum, minimum.Description = new(0.0), nil, "another text"
	spec.Properties["min"] = minimum
	policy := spec.Properties["policy"]
	policy.Enum = append(policy.Enum, apiextensionsv1.JSON{Raw: []byte(`"C"`)})
	spec.Properties["policy"] = policy
	now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = *spec
	now.Spec.Versions[0].Storage = false
	now.Spec.Versions = append(now.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: "v2", Served: true, Storage: true})

	assert.Empty(t, Broken(old, now))
}
