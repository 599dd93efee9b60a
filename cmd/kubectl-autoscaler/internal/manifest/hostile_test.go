package manifest

import (
	"fmt"
	"os"
	"path/filepath"
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
		"many levels":                {head + "data: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "stdin:1:1", "more than 200 levels"},
		"many levels, JSON":          {`{"apiVersion":"v1","kind":"Thing","data":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}", "stdin:1:1", "more than 200 levels"},
		"many levels of long names":  {head + "data: " + strings.Repeat(`{"`+strings.Repeat("x", 900)+`": `, 3000) + "1" + strings.Repeat("}", 3000), "stdin:1:1", "more than 200 levels"},
		"lists of lists":             {strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, 300) + strings.Repeat("]}", 300), "stdin:1:1", "more than 200 levels"},
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

func TestAsManyLevelsAsAreAllowedAreRead(t *testing.T) {
	inside := strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)
	for _, text := range []string{head + "data: " + inside, `{"apiVersion":"v1","kind":"Thing","data":` + inside + "}"} {
		set := read(t, text)
		assert.Empty(t, set.Troubles)
		assert.Len(t, set.Documents, 1)
		assert.Len(t, read(t, strings.ReplaceAll(text, "[]", "[[]]")).Troubles, 1)
	}
}

func TestManySmallDocumentsAreAnsweredAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
		last string
	}{
		"no objects":           {strings.Repeat("a: 1\n---\n", 1_000_000), maxTroubles + 1, "stdin:201:1"},
		"no objects, JSON":     {strings.Repeat("{} ", 1_000_000), maxTroubles + 1, "stdin:1:301"},
		"no objects in a list": {`{"apiVersion":"v1","kind":"List","items":[` + strings.Repeat("1,", 200_000) + "1]}", maxTroubles + 1, "stdin:1:243"},
		"no YAML":              {strings.Repeat("]\n---\n", 1_000_000), maxTroubles + 1, "stdin:201:1"},
		"no separators":        {strings.Repeat("--- x\n", 1_000_000), maxTroubles + 1, "stdin:102:1"},
		"nothing":              {strings.Repeat("---\n# nothing\n\n", 1_000_000), 0, ""},
		"as many as are told":  {strings.Repeat("a: 1\n---\n", maxTroubles), maxTroubles, "stdin:199:1"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			set := read(t, tc.text)
			assert.Less(t, time.Since(began), 10*time.Second)
			require.Len(t, set.Troubles, tc.want)
			if tc.want == 0 {
				return
			}
			last := set.Troubles[tc.want-1]
			assert.Equal(t, tc.last, last.String())
			assert.Equal(t, tc.want > maxTroubles, strings.Contains(last.Message, "the rest of it was not read"), last.Message)
		})
	}
}

func TestWhatIsKeptOfAllFilesIsBounded(t *testing.T) {
	dir := t.TempDir()
	small := `{"apiVersion":"v1","kind":"Thing"}` + "\n"
	for name, text := range map[string]string{"a.json": strings.Repeat(small, 6000), "b.json": "{}" + strings.Repeat(small, 6000), "c.json": small} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	set := (&Source{Keep: keepAll}).Read(dir, filepath.Join(dir, "c.json"))
	assert.Len(t, set.Documents, maxObjects)
	assert.Equal(t, 2, set.Files)
	require.Len(t, set.Troubles, 2)
	assert.Equal(t, filepath.Join(dir, "b.json")+":4001:1", set.Troubles[1].String())
	assert.Contains(t, set.Troubles[1].Message, "more than 10000 objects; nothing was read from here on; give fewer files at once")

	set = (&Source{Keep: func(string, string) bool { return false }}).Read(dir)
	assert.Equal(t, 12001, set.Ignored, "of other kinds there may be more")
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
		"apiVersion: v1\r\nkind: Thing\r\nspec: {targetPerReplica: 1e-2147483648}\r\n", "\r\r0",
	} {
		f.Add(seed, "spec.list[0].name")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		set := read(t, text)
		lines := 2
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} { // those of YAML
			lines += strings.Count(text, end)
		}
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
