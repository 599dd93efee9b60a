package prometheus

import (
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRenderPutsQuotedValuesInPlaceOfPlaceholders(t *testing.T) {
	vars := Vars{Namespace: "production", Target: "order-service", Parameters: map[string]string{"queue": "orders", "a": "1", "namespace": "other"}}
	cases := map[string]struct{ template, want string }{
		"both placeholders": {
			`sum(rate(http_requests_total{namespace=$namespace,deployment=$target}[1m]))`,
			`sum(rate(http_requests_total{namespace="production",deployment="order-service"}[1m]))`,
		},
		"one of them twice":           {`a{n=$namespace} + b{n=$namespace}`, `a{n="production"} + b{n="production"}`},
		"parameters":                  {`up{q=$queue,n=$namespace,a=$a}`, `up{q="orders",n="production",a="1"}`},
		"none":                        {`vector(1)`, `vector(1)`},
		"at the very end":             {`label_replace(up, $target`, `label_replace(up, "order-service"`},
		"dollar in a double string":   {`up{p=~"api-.*$"}`, `up{p=~"api-.*$"}`},
		"dollar in a single string":   {`up{p=~'(a|b)$'}`, `up{p=~'(a|b)$'}`},
		"dollar in a raw string":      {"up{p=~`^\\d+$`}", "up{p=~`^\\d+$`}"},
		"capture groups in a string":  {`label_replace(up, "a", "$1", "b", "(.*)")`, `label_replace(up, "a", "$1", "b", "(.*)")`},
		"longer name in a string":     {`up{p="$targets"}`, `up{p="$targets"}`},
		"escaped quote in a string":   {`up{p="\"",n=$namespace}`, `up{p="\"",n="production"}`},
		"escaped backslash at an end": {`up{p="\\",n=$namespace}`, `up{p="\\",n="production"}`},
		"backslash in a raw string":   {"up{p=`\\`,n=$namespace}", "up{p=`\\`,n=\"production\"}"},
		"hash in a string":            {`up{p="#",n=$namespace}`, `up{p="#",n="production"}`},
		"quote in a comment":          {"up # it's $target\n{n=$namespace}", "up # it's $target\n{n=\"production\"}"},
		"unknown name in a comment":   {"up # $x and \"$target\"", "up # $x and \"$target\""},
		"comment ended by a return":   {"up #'\r{n=$namespace}", "up #'\r{n=\"production\"}"},
		"raw string over two lines":   {"up{p=`a\nb`,n=$namespace}", "up{p=`a\nb`,n=\"production\"}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Render(c.template, vars)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
			assert.NoError(t, ValidateTemplate(c.template, "queue", "a"))
		})
	}
}

func TestTemplatesThatCannotBeRenderedAreRefused(t *testing.T) {
	cases := map[string]struct{ template, says string }{
		"empty":                       {"", "is empty"},
		"blank":                       {" \n", "is empty"},
		"too long":                    {strings.Repeat("a", MaxTemplateBytes+1), "4097 bytes long, more than 4096"},
		"placeholder in quotes":       {`up{n="$namespace"}`, `position 6: placeholder $namespace stands inside a string; drop the quotes, as in label=$namespace`},
		"placeholder in single quote": {`up{n='$target'}`, "placeholder $target stands inside a string"},
		"placeholder in raw string":   {"up{n=`$target`}", "placeholder $target stands inside a string"},
		"parameter in quotes":         {`up{n="a$queue"}`, "placeholder $queue stands inside a string"},
		"braced parameter in quotes":  {`up{n="${ queue}"}`, "placeholder $queue stands inside a string"},
		"placeholder within a regexp": {`up{pod=~"$target-.*"}`, "placeholder $target stands inside a string"},
		"braced placeholder":          {`up{n="${namespace}"}`, "placeholder $namespace stands inside a string"},
		"unknown placeholder":         {`up{c=$cluster}`, "position 6: unknown placeholder $cluster; $namespace, $target and the declared parameters are the placeholders: $queue"},
		"longer than a known one":     {`up{c=$targets}`, "unknown placeholder $targets"},
		"in another case":             {`up{c=$Target}`, "unknown placeholder $Target"},
		"dollar alone":                {`up{c=$}`, "begins no placeholder"},
		"braces outside a string":     {`up{c=${target}}`, "begins no placeholder"},
		"number":                      {`up{c=$1}`, "begins no placeholder"},
		"string without an end":       {`up{c="a}`, `string that begins with " has no end`},
		"string ended by an escape":   {`up{c="a\"}`, `string that begins with " has no end`},
		"escape at the very end":      {`up{c="a\`, `string that begins with " has no end`},
		"raw string without an end":   {"up{c=`a}", "string that begins with ` has no end"},
		"string over two lines":       {"up{c=\"a\nb\"}", `string that begins with " does not end on its line`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := ValidateTemplate(c.template, "queue")
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.says)
			_, rendered := Render(c.template, Vars{Namespace: "n", Target: "t", Parameters: map[string]string{"queue": "q"}})
			assert.EqualError(t, rendered, err.Error())
		})
	}
}

