package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// notesFile tells people what is new.
const notesFile = "RELEASE_NOTES.md"

// sections are the headings of a changelog's versions: "## Unreleased", "## v0.1.0",
// "## [0.1.0] - 2027-01-31".
var sections = regexp.MustCompile(`(?m)^## \[?v?([^\]\s]+)\]?.*\n`)

func (r *release) notes(context.Context) error {
	changelog, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	changes, err := changesOf(string(changelog), r.version)
	if err != nil {
		return err
	}
	notes := fmt.Sprintf(`# %[1]s %[2]s

%[3]s

Made from commit %[4]s. `+"`sha256sum --check %[5]s`"+` checks what was downloaded.
`, product, r.version, changes, r.source.revision, sumsFile)
	return os.WriteFile(filepath.Join(r.dir, notesFile), []byte(notes), 0o644)
}

// changesOf is the changelog's section of a version, or what is not released yet if
// the version has none: then this is its dry run.
func changesOf(changelog, version string) (string, error) {
	found := map[string]string{}
	headings := sections.FindAllStringSubmatchIndex(changelog, -1)
	for n, h := range headings {
		end := len(changelog)
		if n+1 < len(headings) {
			end = headings[n+1][0]
		}
		found[changelog[h[2]:h[3]]] = strings.TrimSpace(changelog[h[1]:end])
	}
	for _, name := range []string{strings.TrimPrefix(version, "v"), "Unreleased"} {
		if changes := found[name]; changes != "" {
			return changes, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md says nothing of %s, and nothing is unreleased", version)
}
