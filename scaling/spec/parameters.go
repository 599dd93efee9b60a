package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// CheckParameters holds the parameters of metric i of an AutoScaler to what its
// profile declares: each is declared and has one of the values, or matches the
// pattern, and none without a default is left out.
func CheckParameters(a *v1alpha1.AutoScaler, i int, p *v1alpha1.MetricProfile) field.ErrorList {
	given := a.Spec.Metrics[i].Parameters
	path := field.NewPath("spec", "metrics").Index(i).Child("parameters")
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(p.Spec.Parameters, func(d v1alpha1.ProfileParameter) bool { return d.Name == name }) {
			errs = append(errs, refusal(path.Key(name), name, undeclared(p)))
		}
	}
	for j := range p.Spec.Parameters {
		declared := &p.Spec.Parameters[j]
		value, ok := given[declared.Name]
		switch {
		case ok:
			if says := disallowed(declared, value); says != "" {
				errs = append(errs, refusal(path.Key(declared.Name), value, says))
			}
		case declared.Default == "":
			errs = append(errs, field.Required(path.Key(declared.Name), fmt.Sprintf("MetricProfile %q asks for it and has no default; %s", p.Name, allowed(declared))))
		}
	}
	return errs
}

// refusal quotes at most what a valid value can hold.
func refusal(path *field.Path, value, says string) *field.Error {
	if len(value) > v1alpha1.MaxParameterValueLength {
		return field.TooLong(path, "", v1alpha1.MaxParameterValueLength)
	}
	return field.Invalid(path, value, says)
}

func undeclared(p *v1alpha1.MetricProfile) string {
	if len(p.Spec.Parameters) == 0 {
		return fmt.Sprintf("MetricProfile %q declares no parameters; leave it out", p.Name)
	}
	names := make([]string, len(p.Spec.Parameters))
	for i := range p.Spec.Parameters {
		names[i] = p.Spec.Parameters[i].Name
	}
	return fmt.Sprintf("MetricProfile %q declares %s", p.Name, strings.Join(names, ", "))
}

// disallowed says why a parameter may not have a value, nothing if it may. A pattern
// that cannot be read, which the profile's own validation refuses, matches nothing.
func disallowed(p *v1alpha1.ProfileParameter, value string) string {
	if p.Pattern == "" {
		if slices.Contains(p.Values, v1alpha1.ParameterValue(value)) {
			return ""
		}
		return allowed(p)
	}
	pattern, err := wholly(p.Pattern)
	if err == nil && value != "" && pattern.MatchString(value) {
		return ""
	}
	return allowed(p)
}

func allowed(p *v1alpha1.ProfileParameter) string {
	if p.Pattern != "" {
		return "the whole value must match " + p.Pattern
	}
	values := make([]string, len(p.Values))
	for i, v := range p.Values {
		values[i] = string(v)
	}
	return "it must be one of " + strings.Join(values, ", ")
}

// wholly compiles a pattern for the whole value. It must be a pattern by itself:
// "a)|(b" would otherwise match what only begins or ends so.
func wholly(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// parameterValues are those of the AutoScaler and, where it gives none, the defaults.
func parameterValues(m *v1alpha1.MetricSpec, p *v1alpha1.MetricProfile) map[string]string {
	if len(p.Spec.Parameters) == 0 {
		return nil
	}
	values := make(map[string]string, len(p.Spec.Parameters))
	for i := range p.Spec.Parameters {
		declared := &p.Spec.Parameters[i]
		values[declared.Name] = string(declared.Default)
		if given, ok := m.Parameters[declared.Name]; ok {
			values[declared.Name] = given
		}
	}
	return values
}
