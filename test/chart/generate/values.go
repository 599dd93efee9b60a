package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// schemaFile holds what the values' schema says beyond their names and meanings.
const schemaFile = "test/chart/generate/schema.yaml"

// Where the table of the values is in the chart's README.
const (
	tableBegin = "<!-- values: begin -->\n"
	tableEnd   = "<!-- values: end -->\n"
)

// value is a key of values.yaml: its path and what its comment says.
type value struct {
	path    []string
	meaning string
}

// values makes the schema and the table.
func values(root string) (map[string][]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, chart, "values.yaml"))
	if err != nil {
		return nil, err
	}
	keys := readKeys(string(text))
	schema, err := makeSchema(filepath.Join(root, schemaFile), keys)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(root, chart, "README.md"))
	if err != nil {
		return nil, err
	}
	before, rest, found := strings.Cut(string(readme), tableBegin)
	_, after, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		return nil, fmt.Errorf("README.md of the chart lacks %q or %q", tableBegin, tableEnd)
	}
	table, err := makeTable(text, keys)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"values.schema.json": schema,
		"README.md":          []byte(before + tableBegin + table + tableEnd + after),
	}, nil
}

// readKeys reads the keys of values.yaml and the comments above them. What is in a list is
// the list's, and what has no comment below one that has belongs to that one.
func readKeys(text string) []value {
	var keys []value
	var path, comment []string
	explained := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimLeft(line, " ")
		depth := (len(line) - len(trimmed)) / 2
		key, _, isKey := strings.Cut(trimmed, ":")
		switch {
		case trimmed == "":
			comment = nil
		case strings.HasPrefix(trimmed, "#"):
			comment = append(comment, strings.TrimSpace(strings.TrimPrefix(trimmed, "#")))
		case depth > len(path), !isKey, strings.ContainsAny(key, " -[\"."):
			// Of a list, or of a map that the user fills.
		default:
			path = append(path[:depth:depth], key)
			parent := strings.Join(path[:depth], ".")
			if len(comment) > 0 || !explained[parent] {
				keys = append(keys, value{path: path, meaning: strings.Join(comment, " ")})
			}
			explained[strings.Join(path, ".")] = len(comment) > 0 || explained[parent]
			comment = nil
		}
	}
	return keys
}

func (v value) String() string { return strings.Join(v.path, ".") }

// makeSchema completes the schema: with what the keys mean, and by refusing what is not
// listed.
func makeSchema(path string, keys []value) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var schema map[string]any
	if err := yaml.UnmarshalStrict(data, &schema); err != nil {
		return nil, fmt.Errorf("%s: %w", schemaFile, err)
	}
	for _, key := range keys {
		entry := schema
		for _, name := range key.path {
			properties, _ := entry["properties"].(map[string]any)
			next, ok := properties[name].(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%s lacks %s of values.yaml", schemaFile, key)
			}
			entry = next
		}
		if key.meaning == "" {
			continue
		}
		// Beside $ref draft 7 looks at nothing else.
		if ref, ok := entry["$ref"]; ok {
			delete(entry, "$ref")
			entry["allOf"] = []any{map[string]any{"$ref": ref}}
		}
		entry["description"] = key.meaning
	}
	closeObjects(schema)
	out, err := json.MarshalIndent(schema, "", "  ")
	return append(out, '\n'), err
}

// closeObjects refuses what the objects of a schema do not list.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if _, listed := s["properties"].(map[string]any); listed && s["type"] == "object" && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		for _, nested := range s {
			closeObjects(nested)
		}
	case []any:
		for _, nested := range s {
			closeObjects(nested)
		}
	}
}

// longest is how long a default may be for the table.
const longest = 80

// makeTable lists the values that somebody may set: those that are no mere groups.
func makeTable(text []byte, keys []value) (string, error) {
	var defaults map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for i, key := range keys {
		isGroup := i+1 < len(keys) && len(keys[i+1].path) > len(key.path)
		switch {
		case isGroup && key.meaning == "":
		case key.meaning == "":
			return "", fmt.Errorf("values.yaml does not say what %s is", key)
		case isGroup:
			fmt.Fprintf(&out, "| **`%s`** | | %s |\n", key, cell(key.meaning))
		default:
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", key, defaultOf(defaults, key.path), cell(key.meaning))
		}
	}
	return out.String(), nil
}

func defaultOf(values any, path []string) string {
	for _, name := range path {
		group, _ := values.(map[string]any)
		values = group[name]
	}
	data, err := json.Marshal(values)
	switch {
	case err != nil || len(data) > longest:
		return "see values.yaml"
	case string(data) == `""`, string(data) == "[]", string(data) == "{}":
		return "none"
	}
	return "`" + cell(string(data)) + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
