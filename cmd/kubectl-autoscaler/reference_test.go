package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

const referencePage = "../../docs/kubectl-autoscaler/reference.md"

var update = flag.Bool("update", false, "write docs/kubectl-autoscaler/reference.md")

// TestTheReferenceIsWhatTheCommandsSay compares the page with the commands' own help.
func TestTheReferenceIsWhatTheCommandsSay(t *testing.T) {
	t.Setenv("HOME", "/home/you") // a default of kubectl's flags
	command := root(cli.Streams{})
	command.DisableAutoGenTag = true
	var page bytes.Buffer
	fmt.Fprintln(&page, "# kubectl autoscaler, every command and flag\n\n"+
		"Written by `go test ./cmd/kubectl-autoscaler -run TestTheReference -update` from what `--help` says.")
	for _, c := range append([]*cobra.Command{command}, command.Commands()...) {
		fmt.Fprintln(&page)
		require.NoError(t, doc.GenMarkdownCustom(c, &page, func(link string) string {
			return "#" + strings.TrimSuffix(strings.ReplaceAll(link, "_", "-"), ".md")
		}))
	}
	if *update {
		require.NoError(t, os.WriteFile(referencePage, page.Bytes(), 0o600))
		return
	}
	shown, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	assert.Equal(t, page.String(), string(shown))
}
