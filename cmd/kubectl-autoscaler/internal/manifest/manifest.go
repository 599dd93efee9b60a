// Package manifest reads Kubernetes manifests as kubectl does, and knows where in a file
// each field stands. What it is given may be anything: files, documents, their parts and
// levels, what is kept and what is told of it have bounds.
package manifest

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Place is where something stands. A Line of 0 is the file as a whole.
type Place struct {
	File         string
	Line, Column int
}

// String is what editors and compilers write.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Document is one object of a file.
type Document struct {
	// Place is where the object begins.
	Place
	// Object is the document decoded as the API server decodes it; of a key that stands
	// twice the last one counts.
	Object *unstructured.Unstructured
	// Repeated are the keys that stand twice in one place.
	Repeated []Repeated

	root *yaml.Node // nil where only the place of the whole is known
	from offset
}

// Repeated is a key that stands there already.
type Repeated struct {
	Place
	// Field is the path of the field.
	Field string
	// Key is its last part.
	Key string
}

// offset of a parsed text within its file.
type offset struct {
	file         string
	line, column int // of the text's first character, from 0
}

func (o offset) place(n *yaml.Node) Place {
	p := Place{File: o.file, Line: n.Line + o.line, Column: n.Column}
	if n.Line == 1 {
		p.Column += o.column
	}
	return p
}

// Trouble is something that cannot be read as manifests.
type Trouble struct {
	Place
	Message string
}

// Set is what was read, in order: files as they were named, those of a folder by name.
type Set struct {
	Documents []*Document
	Troubles  []Trouble
	// Files counts what was opened, and Ignored the objects that were not kept.
	Files, Ignored int

	opened map[string]bool
	lists  int
	// troubles of the file that is read, left: no more is to be read of it; full: nor of
	// any other.
	troubles   int
	left, full bool
}

// Empty says that nothing at all was read, not even a list of nothing.
func (set *Set) Empty() bool {
	return len(set.Documents)+len(set.Troubles)+set.Ignored+set.lists == 0
}

// Source says what to read, and what of it to keep.
type Source struct {
	// In is what the file "-" stands for.
	In io.Reader
	// Recursive looks into the folders of a folder, too.
	Recursive bool
	// Keep says whether objects of a kind are wanted; the others are only counted.
	Keep func(apiVersion, kind string) bool
}

// MaxDocument bounds one document, as it is written and with its aliases written out. The
// API server takes no request that is larger.
const MaxDocument = 3 << 20

// maxObjects bounds what is kept of all files, and maxTroubles what is told of one file.
const (
	maxObjects  = 10_000
	maxTroubles = 100
)

// maxFile bounds what is read of one file: a device may have no end.
const maxFile = 32 << 20
