// Package script reads what a document tells its reader to type, and types it.
//
// Of the fenced blocks of a document
//
//   - "sh" is run and must succeed; "sh refused" must fail; "sh elsewhere" is for what
//     the test at hand has not got, such as nodes, and is left out;
//   - "text" after one of these is in what that printed, line by line; a line with "…"
//     stands for anything;
//   - "yaml" whose first line is a comment that holds nothing but a file's name is
//     that file, which the commands may use; with "given" it is in the cluster before
//     the reader begins.
//
// What is indented by four spaces is shown only.
package script

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The languages of blocks that mean something here.
const (
	Shell = "sh"
	Text  = "text"
	YAML  = "yaml"
)

// What a block may have beside its language.
const (
	// Refused commands fail.
	Refused = "refused"
	// Elsewhere is where the commands can be run.
	Elsewhere = "elsewhere"
	// Given objects are there before the reader begins.
	Given = "given"
)

// Block is one fenced block.
type Block struct {
	// Line is where it begins in the document.
	Line int
	// Language is the first word of its info string, Flags the others.
	Language string
	Flags    []string
	// Text is its content.
	Text string
}

// Is says whether a block has a flag.
func (b *Block) Is(flag string) bool { return slices.Contains(b.Flags, flag) }

var fileName = regexp.MustCompile(`^# ([A-Za-z0-9._/-]+\.ya?ml)$`)

// File is the name of the file that a block is, or empty.
func (b *Block) File() string {
	first, _, _ := strings.Cut(b.Text, "\n")
	if m := fileName.FindStringSubmatch(first); m != nil && b.Language == YAML {
		return m[1]
	}
	return ""
}

const fence = "```"

// Read gives the blocks of a document.
func Read(path string) ([]Block, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	for i, line := range strings.Split(string(document), "\n") {
		info, fenced := strings.CutPrefix(line, fence)
		switch {
		case open == nil && fenced:
			words := strings.Fields(info)
			if len(words) == 0 {
				return nil, fmt.Errorf("%s:%d: a block without a language", path, i+1)
			}
			open = &Block{Line: i + 1, Language: words[0], Flags: words[1:]}
		case open != nil && fenced:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: a block that does not end", path, open.Line)
	}
	return blocks, nil
}
