package expr_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/expr"
)

func compile(t *testing.T, source string, result expr.Result) *expr.Program {
	t.Helper()
	program, err := expr.Compile(source, result, "object", "other")
	require.NoError(t, err)
	return program
}

func scaledObject(name any) map[string]any {
	return map[string]any{"object": map[string]any{
		"spec":   map[string]any{"scaleTargetRef": map[string]any{"name": name}, "max": int64(12), "ratio": 0.5},
		"labels": map[string]any{"team": "a"},
		"list":   []any{"x", int64(1), 1.5, true, nil, []any{"y"}, map[string]any{"k": "v"}},
	}, "other": nil}
}

func TestAResultIsANativeGoValue(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		result expr.Result
		want   any
	}{
		"a bool":                            {"object.spec.max > 10", expr.Bool, true},
		"a number compares with a fraction": {"object.spec.max > 11.5 && object.spec.ratio < 1", expr.Bool, true},
		"an absent field is absent":         {"has(object.status)", expr.Bool, false},
		"null is null":                      {"other == null", expr.Bool, true},
		"a string of a dynamic value":       {"object.spec.scaleTargetRef.name", expr.String, "web"},
		"a string that is put together":     {"'max is ' + string(object.spec.max)", expr.String, "max is 12"},
		"a list of strings":                 {"[object.spec.scaleTargetRef.name]", expr.List, []any{"web"}},
		"an empty list":                     {"[]", expr.List, []any{}},
		"a dynamic list with every kind":    {"object.list", expr.List, []any{"x", int64(1), 1.5, true, nil, []any{"y"}, map[string]any{"k": "v"}}},
		"a list of maps":                    {"[{'name': object.spec.scaleTargetRef.name}]", expr.List, []any{map[string]any{"name": "web"}}},
		"an optional field with a default":  {"object.?status.?phase.orValue('none')", expr.String, "none"},
		"the API server's libraries":        {"quantity('1k').isGreaterThan(quantity('999')) && 'abc'.find('b') == 'b' && [1, 2].sum() == 3", expr.Bool, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := compile(t, tc.source, tc.result).Eval(t.Context(), scaledObject("web"))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAMistakeIsToldWithItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		result expr.Result
		want   []string
	}{
		"nothing":                     {" \n", expr.Bool, []string{"empty"}},
		"an unknown variable":         {"object.a == objct.b", expr.Bool, []string{"at 1:13", "objct", "\n | object.a == objct.b\n | ............^"}},
		"a place on a later line":     {"true &&\n  nope", expr.Bool, []string{"at 2:3", "nope"}},
		"two mistakes":                {"foo && bar", expr.Bool, []string{"at 1:1", "foo", "at 1:8", "bar"}},
		"half an expression":          {"object.spec ==", expr.Bool, []string{"at 1:15", "yntax error"}},
		"an unknown function":         {"object.frobnicate()", expr.Bool, []string{"at 1:18", "frobnicate"}},
		"another type":                {"'yes'", expr.Bool, []string{"must give a bool", "gives a string"}},
		"a list where a string is":    {"['a']", expr.String, []string{"must give a string", "list(string)"}},
		"an optional":                 {"object.?spec", expr.Bool, []string{"must give a bool", "optional_type(dyn)"}},
		"operands that do not fit":    {"1 + 'a' == 2", expr.Bool, []string{"at 1:3", "no matching overload"}},
		"a bad regular expression":    {"'a'.matches('(')", expr.Bool, []string{"at 1:13", "invalid matches argument"}},
		"a literal that is no time":   {"timestamp('soon') > timestamp('later')", expr.Bool, []string{"at 1:11", "invalid timestamp"}},
		"no type of a result":         {"true", 0, []string{"Result(0)"}},
		"bytes that are no UTF-8":     {"'\xff' == ''", expr.Bool, []string{"not valid UTF-8"}},
		"too long":                    {"true" + strings.Repeat(" ", expr.MaxSourceBytes), expr.Bool, []string{"16388 bytes", "at most 16384"}},
		"nested too deep":             {strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), expr.Bool, []string{"recursion limit"}},
		"lists nested too deep":       {strings.Repeat("[", 2000) + strings.Repeat("]", 2000), expr.List, []string{"recursion limit"}},
		"a long line is not repeated": {"object.a == '" + strings.Repeat("x", 1000) + "' && nope", expr.Bool, []string{"at 1:1019", "nope"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := expr.Compile(tc.source, tc.result, "object")
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Less(t, len(err.Error()), 2000)
			assert.NotContains(t, err.Error(), "<input>")
		})
	}
}

