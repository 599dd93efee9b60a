package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/platform/autoscale-operator/test/guard/policies"
)

// begin is the first line of the guard's template that renders something.
const begin = "{{- $guard := .Values.guard -}}\n"

// guard makes a named template of the guard's template, which is written for Helm, so
// that templates/guard.yaml may give it the values that it wants.
func guard(root string) (map[string][]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, policies.TemplateFile))
	if err != nil {
		return nil, err
	}
	defines, body, found := strings.Cut(string(data), begin)
	if !found {
		return nil, fmt.Errorf("%s lacks %q", policies.TemplateFile, begin)
	}
	content := header(policies.TemplateFile) + defines +
		"{{- define \"autoscale-operator.guard\" -}}\n" + begin + strings.TrimSuffix(body, "\n") + "\n{{- end -}}\n"
	return map[string][]byte{"templates/_guard.tpl": []byte(content)}, nil
}
