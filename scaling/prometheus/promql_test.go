package prometheus

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// texts gives what CheckQuery says, without the prefix that all of it has.
func texts(t require.TestingT, errs []error) []string {
	var all []string
	for _, err := range errs {
		text, ok := strings.CutPrefix(err.Error(), "query: ")
		require.True(t, ok, "%v", err)
		all = append(all, text)
	}
	return all
}

func TestQueriesThatGiveANumberAreAccepted(t *testing.T) {
	for name, query := range map[string]string{
		"the usual one":                        `sum(rate(http_requests_total{namespace=$namespace,deployment=$target}[1m]))`,
		"no series at all":                     `vector(1)`,
		"a scalar":                             `scalar(sum(up))`,
		"a number":                             `1e3`,
		"the time":                             `time()`,
		"a range of exactly the limit":         `sum(rate(up[1h]))`,
		"range and offset within the limit":    `sum(rate(up[30m] offset 30m))`,
		"a subquery within the limit":          `max_over_time(sum(rate(up[30m]))[30m:1m])`,
		"the evaluation's own time":            `sum(rate(up[5m] @ end()))`,
		"an experimental function":             `sum(info(up))`,
		"a fill modifier":                      `sum(a + fill(0) b)`,
		"fallbacks":                            `sum(up) or vector(0)`,
		"a quoted metric name":                 `sum({"http.requests", namespace=$namespace})`,
		"placeholders as ordinary strings":     `sum(label_replace(up, "a", $target, "", ""))`,
		"comments and lines":                   "sum( # it's $target\n  up\n)",
		"a range in milliseconds":              `sum(rate(up[500ms]))`,
		"a range without a unit":               `sum(rate(up[300]))`,
		"an aggregation with a parameter":      `sum(topk(3, up))`,
		"repetitions in a regular expression":  `sum(up{pod=~"web-[a-z0-9]{5,10}"})`,
		"what looks like a repetition of zero": `sum(up{pod=~"x{0}"})`,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, CheckQuery(query, QueryLimits{MaxRange: time.Hour}))
		})
	}
}

func TestQueriesThatPrometheusWouldRefuseAreRefusedWithTheirPosition(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"a template's own fault":        {`up{a="$target"}`, []string{"position 6: placeholder $target stands inside a string; drop the quotes, as in label=$target: the value is quoted when it is put in"}},
		"empty":                         {"", []string{"is empty"}},
		"an open parenthesis":           {`sum(up)) `, []string{`position 9: unexpected right parenthesis ')'`}},
		"a wrong type":                  {`sum(rate(up))`, []string{`position 10: expected type range vector in call to function "rate", got instant vector`}},
		"an unknown function":           {`sum(rat(up[1m]))`, []string{`position 5: unknown function with name "rat"`}},
		"two wrong types, both of them": {`rate(a) + rate(b)`, []string{`position 6: expected type range vector in call to function "rate", got instant vector`, `position 16: expected type range vector in call to function "rate", got instant vector`}},
		"a fault after placeholders":    {`up{a=$namespace,b=$target,}}`, []string{`position 28: unexpected character: '}'`}},
		"a placeholder where none fits": {`sum(up) $namespace`, []string{"position 9: unexpected string $namespace"}},
		"a name out of place":           {`sum(up) $target`, []string{"position 9: unexpected string $target"}},
		"a fault on a later line":       {"sum(\n  rate(up[5m])\n  +)", []string{`position 24 (line 3, column 4): unexpected ")" in aggregation`, `position 1: no arguments for aggregate expression provided`}},
		"a bad regular expression":      {`up{a=~"("}`, []string{"position 4: error parsing regexp: missing closing ): `(`"}},
		"no matcher that selects":       {`{a=""}`, []string{"position 1: vector selector must contain at least one non-empty matcher"}},
		"an offset in the wrong place":  {`sum(up) offset 5m`, []string{"position 1: offset modifier must be preceded by an instant vector selector or range vector selector or a subquery"}},
		"a dotted name":                 {`a.b`, []string{`position 2: unexpected character: '.'`}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, texts(t, CheckQuery(tc.query, QueryLimits{MaxRange: time.Hour})))
		})
	}
}

