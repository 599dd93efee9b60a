package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const head = "apiVersion: v1\nkind: Thing\n"

// bomb is the text of levels of aliases, each with nine of the level before.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString(head + "l0: &l0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range levels {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i), 9), ","))
	}
	return b.String()
}

func TestHostileInputEndsInAnErrorWithItsPlace(t *testing.T) {
	for name, tc := range map[string]struct{ text, place, want string }{
		"10 MB in one document":      {head + "data:\n" + strings.Repeat("- x\n", 10<<18), "stdin:1:1", "larger than 3 MiB"},
		"10 MB in one line":          {head + "data: " + strings.Repeat("x", 10<<20), "stdin:1:1", "larger than 3 MiB"},
		"10 MB, the second document": {object("a") + "---\n" + strings.Repeat("x", 10<<20), "stdin:5:1", "larger than 3 MiB"},
		"lists in lists":             {head + "data: " + strings.Repeat("[", 1<<20), "stdin:3:1", "exceeded max depth"},
		"lists in lists, JSON":       {`{"apiVersion":"v1","kind":"Thing","data":` + strings.Repeat("[", 1<<20), "stdin:1:1", "exceeded max depth"},
		"lists in lists, closed":     {head + "data: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "stdin:3:1", "exceeded max depth"},
		"blocks in blocks":           {head + "data:\n" + strings.Repeat("- ", 1<<20) + "x", "stdin:3:1", "exceeded max depth"},
		"aliases of aliases":         {bomb(9), "stdin:1:1", "with its aliases written out"},
		"aliases of a long text":     {head + "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "1]\n", "stdin:1:1", "with its aliases written out"},
		"a million fields":           {head + "data:\n" + strings.Repeat("- a\n", 700_000), "stdin:1:1", "more than 262144 keys, values and items"},
		"a million items, JSON":      {`{"apiVersion":"v1","kind":"Thing","data":[1` + strings.Repeat(",1", 1<<20) + "]}", "stdin:1:1", "more than 262144 keys, values and items"},
		"aliases of many items":      {head + "a: &a [" + strings.Repeat("1,", 1000) + "1]\nb: [" + strings.Repeat("*a,", 300) + "1]\n", "stdin:1:1", "more than 262144 keys, values and items"},
		"an anchor in itself":        {head + "a: &a [*a]\n", "stdin:1:1", `the anchor "a" contains itself`},
		"an alias of nothing":        {head + "a: *a\n", "stdin:1:1", `unknown anchor 'a'`},
		"bytes that are no text":     {"\x00\x01\x02\x7fELF", "stdin:1:1", "this is no YAML"},
		"half a letter":              {head + "data: \xc3\x28\n", "stdin:1:1", "this is no YAML"},
		"UTF-16":                     {"\xff\xfea\x00", "stdin", "UTF-16"},
		"a tab":                      {head + "metadata:\n\tname: a\n", "stdin:4:1", "line 4 is indented by a tab"},
		"a template":                 {"---\n" + head + "metadata:\n  name: {{ .Values.name }}\n", "stdin:5:10", "a template is to be rendered first"},
		"a separator that is more":   {head + "--- !tag\na: 1\n", "stdin:4:1", "nothing but a comment may follow"},
		"an end and more":            {head + "...\nmore: 1\n", "stdin:3:1", "did not find expected <document start>"},
		"a list at the top":          {"- a\n- b\n", "stdin:1:1", "this is no Kubernetes object"},
		"a text at the top":          {"\n\nhello\n", "stdin:3:1", "this is no Kubernetes object"},
		"no kind":                    {"apiVersion: v1\n", "stdin:1:1", "it has no kind"},
		"no version":                 {"kind: Thing\n", "stdin:1:1", "it has no apiVersion"},
		"a kind that is a number":    {"apiVersion: v1\nkind: 1\n", "stdin:1:1", "it has no kind"},
		"a list of what is none":     {"apiVersion: v1\nkind: List\nitems:\n- 1\n", "stdin:4:3", "this is no Kubernetes object"},
		"a number that is none":      {head + "a: .nan\n", "stdin:1:1", "NaN"},
		"a key that is a list":       {head + "[a, b]: 1\n", "stdin:3:1", "this is no YAML"},
		"JSON that ends early":       {`{"apiVersion":"v1",`, "stdin:1:1", "this is no YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			set := read(t, tc.text)
			assert.Less(t, time.Since(began), 10*time.Second)
			require.Len(t, set.Troubles, 1, "%v", names(set))
			assert.Equal(t, tc.place, set.Troubles[0].String())
			assert.Contains(t, set.Troubles[0].Message, tc.want)
			assert.NotContains(t, set.Troubles[0].Message, "\n")
			assert.Less(t, len(set.Troubles[0].Message), 500)
		})
	}
}

// endless is a stream without an end, as a device is.
type endless struct{ b byte }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.b
	}
	return len(p), nil
}

func TestAStreamWithoutAnEndIsLeft(t *testing.T) {
	for _, b := range []byte{0, '-', 'x'} {
		source := &Source{In: endless{b}, Keep: keepAll}
		set := source.Read(Stdin)
		require.NotEmpty(t, set.Troubles)
		assert.Contains(t, set.Troubles[len(set.Troubles)-1].Message, "larger than", "%q", b)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		object("a"), object("a") + "---\n" + object("b"), bomb(3), head + "a: &a [*a]\n", head + "a: 1\na: 2\n",
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}]}`,
		"\xef\xbb\xbf" + object("a"), "\xff\xfe", head + "<<: {a: 1}\nb: *c\n", "--- !x\n", head + "? [a]\n: 1\n", "{\"a\": \t1}",
		"apiVersion: v1\r\nkind: Thing\r\nspec: {targetPerReplica: 1e-2147483648}\r\n",
	} {
		f.Add(seed, "spec.list[0].name")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		set := read(t, text)
		lines := strings.Count(text, "\n") + 2
		for _, d := range set.Documents {
			assert.NotEmpty(t, d.Object.GetKind())
			at := d.Find(path)
			assert.True(t, at.Line >= 1 && at.Line <= lines && at.Column >= 1, "%s", at)
		}
		for _, trouble := range set.Troubles {
			assert.True(t, trouble.Line >= 0 && trouble.Line <= lines, "%s", trouble.Place)
			assert.NotEmpty(t, trouble.Message)
		}
	})
}
