// Package docs holds the documentation to the code.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// reasons are the values of the constants of a file whose names begin with Reason.
func reasons(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, 0)
	require.NoError(t, err)
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	require.NotEmpty(t, values)
	return values
}

func TestEveryReasonIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "conditions.md"))
	require.NoError(t, err)
	for _, file := range []string{"api/v1alpha1/conditions.go", "scaling/prometheus/reasons.go"} {
		for _, reason := range reasons(t, file) {
			assert.Contains(t, string(text), "| `"+reason+"` |", file)
		}
	}
}

var (
	code = regexp.MustCompile("`[^`]*`")
	link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	// heading is a section's; what is fenced has none.
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?\n```")
	unsaid  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the fragments by which the sections of a document are linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all["#"+strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}

func TestLinksBetweenFilesLeadSomewhere(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := file
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(file), m[1])
			}
			_, err := os.Stat(target)
			if !assert.NoError(t, err, "%s links to %s", file, m[1]) || m[2] == "" {
				continue
			}
			text, err := os.ReadFile(target)
			require.NoError(t, err)
			assert.True(t, anchors(string(text))[m[2]], "%s links to %s, which has no section %s", file, target, m[2])
		}
	}
}
