package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// decode adds the objects of one document. Values are those of the library that kubectl
// and the API server use; the other one, for the places, has another opinion of what yes
// and 017 are.
func (s *Source) decode(set *Set, file string, c chunk) {
	if values, isJSON := jsonValues(c); isJSON {
		for _, v := range values {
			if set.left {
				return
			}
			v.from.file = file
			if err := sizeOfJSON(v.text).affordable(); err != nil {
				set.trouble(Place{File: file, Line: v.from.line + 1, Column: v.from.column + 1}, err.Error())
				continue
			}
			// Beside the values a tab in JSON is a space, and YAML minds tabs.
			root, err := parse(bytes.ReplaceAll(v.text, []byte("\t"), []byte(" ")))
			if err != nil {
				root = nil // it is JSON, so only the places are lost
			}
			s.addText(set, v.text, root, v.from)
		}
		return
	}
	from := offset{file: file, line: c.line - 1}
	root, err := parse(c.text)
	switch {
	case errors.Is(err, io.EOF): // nothing, or comments only
		return
	case err != nil:
		set.trouble(from.trouble(err, c.text))
		return
	}
	if err := affordable(root); err != nil {
		set.trouble(from.place(root), err.Error())
		return
	}
	if key := noText(root); key != nil {
		set.trouble(from.place(key), "this is no YAML of Kubernetes: a key must be a text; a template is to be rendered first")
		return
	}
	text, err := yaml.YAMLToJSON(c.text)
	if err != nil {
		set.trouble(from.trouble(err, c.text))
		return
	}
	s.addText(set, text, root, from)
}

// parse gives the one node of a text, or io.EOF where there is none.
func parse(text []byte) (*yamlnode.Node, error) {
	var document, more yamlnode.Node
	decoder := yamlnode.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); err != nil {
		return nil, err
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, fmt.Errorf("line %d: another document begins; separate them by a line of ---", more.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

// located is an error of the YAML packages. Its line is that of the text.
var located = regexp.MustCompile(`(?s)^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): (.*)$`)

func (o offset) trouble(err error, text []byte) (Place, string) {
	at, message := Place{File: o.file, Line: o.line + 1, Column: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := located.FindStringSubmatch(err.Error()); m != nil {
		line, err := strconv.Atoi(m[1])
		if err == nil {
			at.Line, message = o.line+line, m[2]
		}
	}
	message = "this is no YAML: " + strings.Join(strings.Fields(message), " ")
	if tab := tabbed(text); tab > 0 {
		message += fmt.Sprintf("; line %d is indented by a tab, where YAML wants spaces", o.line+tab)
	}
	return at, message
}

// tabbed is the first line that is indented by a tab, or 0.
func tabbed(text []byte) int {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")) {
			return number
		}
	}
	return 0
}

type jsonValue struct {
	text []byte
	from offset
}

// jsonValues gives the values of a text that is JSON: one after the other, as jq -c and
// some tools write them.
func jsonValues(c chunk) (values []jsonValue, isJSON bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(c.text), []byte("{")) {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(c.text))
	from, counted := offset{line: c.line - 1}, 0
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF):
			return values, true
		case err != nil:
			return nil, false
		}
		begin := int(decoder.InputOffset()) - len(raw)
		between := c.text[counted:begin]
		counted = begin
		from.line += bytes.Count(between, []byte("\n"))
		from.column += len(between)
		if last := bytes.LastIndexByte(between, '\n'); last >= 0 {
			from.column = len(between) - 1 - last
		}
		values = append(values, jsonValue{text: raw, from: from})
	}
}

// addText adds the object that a JSON text is, or those of the list that it is. Root is
// the same text with its places, where they are known.
func (s *Source) addText(set *Set, text []byte, root *yamlnode.Node, from offset) {
	at := Place{File: from.file, Line: from.line + 1, Column: from.column + 1}
	if root != nil {
		at = from.place(root)
	}
	var value any
	if err := kjson.Unmarshal(text, &value); err != nil {
		set.trouble(at, "this cannot be decoded: "+err.Error())
		return
	}
	if value != nil {
		s.add(set, value, root, from, at)
	}
}

func (s *Source) add(set *Set, value any, root *yamlnode.Node, from offset, at Place) {
	object, _ := value.(map[string]any)
	kind, _ := object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	items, hasItems := object["items"].([]any)
	switch {
	case object == nil:
		set.trouble(at, "this is no Kubernetes object: it must have fields, first of all apiVersion and kind")
	case kind == "" || apiVersion == "":
		set.trouble(at, "this is no Kubernetes object: it has no "+firstOf(apiVersion, "apiVersion", "kind")+", or that is no text")
	case hasItems && strings.HasSuffix(kind, "List"):
		set.lists++
		nodes := itemsOf(root)
		for i, item := range items {
			if set.left {
				return
			}
			// As the API server's answers have it, and kubectl takes it.
			if fields, ok := item.(map[string]any); ok && kind != "List" && fields["kind"] == nil && fields["apiVersion"] == nil {
				fields["kind"], fields["apiVersion"] = strings.TrimSuffix(kind, "List"), apiVersion
			}
			var node *yamlnode.Node
			place := at
			if i < len(nodes) {
				node = nodes[i]
				place = from.place(node)
			}
			s.add(set, item, node, from, place)
		}
	case !s.Keep(apiVersion, kind):
		set.Ignored++
	case len(set.Documents) == maxObjects:
		set.full = true
		set.leave(at, fmt.Sprintf("these are more than %d objects; nothing was read from here on; give fewer files at once", maxObjects))
	default:
		d := &Document{Place: at, Object: &unstructured.Unstructured{Object: object}, root: root, from: from}
		d.Repeated = d.repeated()
		set.Documents = append(set.Documents, d)
	}
}

// firstOf is the first name where the value is empty, and the second otherwise.
func firstOf(value, first, second string) string {
	if value == "" {
		return first
	}
	return second
}
