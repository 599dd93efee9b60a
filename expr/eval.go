package expr

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Bounds of a result.
const (
	// MaxStringBytes is the longest string of a result. It is the API server's
	// bound of a message expression.
	MaxStringBytes = celconfig.MaxEvaluatedMessageExpressionSizeBytes
	// MaxValues is the number of values of a List, those inside other lists and
	// maps included.
	MaxValues = 1000
)

// Timeout bounds one evaluation beside its cost: the time that a unit of cost takes
// grows with the length of the lists that a loop goes over.
const Timeout = 3 * time.Second

// Eval evaluates the expression over its variables, which are values as JSON
// decodes them: nil, bool, int64, float64, string, []any, map[string]any. The
// result is a bool, a string or a []any of such values.
//
// The error says what went wrong and, where CEL knows it, at which line and
// column; it is meant to be read by whoever wrote the expression. It wraps the
// context's error if that ended the evaluation.
func (p *Program) Eval(ctx context.Context, vars map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the evaluation was stopped: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("it took longer than %s: %w", Timeout, context.DeadlineExceeded))
	defer cancel()
	value, _, err := p.program.ContextEval(ctx, vars)
	if err != nil {
		return nil, p.explain(ctx, err)
	}
	switch {
	case p.result == Bool && value.Type() == types.BoolType:
		return value.Value(), nil
	case p.result == String && value.Type() == types.StringType:
		return text(value)
	case p.result == List && value.Type() == types.ListType:
		count := 0
		return list(value, &count)
	}
	return nil, &TypeError{Want: p.result, Got: value.Type().TypeName()}
}

// TypeError says that an expression gave a result of another type than it must.
type TypeError struct {
	Want Result
	// Got is CEL's name of the type.
	Got string
}

// Error names both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("the expression must give a %s, but it gave a %s", e.Want, e.Got)
}

// explain makes CEL's error one that a person can act on.
func (p *Program) explain(ctx context.Context, err error) error {
	var canceled interpreter.EvalCancelledError
	if errors.As(err, &canceled) && canceled.Cause == interpreter.CostLimitExceeded {
		return fmt.Errorf("the evaluation was stopped because it costs more than the limit of %d units; make it go over fewer or smaller values", CostLimit)
	}
	if errors.Is(err, interpreter.InterruptError{}) {
		return fmt.Errorf("the evaluation was stopped: %w", context.Cause(ctx))
	}
	var failed *types.Err
	if errors.As(err, &failed) && !shared(failed) {
		if at := p.ast.SourceInfo().GetStartLocation(failed.NodeID()); at.Line() > 0 {
			return fmt.Errorf("at %d:%d: %w", at.Line(), at.Column()+1, err)
		}
	}
	return err
}

// shared says whether an error is one of those that cel-go keeps a single value
// of for all programs: the place it carries is that of whichever expression
// failed with it first.
func shared(err *types.Err) bool {
	return ref.Val(err) == types.NoSuchOverloadErr() || err.Error() == "timestamp overflow"
}

func text(value ref.Val) (string, error) {
	s, ok := value.Value().(string)
	switch {
	case !ok:
		return "", fmt.Errorf("the expression gave a string that holds a %T", value.Value())
	case len(s) > MaxStringBytes:
		return "", fmt.Errorf("the expression gave a string of %d bytes; at most %d are taken", len(s), MaxStringBytes)
	case !utf8.ValidString(s):
		return "", errors.New("the expression gave a string that is not valid UTF-8")
	}
	return s, nil
}

// list makes a CEL list a Go slice. It counts what it makes, so that a list of
// lists cannot grow past the bound either.
func list(value ref.Val, count *int) ([]any, error) {
	out := []any{}
	for it := value.(traits.Lister).Iterator(); it.HasNext() == types.True; {
		item, err := native(it.Next(), count)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

func object(value ref.Val, count *int) (map[string]any, error) {
	mapper := value.(traits.Mapper)
	out := map[string]any{}
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if key.Type() != types.StringType {
			return nil, fmt.Errorf("the expression gave a map with a key of type %s; keys must be strings", key.Type().TypeName())
		}
		name, err := text(key)
		if err != nil {
			return nil, err
		}
		if out[name], err = native(mapper.Get(key), count); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func native(value ref.Val, count *int) (any, error) {
	*count++
	if *count > MaxValues {
		return nil, fmt.Errorf("the expression gave more than %d values", MaxValues)
	}
	switch value.Type() {
	case types.NullType:
		return nil, nil
	case types.StringType:
		return text(value)
	case types.BoolType, types.IntType, types.UintType, types.DoubleType:
		return value.Value(), nil
	case types.ListType:
		return list(value, count)
	case types.MapType:
		return object(value, count)
	}
	return nil, fmt.Errorf("the expression gave a list with a %s; its values must be strings, numbers, bools, null, lists or maps", value.Type().TypeName())
}