func TestResultsThatAreNoNumberAreRefused(t *testing.T) {
	for query, want := range map[string]string{
		`up[5m]`:              "the result is a range of samples, not one number; put a function around it, such as rate() or max_over_time()",
		`(rate(up[5m])[5m:])`: "the result is a range of samples",
		`"web"`:               "the result is a string, not a number",
		`$namespace`:          "the result is a string, not a number",
	} {
		got := texts(t, CheckQuery(query, QueryLimits{}))
		require.Len(t, got, 1, query)
		assert.Contains(t, got[0], want, query)
	}
}

func TestWhatASelectorLooksBackIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"a range": {`sum(rate(up{a=$target}[61m]))`, []string{
			"position 10: selector up{a=$target}[61m] looks back 3660 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"an offset":             {`sum(up offset 2h)`, []string{"position 5: selector up offset 2h looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"an offset and a range": {`sum(rate(up[1h] offset 1ms))`, []string{"position 10: selector up[1h] offset 1ms looks back 3600.001 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a subquery around a range, and its offset": {`max_over_time(rate(up[30m])[20m:1m] offset 20m)`, []string{
			"position 20: selector up[30m] looks back 4200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"subqueries in subqueries": {`max_over_time(max_over_time(up[31m:])[30m:])`, []string{
			"position 29: selector up looks back 3660 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"the evaluation's own time within a subquery": {`max_over_time(rate(up[40m] @ end())[40m:])`, []string{
			"position 20: selector up[40m] @ end() looks back 4800 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a look ahead": {`sum(up offset -5m)`, []string{"position 5: up offset -5m has a negative offset and looks into the future, where there are no samples; leave the offset out, or write offset 5m for the past"}},
		"a look ahead, which makes no room": {`sum(rate(up[2h] offset -1h))`, []string{
			"position 10: up[2h] offset -1h has a negative offset and looks into the future, where there are no samples; leave the offset out, or write offset 5m for the past",
			"position 10: selector up[2h] offset -1h looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a subquery's look ahead": {`max_over_time(up[5m:1m] offset -1m)`, []string{"position 15: up[5m:1m] offset -1m has a negative offset and looks into the future, where there are no samples; leave the offset out, or write offset 5m for the past"}},
		"every selector that does": {`sum(rate(a[2h])) + sum(rate(b[5m])) + sum(rate(c[3h]))`, []string{
			"position 10: selector a[2h] looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s",
			"position 48: selector c[3h] looks back 10800 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"sums beyond 292 years": {`max_over_time(max_over_time(up[290y:1y])[290y:1y])`, []string{
			"position 29: selector up looks back 18290880000 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a fixed time":                {`sum(up @ 1700000000)`, []string{"position 5: up @ 1700000000 is fixed to one time by @, so it never shows the load now; use offset"}},
		"a fixed time of a subquery":  {`max_over_time(up[5m:1m] @ 0)`, []string{"position 15: up[5m:1m] @ 0 is fixed to one time by @, so it never shows the load now; use offset"}},
		"a computed range":            {`rate(up[5m * 2])`, []string{"position 6: up[5m * 2] has a computed duration; write it out, as in [5m] or offset 1h"}},
		"a range of the query's step": {`rate(up[step()])`, []string{"position 6: up[step()] has a computed duration; write it out, as in [5m] or offset 1h"}},
		"a computed offset":           {`sum(up offset range())`, []string{"position 5: up offset range() has a computed duration; write it out, as in [5m] or offset 1h"}},
		"a computed step":             {`max_over_time(up[5m:step()])`, []string{"position 15: up[5m:step()] has a computed duration; write it out, as in [5m] or offset 1h"}},
		"an offset that is no number": {`sum(up offset NaN)`, []string{"position 5: up offset NaN has a range or offset that is no usable duration"}},
		"a range that rounds to none": {`rate(up[1e-20])`, []string{"position 6: up[1e-20] has a range or offset that is no usable duration"}},
		"a range past time's end":     {`rate(up[9223372036.854775807])`, []string{"position 6: up[9223372036.854775807] has a range or offset that is no usable duration"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, texts(t, CheckQuery(tc.query, QueryLimits{MaxRange: time.Hour})))
		})
	}
	assert.Empty(t, CheckQuery(`sum(rate(up[52w]))`, QueryLimits{}), "0 is no limit")
}

func TestFC10_EverySelectorMustCarryTheNamespaceWhereThatIsRequired(t *testing.T) {
	const lacks = " lacks namespace=$namespace, which requireNamespaceMatcher asks of every selector"
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"carried":                       {`sum(rate(up{namespace=$namespace}[5m]))`, nil},
		"carried beside others":         {`sum(up{namespace!="x", namespace=$namespace, a=~".*"})`, nil},
		"carried under a quoted name":   {`sum(up{"namespace"=$namespace})`, nil},
		"carried in a subquery":         {`max_over_time(sum(up{namespace=$namespace})[5m:])`, nil},
		"nothing is selected":           {`vector(1)`, nil},
		"absent":                        {`sum(up)`, []string{"position 5: selector up" + lacks}},
		"absent in one of two":          {`sum(up{namespace=$namespace}) / sum(rate(down[1m]))`, []string{"position 42: selector down[1m]" + lacks}},
		"absent in both":                {`a + b`, []string{"position 1: selector a" + lacks, "position 5: selector b" + lacks}},
		"a literal":                     {`sum(up{namespace="production"})`, []string{`position 5: selector up{namespace="production"}` + lacks}},
		"a literal of the sample value": {`sum(up{namespace="$namespace "})`, []string{"position 18: placeholder $namespace stands inside a string; drop the quotes, as in label=$namespace: the value is quoted when it is put in"}},
		"a regular expression":          {`sum(up{namespace=~".*"})`, []string{`position 5: selector up{namespace=~".*"}` + lacks}},
		"an inequality":                 {`sum(up{namespace!=$namespace})`, []string{"position 5: selector up{namespace!=$namespace}" + lacks}},
		"another label":                 {`sum(up{exported_namespace=$namespace})`, []string{"position 5: selector up{exported_namespace=$namespace}" + lacks}},
		"another placeholder":           {`sum(up{namespace=$target})`, []string{"position 5: selector up{namespace=$target}" + lacks}},
		"a label of the result only":    {`sum(label_replace(up, "namespace", $namespace, "", ""))`, []string{"position 19: selector up" + lacks}},
		"the labels that info() adds":   {`sum(info(up{namespace=$namespace}, {version="1"}))`, []string{`position 36: selector {version="1"}` + lacks}},
		"beside too long a look back":   {`rate(up[2h])`, []string{"position 6: selector up[2h] looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s", "position 6: selector up[2h]" + lacks}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, texts(t, CheckQuery(tc.query, QueryLimits{MaxRange: time.Hour, RequireNamespaceMatcher: true})))
		})
	}
}

func TestTheNamespaceIsKnownByItsPlaceholderAndNotByAValue(t *testing.T) {
	for _, literal := range []string{`"$0"`, `'$1'`, "`$2`", `"\x240"`, `"$3"`, `"$4"`, `"production"`, `$target`, `$shard`} {
		// Whatever value stands for the placeholder, neither the strings nor the other
		// placeholders have it too.
		query := `sum(a{namespace=` + literal + `}) + sum(b{w="$0",x="$1",y="$2",z=$shard,namespace=$namespace}) + sum(c)`
		got := texts(t, CheckQuery(query, QueryLimits{RequireNamespaceMatcher: true, Parameters: []string{"shard"}}))
		require.Len(t, got, 2, literal)
		assert.Equal(t, "position 5: selector a{namespace="+literal+"} lacks namespace=$namespace, which requireNamespaceMatcher asks of every selector", got[0])
		assert.Contains(t, got[1], "selector c lacks", literal)
	}
	got := texts(t, CheckQuery(`sum("$0") + $namespace`, QueryLimits{}))
	require.NotEmpty(t, got)
	assert.NotContains(t, strings.Join(got, " "), "$1", "the value is shown to nobody")
}

func TestFaultsAreFoundInTheTemplateWhateverLengthItsPlaceholdersHave(t *testing.T) {
	limits := QueryLimits{MaxRange: time.Hour, Parameters: []string{"a", "a_parameter_with_a_very_long_name_indeed"}}
	for name, tc := range map[string]struct {
		query string
		want  []string
	}{
		"after a short one":   {`sum(up{x=$a}) + down[2h]`, []string{`position 17: binary expression must contain only scalar and instant vector types`}},
		"a selector after it": {`sum(up{x=$a}) + sum(rate(down[2h]))`, []string{"position 26: selector down[2h] looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a selector with one": {`sum(rate(up{x=$a}[2h]))`, []string{"position 10: selector up{x=$a}[2h] looks back 7200 s in all, range, offset and subqueries together; maxRangeSeconds allows 3600 s"}},
		"a long one": {`sum(rate(up{x=$a_parameter_with_a_very_long_name_indeed,y=$a}[2h])) + b[1m`, []string{
			`position 75: unclosed left bracket`}},
		"in place of a name": {`sum(up) $a_parameter_with_a_very_long_name_indeed`, []string{"position 9: unexpected string $a_parameter_with_a_very_long_name_indeed"}},
		"the short one":      {`sum(up) $a`, []string{"position 9: unexpected string $a"}},
		"a line further on":  {"sum(up{x=$a,\n  y=$a_parameter_with_a_very_long_name_indeed,\n  z=}\n)", []string{`position 65 (line 3, column 5): unexpected "}" in label matching, expected string`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := texts(t, CheckQuery(tc.query, limits))
			require.Len(t, got, len(tc.want), "%v", got)
			for i := range got {
				assert.Contains(t, got[i], tc.want[i])
			}
		})
	}
}

func TestAParameterIsAPlaceholderOnlyWhereItIsDeclared(t *testing.T) {
	assert.Empty(t, CheckQuery(`sum(up{queue=$queue})`, QueryLimits{Parameters: []string{"queue"}}))
	got := texts(t, CheckQuery(`sum(up{queue=$queues})`, QueryLimits{Parameters: []string{"queue", "shard"}}))
	assert.Equal(t, []string{"position 14: unknown placeholder $queues; $namespace, $target and the declared parameters are the placeholders: $queue, $shard"}, got)
	got = texts(t, CheckQuery(`sum(up{queue=$queue})`, QueryLimits{}))
	assert.Equal(t, []string{"position 14: unknown placeholder $queue; $namespace and $target are the placeholders; declare others as parameters"}, got)
}

func TestTheStepsOfASubqueryAreBounded(t *testing.T) {
	for query, want := range map[string]string{
		`max_over_time(up[11000s:1s])`:                    "",
		`max_over_time(up[11001s:1s])`:                    "position 15: subquery up[11001s:1s] has 11001 steps; at most 11000 are evaluated, as in a range query of Prometheus: make the step longer or the range shorter",
		`sum(max_over_time(rate(up[1m])[1h:1ms]))`:        "position 19: subquery rate(up[1m])[1h:1ms] has 3600000 steps",
		`max_over_time(max_over_time(up[5h:1s])[1m:10s])`: "position 29: subquery up[5h:1s] has 18000 steps",
		`max_over_time(up[30d:])`:                         "",
	} {
		got := texts(t, CheckQuery(query, QueryLimits{}))
		if want == "" {
			assert.Empty(t, got, query)
			continue
		}
		require.Len(t, got, 1, query)
		assert.Contains(t, got[0], want)
	}
}

func TestTheAnswerToALongBadQueryIsShort(t *testing.T) {
	got := texts(t, CheckQuery("rate(a[2h])"+strings.Repeat(" + rate(a[2h])", 200), QueryLimits{MaxRange: time.Hour}))
	require.Len(t, got, maxQueryErrors+1)
	assert.Equal(t, "and 193 more errors", got[maxQueryErrors])

	got = texts(t, CheckQuery(`rate(a{b="`+strings.Repeat("x", 4000)+`"}[2h])`, QueryLimits{MaxRange: time.Hour}))
	require.Len(t, got, 1)
	assert.Less(t, len(got[0]), 300)
}

func TestRepetitionsThatWouldFillTheMemoryAreRefused(t *testing.T) {
	const says = "add up to more than 1000"
	for name, query := range map[string]string{
		"many of them":           `up{a=~"` + strings.Repeat("x{1000}", 500) + `"}`,
		"in several matchers":    `up{` + strings.Repeat(`a=~"x{600}",`, 2) + `}`,
		"behind an escape":       `up{a=~"x\x7b1000}y\u007b1000}"}`,
		"in a raw string":        "up{a=~`x{1001}`}",
		"with an upper bound":    `up{a=~"x{1,1000}"}`,
		"with a number too long": `up{a=~"x{99999999999999999999}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := texts(t, CheckQuery(query, QueryLimits{}))
			require.Len(t, got, 1)
			assert.Contains(t, got[0], says)
		})
	}
}

// The generator builds an expression from the inside and adds up what it looks
// back; the check must find the same sum.
func TestTheLookBackIsTheSumOfRangesOffsetsAndSubqueries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.IntRange(1, 100_000)
		total := 0
		duration := func(label string) string {
			n := seconds.Draw(t, label)
			total += n
			return rapid.SampledFrom([]string{fmt.Sprintf("%ds", n), fmt.Sprintf("%d", n), fmt.Sprintf("%dms", n*1000)}).Draw(t, "unit")
		}
		offset := func() string {
			if rapid.Bool().Draw(t, "offset") {
				return " offset " + duration("by")
			}
			return ""
		}
		expr := "up{n=$namespace,t=$target}"
		if rapid.Bool().Draw(t, "range") {
			expr = "rate(" + expr + "[" + duration("range") + "]" + offset() + ")"
		} else {
			expr += offset()
		}
		for range rapid.IntRange(0, 4).Draw(t, "subqueries") {
			expr = "max_over_time((1 + " + expr + ")[" + duration("subquery") + ":1h]" + offset() + ")"
		}

		exactly := time.Duration(max(total, 1)) * time.Second
		assert.Empty(t, CheckQuery(expr, QueryLimits{MaxRange: exactly}), expr)
		if total > 0 {
			got := texts(t, CheckQuery(expr, QueryLimits{MaxRange: exactly - time.Millisecond}))
			require.Len(t, got, 1, expr)
			assert.Contains(t, got[0], fmt.Sprintf("looks back %d s in all", total))
		}
	})
}

// Whatever the template, the answer comes soon, is short, and agrees with Render.
func FuzzCheckQuery(f *testing.F) {
	for _, seed := range []string{
		`sum(rate(http_requests_total{namespace=$namespace,deployment=$target}[1m]))`,
		`max_over_time(rate(up[5m] offset -1h @ end())[30m:1m] @ 5) or vector(NaN)`,
		strings.Repeat("(", 2047) + "1" + strings.Repeat(")", 2047),
		strings.Repeat("-", MaxTemplateBytes-1) + "1",
		strings.Repeat("a+", 2047) + "a",
		strings.Repeat("sum(", 800) + "a" + strings.Repeat(")", 800),
		strings.Repeat("(", MaxTemplateBytes),
		`up{a=~"` + strings.Repeat("(", 1000) + strings.Repeat(")", 1000) + `"}`,
		`up{a=~"` + strings.Repeat("x{10}", 90) + `"}`,
		`up{a=~"(((((x{10}){10}){10}){10}){10})"}`,
		`rate(up[1e308])`, `up offset -9223372036854775807`, `up[5m:0.0000000001]`, `up[0x7fffffffffffffff]`,
		"up{a=\"\xff\xfe\"}", "\xff$namespace", `{"\x24namespa"="$"}`,
	} {
		f.Add(seed, true, false)
	}
	f.Add(`sum(up{queue=$queue,a=$q}) + $q`, false, false)
	f.Add(`label_replace(count_values by (namespace) ("x", a) / on (x) group_left (deployment) b, "deployment", "", "", "")`, false, true)
	f.Fuzz(func(t *testing.T, template string, required, forMany bool) {
		limits := QueryLimits{MaxRange: time.Hour, RequireNamespaceMatcher: required, Parameters: []string{"q", "queue"}}
		if forMany {
			limits.Series = SeriesLabels{Namespace: "namespace", Target: "deployment"}
		}
		began := time.Now()
		errs := CheckQuery(template, limits)
		require.Less(t, time.Since(began), 5*time.Second)
		require.LessOrEqual(t, len(errs), maxQueryErrors+1)
		for _, err := range errs {
			require.Less(t, len(err.Error()), 600)
		}
		if len(errs) == 0 {
			vars := Vars{Namespace: "production", Target: "web", Parameters: map[string]string{"q": "a", "queue": "b"}}
			if forMany {
				vars = Vars{}
			}
			query, err := Render(template, vars)
			require.NoError(t, err)
			_, err = queries.ParseExpr(query)
			require.NoError(t, err)
		}
	})
}

// What an evaluation pays for looking at a stored profile again.
func BenchmarkCheckQuery(b *testing.B) {
	const query = `sum(rate(http_requests_total{namespace=$namespace,deployment=$target}[1m])) / scalar(sum(up{namespace=$namespace}))`
	for b.Loop() {
		if errs := CheckQuery(query, QueryLimits{MaxRange: time.Hour, RequireNamespaceMatcher: true}); errs != nil {
			b.Fatal(errs)
		}
	}
}
