package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatWouldMoveTheCursorIsWrittenOut(t *testing.T) {
	for text, want := range map[string]string{
		"deploy/größe 1.yaml":    "deploy/größe 1.yaml",
		"a\x1b[2Jb":              `a\x1b[2Jb`,
		"a\nerror: b":            `a\nerror: b`,
		"\u009b2J, and one \x9b": `\u009b2J, and one \x9b`,
		"\u202elmay.a":           `\u202elmay.a`,
	} {
		assert.Equal(t, want, Plain(text))
	}
}