func TestPlaceholderWithoutAValueIsRefused(t *testing.T) {
	_, err := Render(`up{n=$namespace}`, Vars{Target: "t"})
	assert.EqualError(t, err, "query: no value for $namespace")
	_, err = Render(`up{n=$namespace}`, Vars{Namespace: "n"})
	assert.NoError(t, err, "a placeholder that does not occur needs no value")
	_, err = Render(`up{q=$queue}`, Vars{Parameters: map[string]string{"queue": ""}})
	assert.EqualError(t, err, "query: no value for $queue")
	_, err = Render(`up{n=$namespace}`, Vars{Parameters: map[string]string{"namespace": "other"}})
	assert.EqualError(t, err, "query: no value for $namespace", "a parameter cannot stand in for it")
}

func TestFC10_HostileValuesStayInsideTheirLiteral(t *testing.T) {
	for _, value := range []string{
		`"} or vector(1e9) #`, `'} or vector(1e9) #`, "`} or vector(1e9) #", `\`, `\"`, "a\nb", "a\r#", "\x00", "é", `$namespace`, `$queue`, `"`, ".*", "a\u2028b", "\ufeff", "\ufffd", "\xff",
	} {
		t.Run(strconv.Quote(value), func(t *testing.T) {
			// The same value for all three.
			query, err := Render(`sum(x{namespace=$namespace,deployment=$target,queue=$queue})`,
				Vars{Namespace: value, Target: value, Parameters: map[string]string{"queue": value}})
			require.NoError(t, err)
			assert.Equal(t, []string{value, value, value}, literals(t, query))

			expr, err := queries.ParseExpr(query)
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"__name__": "x", "namespace": value, "deployment": value, "queue": value}, matchers(t, expr))
		})
	}
}

func TestAnyValueIsWholeInItsLiteral(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
		rapid.StringMatching("[\"'`\\\\#{}$, \n\r\t]{0,20}"),
	)
	rapid.Check(t, func(rt *rapid.T) {
		requireWholeLiterals(t, Vars{
			Namespace: text.Draw(rt, "namespace"), Target: text.Draw(rt, "target"),
			Parameters: map[string]string{"queue": text.Draw(rt, "queue")},
		})
	})
}

// matchers are those of the only selector of an expression, as Prometheus' parser
// reads it. All of them must be equalities.
func matchers(tb testing.TB, expr parser.Expr) map[string]string {
	tb.Helper()
	values := map[string]string{}
	selectors := parser.ExtractSelectors(expr)
	require.Len(tb, selectors, 1)
	for _, m := range selectors[0] {
		require.Equal(tb, labels.MatchEqual, m.Type)
		values[m.Name] = m.Value
	}
	return values
}

// literals reads a query by PromQL's lexical rules and returns the values of
// its string literals.
func literals(tb testing.TB, query string) []string {
	tb.Helper()
	var values []string
	for rest := query; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "#"):
			return values
		case strings.ContainsAny(rest[:1], "\"'`"):
			quoted, err := strconv.QuotedPrefix(rest)
			require.NoError(tb, err, "in %q", query)
			value, err := strconv.Unquote(quoted)
			require.NoError(tb, err)
			values, rest = append(values, value), rest[len(quoted):]
		default:
			rest = rest[1:]
		}
	}
	return values
}

func FuzzRender(f *testing.F) {
	f.Add(`sum(x{namespace=$namespace,deployment=$target})`, "production", "web", "orders")
	f.Add("a{b='\\'',c=`\\`} # $x\n + $target", `"} or vector(1e9) #`, "\\", "'")
	f.Add(`up{p=~"api-.*$",n="$namespace"}`, "\xff", "\n", "`")
	f.Add(`up{p=~"$1",q=$queue}`, "1e-2147483648", "Ki", `"} or vector(1e9) #`)
	f.Fuzz(func(t *testing.T, template, namespace, target, queue string) {
		vars := Vars{Namespace: namespace, Target: target, Parameters: map[string]string{"queue": queue}}
		requireWholeLiterals(t, vars)
		query, err := Render(template, vars)
		if err != nil {
			assert.Empty(t, query)
			return
		}
		require.NoError(t, ValidateTemplate(template, "queue"))
		// What is not a placeholder is unchanged, and each placeholder became
		// exactly one literal with the value.
		parts, err := splitTemplate(template, placeholders{"queue"})
		require.NoError(t, err)
		rest := query
		for _, p := range parts {
			if p.kind != placeholder {
				require.True(t, strings.HasPrefix(rest, p.text))
				rest = rest[len(p.text):]
				continue
			}
			quoted, err := strconv.QuotedPrefix(rest)
			require.NoError(t, err)
			value, err := strconv.Unquote(quoted)
			require.NoError(t, err)
			require.Equal(t, map[string]string{"$namespace": namespace, "$target": target, "$queue": queue}[p.text], value)
			rest = rest[len(quoted):]
		}
		require.Empty(t, rest)
	})
}

