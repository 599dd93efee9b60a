package manifest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func keepAll(string, string) bool { return true }

func read(t *testing.T, text string) *Set {
	t.Helper()
	source := &Source{In: strings.NewReader(text), Keep: keepAll}
	return source.Read(Stdin)
}

// names of the objects that were read.
func names(set *Set) []string {
	var all []string
	for _, d := range set.Documents {
		all = append(all, d.Object.GetKind()+"/"+d.Object.GetName())
	}
	return all
}

func object(name string) string {
	return "apiVersion: v1\nkind: Thing\nmetadata: {name: " + name + "}\n"
}

func TestDocumentsAreSeparatedAsKubectlDoes(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"one":                              {object("a"), []string{"Thing/a"}},
		"none":                             {"", nil},
		"comments only":                    {"# nothing\n---\n# to see\n", nil},
		"a document of null":               {"null\n", nil},
		"two":                              {object("a") + "---\n" + object("b"), []string{"Thing/a", "Thing/b"}},
		"a separator with a comment":       {"--- # first\n" + object("a") + "---   \n" + object("b"), []string{"Thing/a", "Thing/b"}},
		"separators without anything":      {"---\n---\n" + object("a") + "---\n---\n", []string{"Thing/a"}},
		"no line's end at the end":         {strings.TrimSuffix(object("a")+"---\n"+object("b"), "\n"), []string{"Thing/a", "Thing/b"}},
		"lines that end with CR and LF":    {strings.ReplaceAll(object("a")+"---\n"+object("b"), "\n", "\r\n"), []string{"Thing/a", "Thing/b"}},
		"a byte order mark":                {"\xef\xbb\xbf" + object("a"), []string{"Thing/a"}},
		"JSON":                             {`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}`, []string{"Thing/a"}},
		"JSON after JSON":                  {`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"b"}}`, []string{"Thing/a", "Thing/b"}},
		"JSON indented by tabs":            {"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Thing\",\n\t\"metadata\": {\"name\": \"a\"}\n}", []string{"Thing/a"}},
		"JSON with a letter of two halves": {`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","labels":{"x":"\ud83d\ude00"}}}`, []string{"Thing/a"}},
		"YAML that begins as JSON does":    {"{apiVersion: v1, kind: Thing, metadata: {name: a}}\n", []string{"Thing/a"}},
		"a list":                           {"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(object("a")), "\n", "\n  ") + "\n- {apiVersion: v1, kind: Thing, metadata: {name: b}}\n", []string{"Thing/a", "Thing/b"}},
		"a list of a kind, in JSON":        {`{"apiVersion":"v1","kind":"ThingList","items":[{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}}]}`, []string{"Thing/a"}},
		"a list of a kind that its items do not name": {`{"apiVersion":"v1","kind":"ThingList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"apiVersion":"v1","kind":"Other"}]}`, []string{"Thing/a", "Other/b"}},
		"an empty list":                          {"apiVersion: v1\nkind: List\nitems: []\n", nil},
		"a block of text with a separator in it": {"apiVersion: v1\nkind: Thing\nmetadata: {name: a}\ndata: |\n  x\n  ---\n  y\n", []string{"Thing/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := read(t, tc.text)
			assert.Empty(t, set.Troubles)
			assert.Equal(t, tc.want, names(set))
			assert.Equal(t, 1, set.Files)
		})
	}
}

func TestValuesAreThoseOfTheAPIServer(t *testing.T) {
	set := read(t, "apiVersion: v1\nkind: Thing\nspec: {yes: no, octal: 0o17, old: 017, one: 1, half: 0.5, text: \"1\"}\n")
	require.Empty(t, set.Troubles)
	assert.Equal(t, map[string]any{
		"true": false, "octal": int64(15), "old": int64(15), "one": int64(1), "half": 0.5, "text": "1",
	}, set.Documents[0].Object.Object["spec"])
}

func TestAFieldIsFoundWhereItStands(t *testing.T) {
	const text = `# A comment.
---
apiVersion: v1
kind: Thing
metadata:
  name: a
  labels:
    app.kubernetes.io/name: x
common: &common
  shared: 1
spec:
  list:
  - name: first
    deep: {x: 1, y: 2}
  -   name: second
  merged:
    <<: *common
    own: 2
  alias: *common
`
	set := read(t, text)
	require.Empty(t, set.Troubles)
	d := set.Documents[0]
	assert.Equal(t, "stdin:3:1", d.String())
	for path, want := range map[string]string{
		"":                                       "stdin:3:1",
		"spec":                                   "stdin:11:1",
		"spec.list":                              "stdin:12:3",
		"spec.list[0].deep.y":                    "stdin:14:18",
		"spec.list[1]":                           "stdin:15:7",
		"spec.list[1].name":                      "stdin:15:7",
		"spec.list[1].absent":                    "stdin:15:7",
		"spec.list[2].name":                      "stdin:12:3",
		"spec.absent.further":                    "stdin:11:1",
		"absent":                                 "stdin:3:1",
		"metadata.labels.app.kubernetes.io/name": "stdin:8:5",
		"metadata.labels[app.kubernetes.io/name]": "stdin:8:5",
		"spec.merged.shared":                      "stdin:10:3",
		"spec.merged.own":                         "stdin:18:5",
		"spec.alias.shared":                       "stdin:10:3",
		"spec.list[":                              "stdin:12:3",
		"spec.list[-1]":                           "stdin:12:3",
		"..":                                      "stdin:3:1",
	} {
		assert.Equal(t, want, d.Find(path).String(), path)
	}
}

