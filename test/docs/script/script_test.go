package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// follow has a reader follow a document, and gives what the log shows.
func follow(t *testing.T, document string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "document.md")
	require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer log.Close()
	failed := (&Reader{Dir: dir, Env: os.Environ(), Log: log}).Follow(t.Context(), path)
	shown, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	return string(shown), failed
}

func TestAReaderTypesTheCommandsInTheFolderOfTheFiles(t *testing.T) {
	shown, err := follow(t, "First\n\n```yaml\n# some/file.yaml\na: 1\n```\n\n    never typed\n\n```sh\ncat some/file.yaml\n```\n")
	require.NoError(t, err)
	assert.Contains(t, shown, "$ cat some/file.yaml\n# some/file.yaml\na: 1\n")
}

func TestWhatIsForElsewhereIsNotTyped(t *testing.T) {
	shown, err := follow(t, "```sh elsewhere\nfalse\n```\n")
	require.NoError(t, err)
	assert.Empty(t, shown)
}

func TestADocumentThatIsNotTrueFailsWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct{ document, says string }{
		"a command that fails":           {"\n```sh\nfalse | cat\n```\n", "document.md:2: exit status 1"},
		"a refusal that does not come":   {"```sh refused\ntrue\n```\n", "document.md:1: it is to be refused, and was not"},
		"another message":                {"```sh\necho one\n```\n\n```text\ntwo\n```\n", `"two" is not in what was printed`},
		"another message of a refusal":   {"```sh refused\necho one; false\n```\n\n```text\ntwo\n```\n", `"two" is not in what was printed`},
		"a variable that nobody set":     {"```sh\necho $nobody_set_this\n```\n", "unbound variable"},
		"a block that does not end":      {"```sh\ntrue\n", "document.md:1: a block that does not end"},
		"a block of no language":         {"```\ntrue\n```\n", "document.md:1: a block without a language"},
		"something given without a name": {"```yaml given\na: 1\n```\n", "document.md:1: what is given must be a file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := follow(t, tc.document)
			assert.ErrorContains(t, err, tc.says)
		})
	}
}

func TestWhatIsPrintedMayBeBrokenAndLeftOut(t *testing.T) {
	_, err := follow(t, "```sh refused\necho 'error:  a long message of 5 s'; false\n```\n\n```text\nerror: a long\n  message of … s\n```\n")
	assert.NoError(t, err)
}