// requireWholeLiterals renders a query of a known form: whatever the values are, it
// parses, and each is one matcher's value, all of it.
func requireWholeLiterals(t *testing.T, vars Vars) {
	t.Helper()
	query, err := Render(`sum(x{namespace=$namespace,deployment=$target,queue=$queue})`, vars)
	if vars.Namespace == "" || vars.Target == "" || vars.Parameters["queue"] == "" {
		require.Error(t, err)
		return
	}
	require.NoError(t, err)
	expr, err := queries.ParseExpr(query)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"__name__": "x", "namespace": vars.Namespace, "deployment": vars.Target, "queue": vars.Parameters["queue"],
	}, matchers(t, expr))
}

func TestExcerptIsOneShortLineWithoutSecrets(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"plain":           {"many-to-many matching", "many-to-many matching"},
		"lines":           {" a\r\n\tb ", "a b"},
		"control":         {"a\x1b[31mb\x00", "a[31mb"},
		"address":         {`Get "https://u:p@host:9090/x?y=z": EOF`, `Get "[address]": EOF`},
		"bearer":          {"authorization: Bearer abc.DEF-1", "authorization: [credential]"},
		"basic":           {"Basic dXNlcjpwYXNz was refused", "[credential] was refused"},
		"unreachable":     {"dial tcp 10.1.2.3:10901: connect: connection refused", "dial tcp [address]: connect: connection refused"},
		"IPv6":            {"dial tcp [fd00::1:2]:9090: refused", "dial tcp [address]: refused"},
		"looked up":       {"lookup store.monitoring.svc.cluster.local on 10.96.0.10:53: no such host", "lookup [address] on [address]: no such host"},
		"user at host":    {"user:s3cret@prom.internal:9090 said no", "[address] said no"},
		"host and port":   {"no route to prom-0:9090", "no route to [address]"},
		"token":           {"token=abcdef123456, x-api-key: AKIA123", "[credential], [credential]"},
		"password":        {"password=hunter2", "[credential]"},
		"quoted password": {`{password="hun ter2"} or pwd='x'`, "{[credential]} or [credential]"},
		"JSON":            {`{"token":"abc","n":1}`, `{"[credential],"n":1}`},
		"escaped JSON":    {`{\"client_secret\": \"abc\"}`, `{\"[credential]\"}`},
		"underscores":     {"access_token=abc api_key: def", "[credential] [credential]"},
		"web token":       {"eyJhbGciOiJIUzI1NiJ9.eyJz_dWIi.sig-nature expired", "[credential] expired"},
		"cookie":          {"bad header Set-Cookie: session=abc; Path=/", "bad header [credential]"},
		"parser position": {`1:15: parse error: unexpected "}"`, `1:15: parse error: unexpected "}"`},
		"broken encoding": {"a\xffb", "ab"},
		"long":            {strings.Repeat("x", 300), strings.Repeat("x", 253) + "…"},
		"long, two-byte":  {strings.Repeat("é", 300), strings.Repeat("é", 126) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := excerpt(c.text)
			assert.Equal(t, c.want, got)
			assert.LessOrEqual(t, len(got), maxExcerpt)
		})
	}
}

func TestFC10_AValueIsNeverMatchedAsARegularExpression(t *testing.T) {
	for _, template := range []string{
		`sum(rx{queue=~$queue})`, `sum(rx{queue!~$queue})`, "sum(rx{queue =~ # the queue\n\t$queue})", `sum(rx{namespace=~$namespace})`,
	} {
		_, err := Render(template, Vars{Namespace: "shop", Target: "web", Parameters: map[string]string{"queue": ".*"}})
		require.ErrorContains(t, err, "as a regular expression", template)
		assert.ErrorContains(t, err, "= or !=", template)
	}
	_, err := Render(`sum(rx{queue=$queue, path=~"/a.*", ns!=$namespace})`, Vars{Namespace: "shop", Target: "web", Parameters: map[string]string{"queue": ".*"}})
	assert.NoError(t, err)
}