func TestPlacesInJSONAndListsAreThoseOfTheFile(t *testing.T) {
	set := read(t, "{\"apiVersion\":\"v1\",\"kind\":\"Thing\"} {\"apiVersion\":\"v1\",\n\t\"kind\":\"Thing\", \"spec\": 1}\n")
	require.Len(t, set.Documents, 2)
	assert.Equal(t, "stdin:1:36", set.Documents[1].String())
	assert.Equal(t, "stdin:2:18", set.Documents[1].Find("spec").String())

	set = read(t, "---\n{}\n\n {} {}\n{\"apiVersion\":\n\"v1\"} {}")
	var places []string
	for _, trouble := range set.Troubles {
		places = append(places, trouble.String())
	}
	assert.Equal(t, []string{"stdin:2:1", "stdin:4:2", "stdin:4:5", "stdin:5:1", "stdin:6:7"}, places)

	set = read(t, strings.ReplaceAll("# A comment.\n---\n# Another.\n"+object("a")+"spec:\n  a: 1\n", "\n", "\r\n"))
	require.Len(t, set.Documents, 1)
	assert.Equal(t, "stdin:4:1", set.Documents[0].String())
	assert.Equal(t, "stdin:8:3", set.Documents[0].Find("spec.a").String())

	set = read(t, "---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Thing\n  spec: {a: 1}\n")
	require.Len(t, set.Documents, 1)
	assert.Equal(t, "stdin:5:3", set.Documents[0].String())
	assert.Equal(t, "stdin:7:10", set.Documents[0].Find("spec.a").String())
}

func TestKeysThatStandTwiceAreFound(t *testing.T) {
	set := read(t, "apiVersion: v1\nkind: Thing\nspec:\n  a: 1\n  b: [{c: 1, c: 2}, [[], {d: {}, e: {f: 1, f: 2}}]]\n  a: 3\nd: &d {x: 1}\ne: {<<: *d, x: 2}\n")
	require.Len(t, set.Documents, 1)
	assert.Equal(t, []Repeated{
		{Place: Place{"stdin", 5, 14}, Field: "spec.b[0].c", Key: "c"},
		{Place: Place{"stdin", 5, 44}, Field: "spec.b[1][1].e.f", Key: "f"},
		{Place: Place{"stdin", 6, 3}, Field: "spec.a", Key: "a"},
	}, set.Documents[0].Repeated)
	spec := set.Documents[0].Object.Object["spec"].(map[string]any)
	assert.Equal(t, int64(3), spec["a"], "the last one counts")
}

func TestWhatIsNoFileIsNotReadInAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	// As a pipe would, a socket has no end; where it differs is that it can be made anywhere.
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "a.yaml")
	require.NoError(t, err)
	defer socket.Close()
	require.NoError(t, os.Symlink("a.yaml", "b.yaml"))
	source := &Source{Keep: keepAll}
	set := source.Read(".")
	require.Len(t, set.Troubles, 1)
	assert.Contains(t, set.Troubles[0].Message, "the folder has no .yaml, .yml or .json file")

	require.NoError(t, os.Mkdir("folder", 0o755))
	require.NoError(t, os.WriteFile("c.txt", []byte(object("c")), 0o600))
	require.NoError(t, os.Symlink("c.txt", "c.yaml"))
	require.NoError(t, os.Symlink("folder", "d.yaml"))
	require.NoError(t, os.Symlink("none", "e.yaml"))
	set = source.Read(".")
	assert.Equal(t, []string{"Thing/c"}, names(set))
	require.Len(t, set.Troubles, 1)
	assert.Equal(t, "e.yaml: no such file or directory", set.Troubles[0].String()+": "+set.Troubles[0].Message)
}

func TestFilesAndFoldersAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yml": object("b"), "a.yaml": object("a"), "c.json": `{"apiVersion":"v1","kind":"Thing","metadata":{"name":"c"}}`,
		"README.md": "no manifest", "sub/d.yaml": object("d") + "---\napiVersion: v1\nkind: Other\n", "empty/x.txt": "",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	source := &Source{Keep: func(_, kind string) bool { return kind == "Thing" }}

	flat := source.Read(dir)
	assert.Empty(t, flat.Troubles)
	assert.Equal(t, []string{"Thing/a", "Thing/b", "Thing/c"}, names(flat))
	assert.Equal(t, filepath.Join(dir, "a.yaml"), flat.Documents[0].File)

	source.Recursive = true
	deep := source.Read(dir, filepath.Join(dir, "a.yaml"))
	assert.Equal(t, []string{"Thing/a", "Thing/b", "Thing/c", "Thing/d"}, names(deep))
	assert.Equal(t, 1, deep.Ignored)
	assert.Equal(t, 4, deep.Files, "none is read twice")

	for path, want := range map[string]string{
		filepath.Join(dir, "empty"):  "no .yaml, .yml or .json file",
		filepath.Join(dir, "none"):   "no such file",
		"https://example.com/a.yaml": "addresses are not read",
	} {
		set := source.Read(path)
		require.Len(t, set.Troubles, 1)
		assert.Equal(t, path, set.Troubles[0].String())
		assert.Contains(t, set.Troubles[0].Message, want)
	}
}
