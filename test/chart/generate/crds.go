package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// metadata is how controller-gen begins a CRD, and what stands in its place: labels, and
// that the CRD stays when the release goes.
const (
	crdMetadata = "metadata:\n  annotations:\n"
	crdTemplate = `metadata:
  labels:
    {{- include "autoscale-operator.labels" . | nindent 4 }}
  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`
)

// crds makes a template of each CRD. Templates are upgraded with the release; what lies
// in a chart's folder crds/ never is.
func crds(root string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		content, err := crd(string(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		// autoscale.example.com_autoscalers.yaml
		_, plural, _ := strings.Cut(filepath.Base(path), "_")
		files["templates/crd-"+plural] = []byte(header("config/crd") + content)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no CRDs", filepath.Join(root, "config", "crd"))
	}
	return files, nil
}

func crd(manifest string) (string, error) {
	manifest = strings.TrimPrefix(manifest, "---\n")
	before, after, found := strings.Cut(escape(manifest), crdMetadata)
	if !found {
		return "", fmt.Errorf("it lacks %q", crdMetadata)
	}
	return "{{- if .Values.crds.enabled }}\n" + before + crdTemplate + after + "{{- end }}\n", nil
}

// escape keeps braces of a text, such as an example in a description, from being taken
// for a template's.
func escape(text string) string {
	return strings.NewReplacer("{{", "{{ `{{` }}", "}}", "{{ `}}` }}").Replace(text)
}
