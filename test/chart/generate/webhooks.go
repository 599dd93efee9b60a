package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A substitution makes a part of a manifest one of a template. It must be found exactly
// so many times: a manifest that has changed is looked at again.
type substitution struct {
	old, new string
	times    int
}

func substitute(text string, substitutions []substitution) (string, error) {
	for _, s := range substitutions {
		if found := strings.Count(text, s.old); found != s.times {
			return "", fmt.Errorf("%q is there %d times, not %d; mend test/chart/generate", s.old, found, s.times)
		}
		text = strings.ReplaceAll(text, s.old, s.new)
	}
	return text, nil
}

const webhookManifests = "config/webhook/manifests.yaml"

// webhooks makes a template of the webhook configurations: under the release's names,
// with its settings, and for its namespaces.
func webhooks(root string) (map[string][]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, webhookManifests))
	if err != nil {
		return nil, err
	}
	text := string(data)
	entries := strings.Count(text, "\n- name: ")
	text, err = substitute(text, []substitution{
		{"metadata:\n  name: autoscale-operator\n", `metadata:
  name: {{ include "autoscale-operator.fullname" . }}
  labels:
    {{- include "autoscale-operator.labels" . | nindent 4 }}
  annotations:
    {{- include "autoscale-operator.webhookAnnotations" . | nindent 4 }}
`, 2},
		{"      name: autoscale-operator-webhook\n      namespace: autoscale-operator-system\n",
			"      name: {{ include \"autoscale-operator.fullname\" . }}-webhook\n      namespace: {{ .Release.Namespace }}\n      port: 443\n", entries},
		{"failurePolicy: Fail\n", "failurePolicy: {{ .Values.webhook.failurePolicy }}\n", entries},
		{"timeoutSeconds: 10\n", "timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}\n", entries},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", webhookManifests, err)
	}
	// A MetricProfile has no namespace: every install that its AutoScalers may be of looks
	// at it.
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(line)
		if strings.HasPrefix(line, "- name: ") && strings.HasSuffix(line, "autoscalers.autoscale.example.com\n") {
			out.WriteString("  {{- include \"autoscale-operator.namespaceSelector\" . | nindent 2 }}\n")
		}
	}
	return map[string][]byte{"templates/webhooks.yaml": []byte(header(webhookManifests) + out.String())}, nil
}
