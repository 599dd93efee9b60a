package rules

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/expr"
)

// Action is what happens where a rule is violated.
type Action string

// Actions.
const (
	// Deny refuses the AutoScaler.
	Deny Action = "Deny"
	// Warn admits it and tells the requester.
	Warn Action = "Warn"
)

// Bounds of a configuration.
const (
	maxRules        = 50
	maxMessageBytes = 1024
	defaultField    = "spec"
)

// fieldPath is what the API server prints as the path of a field.
var fieldPath = regexp.MustCompile(`^(spec|metadata)(\.[a-zA-Z][a-zA-Z0-9]*|\[[a-zA-Z0-9./_-]+\])*$`)

// Config is one rule as an administrator writes it.
type Config struct {
	// Name is a DNS label, unique among the rules. Every message carries it.
	Name string `yaml:"name"`
	// Action is Deny or Warn.
	Action Action `yaml:"action"`
	// Expression is true for what is allowed.
	Expression string `yaml:"expression"`
	// Message says what is wrong and what to do. One of it and MessageExpression
	// is needed; with both, Message is what is said if the expression fails.
	Message string `yaml:"message"`
	// MessageExpression gives the message as a string.
	MessageExpression string `yaml:"message_expression"`
	// Field is the path that the error names, as "spec.maxReplicas". Default: spec.
	Field string `yaml:"field"`
}

type rule struct {
	Config
	index int // in the configuration

	allowed *expr.Program
	message *expr.Program // nil without a MessageExpression
}

// New compiles and checks all rules; defaults are the platform's for AutoScalers. The
// error tells every mistake: the rule, the setting and, in an expression, the place.
// A field that no AutoScaler has is a mistake, and so is a result that is no bool (in
// a message_expression no string) for an AutoScaler that has every field set.
func New(configs []Config, defaults v1alpha1.Defaults) (*Set, error) {
	if len(configs) > maxRules {
		return nil, fmt.Errorf("there are %d rules; at most %d are evaluated", len(configs), maxRules)
	}
	var errs []error
	set := &Set{defaults: defaults, memory: newMemory(), timeout: Timeout}
	seen := map[string]int{}
	for i, c := range configs {
		compiled, err := compile(i, c)
		if first, ok := seen[c.Name]; ok && c.Name != "" {
			err = errors.Join(fmt.Errorf("name: rules[%d] has this name too", first), err)
		} else {
			seen[c.Name] = i
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("rules[%d] %q: %w", i, c.Name, err))
			continue
		}
		set.rules = append(set.rules, compiled)
	}
	if len(errs) == 0 {
		errs = set.try()
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return set, nil
}

func compile(index int, c Config) (*rule, error) {
	var errs []error
	report := func(setting string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", setting, err))
		}
	}
	if c.Field == "" {
		c.Field = defaultField
	}
	report("name", checkName(c.Name))
	report("action", checkAction(c.Action))
	report("field", checkField(c.Field))
	report("message", checkMessage(c))
	r := &rule{Config: c, index: index}
	var err error
	r.allowed, err = expr.Compile(c.Expression, expr.Bool, variables...)
	report("expression", err)
	if c.MessageExpression != "" {
		r.message, err = expr.Compile(c.MessageExpression, expr.String, variables...)
		report("message_expression", err)
	}
	return r, errors.Join(errs...)
}

var variables = []string{VariableObject, VariableOldObject, VariableNamespace, VariableRequest, VariableOthers}

func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func checkAction(action Action) error {
	if action != Deny && action != Warn {
		return fmt.Errorf("is %q; it must be %s or %s", action, Deny, Warn)
	}
	return nil
}

func checkField(path string) error {
	if !fieldPath.MatchString(path) {
		return fmt.Errorf("is %q; it must be a path below spec or metadata, as spec.maxReplicas", path)
	}
	return nil
}

func checkMessage(c Config) error {
	switch {
	case strings.TrimSpace(c.Message) == "" && c.MessageExpression == "":
		return errors.New("give a message or a message_expression that says what to do")
	case len(c.Message) > maxMessageBytes:
		return fmt.Errorf("has %d bytes; at most %d are told", len(c.Message), maxMessageBytes)
	}
	return nil
}

func (r *rule) uses(variable string) bool {
	return r.allowed.Uses(variable) || r.message != nil && r.message.Uses(variable)
}

// check gives the message of a violated rule.
func (r *rule) check(ctx context.Context, vars map[string]any) (string, bool) {
	allowed, err := r.allowed.Eval(ctx, vars)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("platform rule %q was not evaluated in time, so it does not allow this: all rules together have %s; try again, and if this lasts, its administrator must make the rules cheaper", r.Name, Timeout), true
	case errors.Is(err, context.Canceled):
		return fmt.Sprintf("platform rule %q was not evaluated, so it does not allow this: the request was given up before; try again", r.Name), true
	case err != nil:
		return fmt.Sprintf("platform rule %q could not be evaluated, so it does not allow this (its administrator must repair it): %v", r.Name, err), true
	}
	if allowed.(bool) {
		return "", false
	}
	return fmt.Sprintf("platform rule %q: %s", r.Name, r.explain(ctx, vars)), true
}

func (r *rule) explain(ctx context.Context, vars map[string]any) string {
	if r.message == nil {
		return strings.TrimSpace(r.Message)
	}
	message, err := r.message.Eval(ctx, vars)
	if err == nil {
		if text := strings.Join(strings.Fields(message.(string)), " "); text != "" {
			return text
		}
		err = errors.New("it gave an empty string")
	}
	if r.Message != "" {
		return strings.TrimSpace(r.Message)
	}
	return fmt.Sprintf("does not allow this (its message_expression failed: %v)", err)
}

// untouched says whether an update leaves everything as it is that the rule reads
// of the object.
func (r *rule) untouched(vars map[string]any) bool {
	if r.allowed.Uses(VariableOldObject) || r.allowed.Uses(VariableRequest) {
		return false
	}
	for _, path := range r.allowed.Paths(VariableObject) {
		if !reflect.DeepEqual(at(vars[VariableObject], path), at(vars[VariableOldObject], path)) {
			return false
		}
	}
	return true
}

// at gives what stands at a path, or nil.
func at(value any, path []string) any {
	for _, key := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return value
		}
		value = fields[key]
	}
	return value
}