func TestManyMistakesAreToldInPart(t *testing.T) {
	_, err := expr.Compile("a && b && c && d && e && f && g", expr.Bool)
	require.Error(t, err)
	assert.ErrorContains(t, err, "and 2 more")
}

func TestAnEvaluationThatFailsSaysWhereAndWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		result expr.Result
		want   string
	}{
		"an absent field":        {"true &&\n object.spec.min > 1", expr.Bool, "at 2:13: no such key: min"},
		"an index out of bounds": {"object.list[99] == 1", expr.Bool, "at 1:12: index out of bounds: 99"},
		"a division by zero":     {"1 / (object.spec.max - 12) == 0", expr.Bool, "at 1:3: division by zero"},
		"a value of another type": {"object.spec", expr.Bool,
			"the expression must give a bool, but it gave a map"},
		"a number where a string is":      {"object.spec.max", expr.String, "must give a string, but it gave a int"},
		"null where a list is":            {"other", expr.List, "must give a list, but it gave a null_type"},
		"a list with a duration":          {"[duration('1s')]", expr.List, "a list with a google.protobuf.Duration"},
		"a map with a key of another ilk": {"[{1: 'a'}]", expr.List, "key of type int"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, tc.source, tc.result).Eval(t.Context(), scaledObject("web"))
			require.Error(t, err)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// cel-go keeps one value of some errors for the whole process and stamps it with
// the place of its first use.
func TestAPlaceIsNeverThatOfAnotherExpression(t *testing.T) {
	first := compile(t, "object.spec.max.matches('a+')", expr.Bool)
	second := compile(t, "true && true && object.spec.max.matches('b+')", expr.Bool)
	for range 2 {
		for _, program := range []*expr.Program{first, second} {
			_, err := program.Eval(t.Context(), scaledObject("web"))
			assert.EqualError(t, err, "no such overload")
		}
	}
}

func TestAVariableThatIsNotGivenIsAnError(t *testing.T) {
	_, err := compile(t, "object.a == 1", expr.Bool).Eval(t.Context(), map[string]any{})
	require.Error(t, err)
	assert.ErrorContains(t, err, "object")
}

func TestAnEvaluationIsBoundedInCost(t *testing.T) {
	long := make([]any, 2000)
	for i := range long {
		long[i] = int64(i)
	}
	vars := map[string]any{"object": long, "other": strings.Repeat("a", 300_000)}
	for name, source := range map[string]string{
		"a text that grows": "[1, 2, 3, 4, 5, 6, 7].map(x, other + other).map(x, x + x + x).all(x, !x.contains('ab'))",
		"a long expression": "!other.matches('" + strings.Repeat("b", 400) + "')",
		"a text in a loop":  "object.all(i, !other.contains('ab'))",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, source, expr.Bool).Eval(t.Context(), vars)
			require.Error(t, err)
			assert.ErrorContains(t, err, "costs more than the limit of 1000000 units")
		})
	}
}

