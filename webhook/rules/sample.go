package rules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/expr"
)

// try looks for the mistakes that compiling cannot find, since the variables have no
// types there: it holds the fields that every rule reads against an AutoScaler that
// has all of them, and evaluates the rule for a create and an update of it.
//
// What else fails for the sample, such as a label that it lacks, may be right for
// another object and is no mistake.
func (s *Set) try() []error {
	create := Input{
		Object:    sample("sample"),
		Namespace: &Namespace{Name: "default"},
		Request:   Request{Operation: "CREATE", Username: "sample", Groups: []string{"sample"}},
		Others:    []v1alpha1.AutoScaler{*sample("other")},
	}
	create.Others[0].Spec.DryRun = false
	update := create
	update.OldObject = sample("sample")
	update.Request.Operation = "UPDATE"
	var inputs []map[string]any
	for _, in := range []*Input{&update, &create} {
		e, err := s.evaluated(in)
		if err != nil {
			return []error{fmt.Errorf("the sample AutoScaler: %w", err)}
		}
		inputs = append(inputs, e.vars)
	}
	var errs []error
	for _, r := range s.rules {
		for setting, program := range r.programs() {
			if err := tryProgram(program, inputs); err != nil {
				errs = append(errs, fmt.Errorf("rules[%d] %q: %s: %w", r.index, r.Name, setting, err))
			}
		}
	}
	return errs
}

// programs gives the rule's expressions by their settings, in order.
func (r *rule) programs() func(yield func(string, *expr.Program) bool) {
	return func(yield func(string, *expr.Program) bool) {
		if yield("expression", r.allowed) && r.message != nil {
			yield("message_expression", r.message)
		}
	}
}

// tryProgram gives the first mistake of an expression. Of the inputs, the first has
// every variable.
func tryProgram(p *expr.Program, inputs []map[string]any) error {
	for _, variable := range variables {
		for _, read := range p.Reads(variable) {
			if err := exists(inputs[0], append([]string{variable}, read.Path...)); err != nil {
				return fmt.Errorf("at %d:%d: %w", read.Line, read.Column, err)
			}
		}
	}
	for _, vars := range inputs {
		var wrong *expr.TypeError
		_, err := p.Eval(context.Background(), vars) //nolint:forbidigo // at start nobody waits who could give up; Eval has its own bounds
		if errors.As(err, &wrong) {
			return wrong
		}
	}
	return nil
}

// exists gives an error where the last field of a path is none. Metadata and the
// parameters of a metric are open: which of their fields and keys are there differs
// from object to object.
func exists(value any, path []string) error {
	for i, step := range path {
		switch at := value.(type) {
		case []any:
			if step != expr.Element || len(at) == 0 {
				return nil // it is for a function, or for CEL, to say what is wrong
			}
			value = at[0]
		case map[string]any:
			if step == "metadata" || step == expr.Element || i > 0 && path[i-1] == "parameters" {
				return nil
			}
			next, ok := at[step]
			if !ok {
				return fmt.Errorf("%s has no field %q; it has %s", shown(path[:i]), step, strings.Join(slices.Sorted(maps.Keys(at)), ", "))
			}
			value = next
		default:
			return nil
		}
	}
	return nil
}

// shown writes a path as the expression might.
func shown(path []string) string {
	return strings.ReplaceAll(strings.Join(path, "."), "."+expr.Element, expr.Element)
}

// sample is an AutoScaler with every field of its spec set.
func sample(name string) *v1alpha1.AutoScaler {
	return &v1alpha1.AutoScaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1alpha1.AutoScalerSpec{
			TargetRef:   v1alpha1.TargetReference{Name: name},
			MinReplicas: 2, MaxReplicas: 20, PollIntervalSeconds: 15,
			Paused: true, PausedUntil: &metav1.Time{Time: time.Unix(0, 0)}, PauseReason: "sample",
			DryRun: true, ClaimPolicy: v1alpha1.ClaimReject,
			Metrics: []v1alpha1.MetricSpec{{
				Name: "load", Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: "sample",
				TargetPerReplica: "100", MaxAgeSeconds: 60,
				Parameters: map[string]string{"sample": "sample"}, Behavior: sampleBehavior(),
			}},
			Behavior: sampleBehavior(),
			Fallback: &v1alpha1.Fallback{FloorReplicas: 4, AfterSeconds: 300},
			Schedules: []v1alpha1.Schedule{{
				Name: "sample", Start: "0 8 * * 1-5", DurationSeconds: 3600, TimeZone: "Europe/Berlin",
				MinReplicas: new(int32(4)), MaxReplicas: new(int32(20)), Freeze: v1alpha1.FreezeScaleDown,
			}},
		},
	}
}

func sampleBehavior() *v1alpha1.Behavior {
	return &v1alpha1.Behavior{
		ScaleUpMaxStep: new(int32(4)), ScaleDownMaxStep: new(int32(2)),
		ScaleUpRate:                   &v1alpha1.ScaleRate{MaxReplicas: 10, PeriodSeconds: 60},
		ScaleUpStabilizationSeconds:   new(int32(30)),
		ScaleDownStabilizationSeconds: new(int32(300)), ScaleDownMinIntervalSeconds: new(int32(60)),
		ToleranceUp: "0.1", ToleranceDown: "0.1",
	}
}
