package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxParts bounds the keys, values and items of a document, also with its aliases written
// out. An object as large as the API server takes has some 200,000, and what holds only
// brackets and commas would be a million.
const maxParts = 1 << 18

var errTooManyParts = fmt.Errorf("the document has more than %d keys, values and items; no object of Kubernetes has so many", maxParts)

// maxDepth bounds the levels of a document. The schema of a large CustomResourceDefinition
// has some 60.
const maxDepth = 200

var errTooDeep = fmt.Errorf("the document has more than %d levels of fields and items; no object of Kubernetes has so many", maxDepth)

// size is what a node takes with its aliases written out, and the levels below it.
type size struct{ bytes, parts, depth int }

// sizeOfJSON is that of a JSON text, as far as is enough to know. It is less work than making
// nodes of it.
func sizeOfJSON(text []byte) size {
	tokens := json.NewDecoder(bytes.NewReader(text))
	var whole size
	for depth := 0; ; {
		token, err := tokens.Token()
		if err != nil || whole.parts > maxParts || whole.depth > maxDepth {
			return whole
		}
		switch token {
		case json.Delim(']'), json.Delim('}'):
			depth--
			continue
		case json.Delim('['), json.Delim('{'):
			depth++
		}
		whole.parts++
		whole.depth = max(whole.depth, depth)
	}
}

// affordable bounds a document with its aliases written out: a few lines can stand for
// terabytes.
func affordable(root *yaml.Node) error {
	whole, err := (&sizes{known: map[*yaml.Node]size{}}).of(root)
	if err != nil {
		return err
	}
	return whole.affordable()
}

func (s size) affordable() error {
	switch {
	case s.bytes > MaxDocument:
		return fmt.Errorf("with its aliases written out the document is larger than %d MiB, and the API server takes no more", MaxDocument>>20)
	case s.parts > maxParts:
		return errTooManyParts
	case s.depth > maxDepth:
		return errTooDeep
	}
	return nil
}

// noText looks for a key that is a list or has fields itself, as YAML allows and JSON does
// not.
func noText(n *yaml.Node) *yaml.Node {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && resolved(child).Kind != yaml.ScalarNode {
			return child
		}
		if found := noText(child); found != nil {
			return found
		}
	}
	return nil
}

// inside marks an anchor that is being looked at.
var inside = size{bytes: -1}

// sizes are those of nodes with an anchor.
type sizes struct{ known map[*yaml.Node]size }

func (s *sizes) of(n *yaml.Node) (size, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Anchor != "" {
		switch known, found := s.known[n]; {
		case found && known == inside:
			return size{}, fmt.Errorf("the anchor %q contains itself", n.Anchor)
		case found:
			return known, nil
		}
		s.known[n] = inside
	}
	whole := size{bytes: len(n.Value) + 1, parts: 1}
	if n.Kind != yaml.ScalarNode {
		whole.depth = 1
	}
	for _, child := range n.Content {
		more, err := s.of(child)
		if err != nil {
			return size{}, err
		}
		// One more than allowed is enough to know.
		whole.bytes = min(whole.bytes+more.bytes, MaxDocument+1)
		whole.parts = min(whole.parts+more.parts, maxParts+1)
		whole.depth = max(whole.depth, more.depth+1)
	}
	if n.Anchor != "" {
		s.known[n] = whole
	}
	return whole, nil
}

// itemsOf gives the nodes of a list's items.
func itemsOf(root *yaml.Node) []*yaml.Node {
	if root == nil {
		return nil
	}
	if _, items := entry(root, "items"); items != nil {
		return resolved(items).Content
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// entry gives key and value of a field. Of a key that stands twice the last one counts,
// and one that is merged in only where there is no other.
func entry(n *yaml.Node, name string) (key, value *yaml.Node) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if merged := resolved(n.Content[i+1]); n.Content[i].Tag == "!!merge" && merged.Kind == yaml.MappingNode {
			if key, value = entry(merged, name); key != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

// Find gives the place of a field, such as spec.metrics[0].name, or that of what it would
// be in: the deepest part of the path that is there.
func (d *Document) Find(path string) Place {
	if d.root == nil {
		return d.Place
	}
	at, n := d.Place, d.root
	for path != "" {
		next, place, rest := step(n, path)
		if next == nil {
			break
		}
		at, n, path = d.from.place(place), next, rest
	}
	return at
}

// step goes one part of a path down: to an item, or to the field with the longest name
// that the path begins with, since a name may have dots. Place is the key.
func step(n *yaml.Node, path string) (next, place *yaml.Node, rest string) {
	n = resolved(n)
	if inside, isIndex := strings.CutPrefix(path, "["); isIndex {
		name, rest, _ := strings.Cut(inside, "]")
		if n.Kind == yaml.SequenceNode {
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
				return n.Content[i], n.Content[i], rest
			}
			return nil, nil, ""
		}
		key, value := entry(n, name)
		return value, key, rest
	}
	path = strings.TrimPrefix(path, ".")
	for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
		if key, value := entry(n, path[:end]); key != nil {
			return value, key, path[end:]
		}
	}
	return nil, nil, ""
}

// maxRepeated is how many keys are told of one document.
const maxRepeated = 100

var errEnough = errors.New("enough")

// repeated looks for keys that stand twice. What an alias stands for was looked at where
// it is written.
func (d *Document) repeated() []Repeated {
	var all []Repeated
	var path []string // put together only where a key is told of: keys may be long
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		seen := map[string]bool{}
		for i, child := range n.Content {
			part := ""
			switch {
			case n.Kind == yaml.SequenceNode:
				part = fmt.Sprintf("[%d]", i)
			case i%2 == 0 && child.Kind == yaml.ScalarNode && child.Tag != "!!merge":
				if seen[child.Value] {
					field := strings.Join(path, "") + "." + child.Value
					all = append(all, Repeated{Place: d.from.place(child), Field: strings.TrimPrefix(field, "."), Key: child.Value})
				}
				if seen[child.Value] = true; len(all) == maxRepeated {
					return errEnough
				}
			case i%2 == 1 && len(child.Content) > 0:
				part = "." + n.Content[i-1].Value
			}
			if len(child.Content) == 0 {
				continue
			}
			path = append(path, part)
			if err := walk(child); err != nil {
				return err
			}
			path = path[:len(path)-1]
		}
		return nil
	}
	if d.root != nil {
		_ = walk(d.root) // it ends early where there is enough
	}
	return all
}
