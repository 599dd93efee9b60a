//go:build e2e

package e2e

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"
)

// shortHash makes a name of a sentence.
func shortHash(sentence string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(sentence))
	return fmt.Sprintf("%08x", h.Sum32())
}

// baseName is the last part of a test's name, as the sentence that it was.
func baseName(test string) string { return strings.ReplaceAll(path.Base(test), "_", " ") }
