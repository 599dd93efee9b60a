package binding

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/expr"
)

// objectVariable is the variable of a targets expression: one object of the kind.
const objectVariable = "object"

// ManagerConfig registers a kind of namespaced objects that set replica counts of
// Deployments in their namespace.
type ManagerConfig struct {
	Group   string `yaml:"group"`
	Version string `yaml:"version"`
	// Resource is the plural name, as in URLs; Kind is for messages.
	Resource string `yaml:"resource"`
	Kind     string `yaml:"kind"`
	// Targets is a CEL expression over the variable "object", one object of the kind.
	// It gives a list of maps, one for each thing that the object scales, with string
	// values under the keys "kind", "name", and "apiVersion" or "group". Other kinds
	// than Deployments may be in the list. The version is not compared; "extensions"
	// and an empty group stand for apps. CEL wants the values of a map to be of one
	// type: beside "Deployment" a field is string(object.spec.name).
	Targets string `yaml:"targets"`
}

// +kubebuilder:rbac:groups=keda.sh,resources=scaledobjects,verbs=get;list;watch
// +kubebuilder:rbac:groups=datadoghq.com,resources=watermarkpodautoscalers,verbs=get;list;watch

// DefaultManagers are the kinds that are registered unless the configuration says
// otherwise.
//
// A ScaledObject that is paused by annotation still is a manager, as a paused
// AutoScaler keeps its claim: with a replica count in the annotation KEDA goes on
// writing that count, and without one it resumes as soon as the annotation goes. A
// WatermarkPodAutoscaler with dryRun is none, as an AutoScaler with dryRun takes no
// claim.
func DefaultManagers() []ManagerConfig {
	return []ManagerConfig{
		{
			Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects", Kind: "ScaledObject",
			// KEDA takes an absent kind, and an empty one, for Deployment.
			Targets: `[{"apiVersion": object.spec.scaleTargetRef.?apiVersion.orValue(""), ` +
				`"kind": object.spec.scaleTargetRef.?kind.orValue("") == "" ? "Deployment" : object.spec.scaleTargetRef.kind, ` +
				`"name": object.spec.scaleTargetRef.name}]`,
		},
		{
			Group: "datadoghq.com", Version: "v1alpha1", Resource: "watermarkpodautoscalers", Kind: "WatermarkPodAutoscaler",
			Targets: `object.spec.?dryRun.orValue(false) ? [] : ` +
				`[{"apiVersion": object.spec.scaleTargetRef.?apiVersion.orValue(""), ` +
				`"kind": object.spec.scaleTargetRef.kind, "name": object.spec.scaleTargetRef.name}]`,
		},
	}
}

// compileManagers checks the registered kinds and gives their expressions in order.
func compileManagers(configs []ManagerConfig) ([]*expr.Program, error) {
	var errs field.ErrorList
	programs := make([]*expr.Program, len(configs))
	seen := map[string]bool{}
	for i, c := range configs {
		path := field.NewPath("managers").Index(i)
		errs = append(errs, c.validate(path)...)
		if id := c.resource(); seen[id] {
			errs = append(errs, field.Duplicate(path.Child("resource"), id))
		} else {
			seen[id] = true
		}
		program, err := compileTargets(c.Targets)
		if err != nil {
			// Not field.Invalid: it would repeat the whole expression.
			errs = append(errs, &field.Error{Type: field.ErrorTypeInvalid, Field: path.Child("targets").String(), BadValue: field.OmitValueType{}, Detail: err.Error()})
		}
		programs[i] = program
	}
	return programs, errs.ToAggregate()
}

func compileTargets(source string) (*expr.Program, error) {
	program, err := expr.Compile(source, expr.List, objectVariable)
	switch {
	case err != nil:
		return nil, err
	case !program.Uses(objectVariable):
		return nil, errors.New(`it must tell the targets of one object, from the variable "object"`)
	}
	return program, nil
}

func (c *ManagerConfig) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name, value, example string
		check                func(string) []string
	}{
		{"group", c.Group, "keda.sh", validation.IsDNS1123Subdomain},
		{"version", c.Version, "v1alpha1", validation.IsDNS1035Label},
		{"resource", c.Resource, "scaledobjects: the plural name, in lower case", validation.IsDNS1035Label},
		{"kind", c.Kind, "ScaledObject", isKind},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(path.Child(f.name), "for example "+f.example))
			continue
		}
		for _, problem := range f.check(f.value) {
			errs = append(errs, field.Invalid(path.Child(f.name), f.value, problem))
		}
	}
	switch {
	case c.Group == v1alpha1.GroupVersion.Group:
		errs = append(errs, field.Forbidden(path.Child("group"), "ScaleBindings settle who of the AutoScalers writes; remove the entry"))
	case c.Group == "autoscaling" && c.Resource == "horizontalpodautoscalers":
		errs = append(errs, field.Forbidden(path.Child("resource"), "HorizontalPodAutoscalers are always looked for; remove the entry"))
	}
	return errs
}

func isKind(kind string) []string {
	for i, r := range kind {
		upper, lower, digit := r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9'
		if !upper && (i == 0 || !lower && !digit) {
			return []string{"must be a kind: letters and digits, an upper-case letter first"}
		}
	}
	return nil
}

// resource is the full name of the resource, as kubectl takes it.
func (c *ManagerConfig) resource() string { return c.Resource + "." + c.Group }
