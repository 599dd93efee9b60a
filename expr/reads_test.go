package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/expr"
)

func TestReadsFollowFieldsIntoTheElementsOfLists(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   []string
	}{
		"nothing":                           {"other.a == 1", nil},
		"the whole":                         {"object == other", nil},
		"a field, and what it is in":        {"object.a.b > 1", []string{"1:7 a", "1:9 a.b"}},
		"a presence test":                   {"has(object.a.b)", []string{"1:4 a.b", "1:11 a"}},
		"an optional field":                 {"object.?a.orValue(1) == 1", []string{"1:7 a"}},
		"a key":                             {"object['a'] == 1", []string{"1:7 a"}},
		"a key that is computed":            {"object[other] == 1", nil},
		"an element by its number":          {"object.a[0].b == 1", []string{"1:7 a", "1:12 a[].b"}},
		"the elements of a loop":            {"object.a.all(x, x.b > 1)", []string{"1:7 a", "1:18 a[].b"}},
		"the elements of the variable":      {"object.map(x, x.b) == []", []string{"1:16 [].b"}},
		"a loop in a loop":                  {"object.a.all(x, x.b.all(y, y.c > x.d))", []string{"1:7 a", "1:18 a[].b", "1:29 a[].b[].c", "1:35 a[].d"}},
		"a loop with the index":             {"object.a.all(i, x, x.b > i)", []string{"1:7 a", "1:21 a[].b"}},
		"a loop whose variable hides it":    {"other.all(object, object.a > 1)", nil},
		"a loop that hides a loop's":        {"object.a.all(x, other.all(x, x.b > 1))", []string{"1:7 a"}},
		"what a function gave is left out":  {"object.a.map(x, {'k': x}).all(y, y.k == 1)", []string{"1:7 a"}},
		"a variable within what it goes on": {"other.all(x, object.a.all(x, x.b == 1))", []string{"1:20 a", "1:31 a[].b"}},
		"on another line":                   {"true &&\n object.a == 1", []string{"2:8 a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, read := range compile(t, tc.source, expr.Bool).Reads("object") {
				path := strings.TrimPrefix(strings.ReplaceAll("."+strings.Join(read.Path, "."), ".[]", "[]"), ".")
				got = append(got, fmt.Sprintf("%d:%d %s", read.Line, read.Column, path))
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAResultOfAnotherTypeIsToldApartFromOtherErrors(t *testing.T) {
	_, err := compile(t, "object.a", expr.Bool).Eval(t.Context(), map[string]any{"object": map[string]any{"a": "yes"}})
	var wrong *expr.TypeError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, expr.TypeError{Want: expr.Bool, Got: "string"}, *wrong)

	_, err = compile(t, "object.a", expr.Bool).Eval(t.Context(), map[string]any{"object": map[string]any{}})
	require.Error(t, err)
	assert.NotErrorAs(t, err, &wrong)
}