func TestAHugeListCanBeGoneOver(t *testing.T) {
	list := make([]any, 10_000)
	for i := range list {
		list[i] = map[string]any{"max": int64(2)}
	}
	vars := map[string]any{"object": list}
	// It is the cost that bounds this, not the speed of a busy machine: no time passes.
	synctest.Test(t, func(t *testing.T) {
		got, err := compile(t, "object.map(o, o.max).sum() == 20000", expr.Bool).Eval(t.Context(), vars)
		require.NoError(t, err)
		assert.Equal(t, true, got)
	})
}

func TestAResultIsBounded(t *testing.T) {
	vars := map[string]any{
		"object": make([]any, expr.MaxValues+1),
		"other":  strings.Repeat("a", expr.MaxStringBytes+1),
	}
	for name, tc := range map[string]struct {
		source string
		result expr.Result
		want   string
	}{
		"a long string":           {"other", expr.String, "5121 bytes; at most 5120"},
		"a long string in a list": {"[other]", expr.List, "5121 bytes; at most 5120"},
		"a long key":              {"[{other: 1}]", expr.List, "5121 bytes; at most 5120"},
		"a long list":             {"object", expr.List, "more than 1000 values"},
		"a list in a list":        {"[[object]]", expr.List, "more than 1000 values"},
		"a map in a list":         {"[{'a': object}]", expr.List, "more than 1000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, tc.source, tc.result).Eval(t.Context(), vars)
			require.Error(t, err)
			assert.ErrorContains(t, err, tc.want)
		})
	}
	_, err := compile(t, "other", expr.String).Eval(t.Context(), map[string]any{"other": "a\xffb"})
	assert.ErrorContains(t, err, "not valid UTF-8")
}

func TestADeepValueIsNoDanger(t *testing.T) {
	var deep any = "end"
	for range 100_000 {
		deep = []any{deep}
	}
	_, err := compile(t, "object", expr.List).Eval(t.Context(), map[string]any{"object": deep})
	require.Error(t, err)
	assert.ErrorContains(t, err, "more than 1000 values")
}

func TestNothingIsEvaluatedInACanceledContext(t *testing.T) {
	program := compile(t, "object.all(a, object.all(b, a + b >= 0))", expr.Bool)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := program.Eval(canceled, map[string]any{"object": []any{int64(1)}})
	assert.ErrorIs(t, err, context.Canceled)
}

// late is a context that is canceled just after it was asked for the first time.
type late struct {
	context.Context
	asked atomic.Bool
}

func (c *late) Err() error {
	if !c.asked.Swap(true) {
		return nil
	}
	return c.Context.Err()
}

func TestACanceledContextEndsARunningEvaluation(t *testing.T) {
	list := make([]any, 100_000)
	for i := range list {
		list[i] = int64(i)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	ctx := &late{Context: canceled}
	_, err := compile(t, "object.all(a, object.all(b, a + b >= 0))", expr.Bool).Eval(ctx, map[string]any{"object": list})
	assert.ErrorIs(t, err, context.Canceled)
	assert.True(t, ctx.asked.Load())
}

// The cost of a loop does not grow with the time that its steps take.
func TestALongLoopEndsByItself(t *testing.T) {
	list := make([]any, 400_000)
	for i := range list {
		list[i] = int64(i)
	}
	program := compile(t, "object.exists(x, x < 0)", expr.Bool)

	_, err := program.Eval(t.Context(), map[string]any{"object": list, "other": nil})

	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "it took longer than 3s")
}

func TestUsesNamesTheVariablesThatAreRead(t *testing.T) {
	program := compile(t, "object.spec.other == 1", expr.Bool)
	assert.True(t, program.Uses("object"))
	assert.False(t, program.Uses("other"), "a field of that name is no use of the variable")
	assert.True(t, compile(t, "[1].all(x, has(other.a))", expr.Bool).Uses("other"))
	assert.False(t, compile(t, "'other' == 'object'", expr.Bool).Uses("other"))
}

