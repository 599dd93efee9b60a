// Package policies renders the guard's admission policies from their one source,
// config/guard/policies.yaml.tmpl, as Helm would.
package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/test/cluster/install"
)

// Files of the guard, in the checkout.
const (
	TemplateFile = "config/guard/policies.yaml.tmpl"
	ValuesFile   = "config/guard/values.yaml"
	RenderedFile = "config/guard/policies.yaml"
	// DenyingFile is for an API server that does not serve MutatingAdmissionPolicies.
	DenyingFile = "config/guard/policies-denying.yaml"
)

// A Mode is what is done about a request that a rule objects to.
type Mode string

// Modes. Preserve is for Modes.Deployments alone.
const (
	Off      Mode = "Off"
	Audit    Mode = "Audit"
	Warn     Mode = "Warn"
	Deny     Mode = "Deny"
	Preserve Mode = "Preserve"
)

// Values are the guard's settings; config/guard/values.yaml says what they mean.
type Values struct {
	Guard    Guard     `json:"guard"`
	Managers []Manager `json:"managers"`
}

// Guard are the settings of all rules.
type Guard struct {
	Name             string            `json:"name"`
	Labels           map[string]string `json:"labels"`
	Namespaces       []string          `json:"namespaces"`
	ServiceAccount   string            `json:"serviceAccount"`
	BreakGlassGroups []string          `json:"breakGlassGroups"`
	ExemptNamespaces []string          `json:"exemptNamespaces"`
	Modes            Modes             `json:"modes"`
}

// Modes are the modes of the rules.
type Modes struct {
	Scale                    Mode `json:"scale"`
	Deployments              Mode `json:"deployments"`
	HorizontalPodAutoscalers Mode `json:"horizontalPodAutoscalers"`
	Managers                 Mode `json:"managers"`
}

// Manager is a kind that writes replica counts; see binding.ManagerConfig.
type Manager struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	Kind     string `json:"kind"`
	Targets  string `json:"targets"`
}

// Defaults reads the checkout's values.
func Defaults(root string) (*Values, error) {
	data, err := os.ReadFile(filepath.Join(root, ValuesFile))
	if err != nil {
		return nil, err
	}
	var values Values
	if err := yaml.UnmarshalStrict(data, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", ValuesFile, err)
	}
	return &values, nil
}

// MutatingAdmissionPolicies is what the API server serves that the mode Preserve needs.
const MutatingAdmissionPolicies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// capabilities stand for Helm's .Capabilities.
type capabilities struct{ APIVersions apiVersions }

type apiVersions []string

// Has is called by templates.
func (v apiVersions) Has(version string) bool { return slices.Contains(v, version) }

// Render renders the checkout's template for an API server that serves these
// API versions, each as group/version/kind.
func Render(root string, values *Values, served ...string) ([]byte, error) {
	// As Helm's: maps by the names in the values file.
	data, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	tmpl := template.New(filepath.Base(TemplateFile)).Option("missingkey=error")
	tmpl.Funcs(functions(tmpl))
	if _, err := tmpl.ParseFiles(filepath.Join(root, TemplateFile)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = tmpl.Execute(&out, map[string]any{
		"Values":       tree,
		"Release":      map[string]any{"Namespace": install.Namespace},
		"Capabilities": capabilities{APIVersions: served},
	})
	return out.Bytes(), err
}

// functions are those of Helm's that the template uses.
func functions(tmpl *template.Template) template.FuncMap {
	return template.FuncMap{
		"dict": func(pairs ...any) (map[string]any, error) {
			dict := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				key, ok := pairs[i].(string)
				if !ok {
					return nil, fmt.Errorf("dict: key %v is a %T", pairs[i], pairs[i])
				}
				dict[key] = pairs[i+1]
			}
			return dict, nil
		},
		"fail": func(message string) (string, error) { return "", errors.New(message) },
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := tmpl.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"nindent": func(spaces int, text string) string {
			indent := "\n" + strings.Repeat(" ", spaces)
			return indent + strings.ReplaceAll(text, "\n", indent)
		},
		"toJson": func(value any) (string, error) {
			data, err := json.Marshal(value)
			return string(data), err
		},
	}
}
