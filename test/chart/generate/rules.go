package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"example.com/platform/autoscale-operator/binding"
)

const roleFile = "config/rbac/role.yaml"

// A scope says where a right is needed.
type scope string

const (
	// cluster: what has no namespace.
	cluster scope = "cluster"
	// namespaced: in each namespace that the operator watches.
	namespaced scope = "namespaced"
	// own: in the operator's own namespace.
	own scope = "own"
)

// Conditions under which a right is needed.
const (
	whenAsked  = `or .Values.config.claims.require_permission (and .Values.metrics.enabled .Values.metrics.secure)`
	whenSecure = `and .Values.metrics.enabled .Values.metrics.secure`
)

// A need is where a right is needed, and when, if not always.
type need struct {
	scope scope
	when  string
}

// needOf is that of a resource in a role. One of a ClusterRole that is not here is an
// error: nobody has said yet whether it has a namespace.
func needOf(kind, group, resource string) (need, error) {
	if kind == "Role" {
		return need{scope: own}, nil
	}
	name := resource + "." + group
	switch name {
	case "metricprofiles.autoscale.example.com", "namespaces.", "customresourcedefinitions.apiextensions.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io":
		return need{scope: cluster}, nil
	case "subjectaccessreviews.authorization.k8s.io":
		return need{cluster, whenAsked}, nil
	case "tokenreviews.authentication.k8s.io":
		return need{cluster, whenSecure}, nil
	case "autoscalers.autoscale.example.com", "autoscalers/status.autoscale.example.com",
		"scalebindings.autoscale.example.com", "scalebindings/status.autoscale.example.com", "scaleguards.autoscale.example.com",
		"deployments.apps", "deployments/scale.apps", "horizontalpodautoscalers.autoscaling",
		"events.", "events.events.k8s.io":
		return need{scope: namespaced}, nil
	}
	return need{}, fmt.Errorf("%s: test/chart/generate does not know whether it has a namespace", name)
}

// keepsCertificates says that a right is for certificates that the operator keeps itself.
// templates/rbac.yaml grants those, to an operator that does, by the release's names.
func keepsCertificates(resource, verb string) bool {
	return resource == "secrets" || strings.HasSuffix(resource, "webhookconfigurations") && verb != "list"
}

// right is one verb on one resource.
type right struct {
	need            need
	group, resource string
	names           string
	verb            string
}

// rules makes named templates of the role that the markers in the code add up to: one for
// each scope.
func rules(root string) (map[string][]byte, error) {
	rights, err := readRights(filepath.Join(root, roleFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", roleFile, err)
	}
	var out strings.Builder
	out.WriteString(header(roleFile))
	for _, s := range []scope{cluster, namespaced, own} {
		fmt.Fprintf(&out, "{{- define \"autoscale-operator.rules.%s\" -}}\n", s)
		writeRules(&out, rights, s)
		out.WriteString("{{- end -}}\n")
	}
	return map[string][]byte{"templates/_rules.tpl": []byte(out.String())}, nil
}

func readRights(path string) ([]right, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rights []right
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var role rbacv1.ClusterRole // A Role has the same fields.
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			return rights, nil
		}
		if err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			more, err := rightsOf(role.Kind, rule)
			if err != nil {
				return nil, err
			}
			rights = append(rights, more...)
		}
	}
}

func rightsOf(kind string, rule rbacv1.PolicyRule) ([]right, error) {
	if len(rule.NonResourceURLs) > 0 {
		return nil, fmt.Errorf("%v: only resources are understood", rule.NonResourceURLs)
	}
	names := strings.Join(rule.ResourceNames, ", ")
	var rights []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if isManager(group, resource) {
				continue // config.managers tells.
			}
			for _, verb := range rule.Verbs {
				if group == "*" || resource == "*" || verb == "*" {
					return nil, fmt.Errorf("%s.%s: a wildcard gives more than is needed", resource, group)
				}
				if keepsCertificates(resource, verb) {
					continue
				}
				n, err := needOf(kind, group, resource)
				if err != nil {
					return nil, err
				}
				rights = append(rights, right{need: n, group: group, resource: resource, names: names, verb: verb})
			}
		}
	}
	return rights, nil
}

func isManager(group, resource string) bool {
	return slices.ContainsFunc(binding.DefaultManagers(), func(m binding.ManagerConfig) bool {
		return m.Group == group && m.Resource == resource
	})
}

// writeRules writes the rights of a scope, the verbs of a resource together.
func writeRules(out *strings.Builder, rights []right, s scope) {
	var order []right
	verbs := map[right][]string{}
	for _, r := range rights {
		if r.need.scope != s {
			continue
		}
		verb := r.verb
		r.verb = ""
		if verbs[r] == nil {
			order = append(order, r)
		}
		if !slices.Contains(verbs[r], verb) {
			verbs[r] = append(verbs[r], verb)
		}
	}
	for _, r := range order {
		if r.need.when != "" {
			fmt.Fprintf(out, "{{- if %s }}\n", r.need.when)
		}
		fmt.Fprintf(out, "- apiGroups: [%s]\n  resources: [%s]\n", quoted(r.group), r.resource)
		if r.names != "" {
			fmt.Fprintf(out, "  resourceNames: [%s]\n", r.names)
		}
		fmt.Fprintf(out, "  verbs: [%s]\n", strings.Join(verbs[r], ", "))
		if r.need.when != "" {
			out.WriteString("{{- end }}\n")
		}
	}
}

func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}
