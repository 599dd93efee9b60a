package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func docs(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

func TestEveryFlagIsDocumentedWithItsDefault(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	text := docs(t, "configuration.md")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| .* \\| ([^|]*) \\|$").FindAllStringSubmatch(text, -1) {
		documented[row[1]] = strings.Trim(row[2], "` ")
	}
	(&options{}).flags().VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "zap-") {
			return
		}
		value, found := documented[f.Name]
		delete(documented, f.Name)
		if assert.True(t, found, f.Name) && f.DefValue != "" {
			assert.Equal(t, f.DefValue, value, f.Name)
		}
	})
	assert.Empty(t, documented, "flags that do not exist")
}