func TestPathsAreWhatIsReadOfAVariable(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   [][]string
	}{
		"nothing":                          {"other == 1", nil},
		"a field":                          {"object.spec.max > 1", [][]string{{"spec", "max"}}},
		"a field twice is one":             {"object.spec.max > 1 && object.spec.max < 9", [][]string{{"spec", "max"}}},
		"a presence test":                  {"has(object.spec.max)", [][]string{{"spec", "max"}}},
		"an optional field":                {"object.?spec.?max.orValue(1) == 1", [][]string{{"spec", "max"}}},
		"a field of an optional one":       {"object.?spec.max.orValue(1) == 1", [][]string{{"spec", "max"}}},
		"a key":                            {"object.labels['a/b'] == 'x'", [][]string{{"labels", "a/b"}}},
		"an optional key":                  {"object.?labels[?'a/b'].orValue('') == 'x'", [][]string{{"labels", "a/b"}}},
		"the list that is gone over":       {"object.list.all(x, x.max > 1)", [][]string{{"list"}}},
		"the list whose element is picked": {"object.list[0].max > 1", [][]string{{"list"}}},
		"the map whose key is computed":    {"object.labels[object.key] == ''", [][]string{{"key"}, {"labels"}}},
		"the map that a key is looked for": {"'a' in object.labels", [][]string{{"labels"}}},
		"a key that it is":                 {"other[object.key] == ''", [][]string{{"key"}}},
		"the whole":                        {"object == other", [][]string{{}}},
		"a variable of a macro":            {"other.all(object, object.max > 1)", [][]string{{"max"}}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, compile(t, tc.source, expr.Bool).Paths("object"))
		})
	}
}

func TestAProgramIsSafeForConcurrentUse(t *testing.T) {
	program := compile(t, "object.spec.scaleTargetRef.name", expr.String)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				got, err := program.Eval(t.Context(), scaledObject(fmt.Sprint(i)))
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint(i), got)
			}
		})
	}
	wg.Wait()
}

func TestWhatIsNotChangedByAnExpressionComesBackAsItWas(t *testing.T) {
	program := compile(t, "object", expr.List)
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.StringN(-1, 20, 80).AsAny(),
	)
	item := rapid.OneOf(scalar, rapid.SliceOfN(scalar, 0, 4).AsAny(), rapid.MapOfN(rapid.StringN(-1, 8, 32), scalar, 0, 4).AsAny())
	rapid.Check(t, func(r *rapid.T) {
		in := rapid.SliceOfN(item, 0, 20).Draw(r, "in")
		out, err := program.Eval(t.Context(), map[string]any{"object": in})
		require.NoError(r, err)
		assert.Equal(r, in, out)
	})
}

func FuzzNeitherCompilingNorEvaluatingPanics(f *testing.F) {
	for _, seed := range []string{"object.a == 1", "[object.a]", "object.list.map(x, x)", "{'a': [1]}.a", "'\\u00e9'.reverse()", "object[?'a'].orValue(b'')", "timestamp('2026-01-01T00:00:00Z').getHours()"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		for _, result := range []expr.Result{expr.Bool, expr.String, expr.List} {
			program, err := expr.Compile(source, result, "object", "other")
			if err != nil {
				continue
			}
			got, err := program.Eval(t.Context(), scaledObject("web"))
			if err != nil {
				assert.NotContains(t, err.Error(), "internal error", source)
				continue
			}
			switch result {
			case expr.Bool:
				assert.IsType(t, false, got)
			case expr.String:
				assert.IsType(t, "", got)
			case expr.List:
				assert.IsType(t, []any{}, got)
			}
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := expr.Compile("object.spec.max > 10 && other == null", expr.Bool, "object", "other"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvalOfATarget(b *testing.B) {
	program, err := expr.Compile("object.spec.scaleTargetRef.name", expr.String, "object")
	if err != nil {
		b.Fatal(err)
	}
	vars := scaledObject("web")
	for b.Loop() {
		if _, err := program.Eval(b.Context(), vars); err != nil {
			b.Fatal(err)
		}
	}
}
