//go:build integration

package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// schema is values.schema.json, or a part of it.
type schema map[string]any

func readSchema(t *testing.T) schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	require.NoError(t, err)
	var s schema
	require.NoError(t, json.Unmarshal(data, &s))
	return s
}

// at is the part for a key or an index of this part; nil where there is none.
func (s schema) at(root schema, step string) schema {
	s = s.resolve(root)
	if _, err := strconv.Atoi(step); err == nil && s["items"] != nil {
		return s["items"].(map[string]any)
	}
	if properties, ok := s["properties"].(map[string]any); ok && properties[step] != nil {
		return properties[step].(map[string]any)
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok {
		return more
	}
	return nil
}

// resolve follows a reference.
func (s schema) resolve(root schema) schema {
	ref, _ := s["$ref"].(string)
	if all, ok := s["allOf"].([]any); ok {
		ref, _ = all[0].(map[string]any)["$ref"].(string)
	}
	if ref == "" {
		return s
	}
	return root["definitions"].(map[string]any)[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
}

func readValues(t *testing.T, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(data, &values))
	return values
}

// leaves are the paths of all values that are no maps or lists, or empty ones.
func leaves(value any, path []string) [][]string {
	var found [][]string
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = append(found, leaves(v[key], append(path[:len(path):len(path)], key))...)
		}
	case []any:
		for i := range v {
			found = append(found, leaves(v[i], append(path[:len(path):len(path)], strconv.Itoa(i)))...)
		}
	}
	if len(found) == 0 && len(path) > 0 {
		return [][]string{path}
	}
	return found
}

// with is a copy of the values in which one differs.
func with(value any, path []string, change func(any) any) any {
	if len(path) == 0 {
		return change(value)
	}
	switch v := value.(type) {
	case map[string]any:
		v = maps.Clone(v)
		v[path[0]] = with(v[path[0]], path[1:], change)
		return v
	case []any:
		v = slices.Clone(v)
		i, _ := strconv.Atoi(path[0])
		v[i] = with(v[i], path[1:], change)
		return v
	}
	return value
}

// another is a value of the same type, one of the schema's where those are listed. In the
// place of an empty list it is the default.
func another(value, byDefault any, s schema) any {
	if listed, ok := s["enum"].([]any); ok {
		for _, other := range listed {
			if _, isText := other.(string); isText && other != value {
				return other
			}
		}
	}
	switch v := value.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case string:
		if strings.HasPrefix(v, "http") {
			return v + "/changed"
		}
		return v + "changed"
	}
	return byDefault
}

// get is the value at a path, or nil.
func get(value any, path []string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		default:
			return nil
		}
	}
	return value
}

// TestEveryValueReachesATemplate changes each value by itself and wants another result,
// which may be that it does not go with the others.
func TestEveryValueReachesATemplate(t *testing.T) {
	h := newHelm(t, both[1])
	root := readSchema(t)
	dir := t.TempDir()
	defaults := readValues(t, filepath.Join(chartDir, "values.yaml"))
	render := func(t *testing.T, values any, flags ...string) (output, complaint string) {
		t.Helper()
		data, err := yaml.Marshal(values)
		require.NoError(t, err)
		path := filepath.Join(dir, "values.yaml")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		// The other values need not be of use, only to be seen.
		output, complaint, err = h.tryTemplate(t, append(flags, "--values="+path, "--skip-schema-validation")...)
		if err != nil {
			require.Contains(t, complaint, "execution error at", "a template has failed, and none has refused")
		}
		return output, complaint
	}
	const small = "--set=crds.enabled=false"
	for set, path := range valueSets(t) {
		values := readValues(t, path)
		before, refusal := render(t, values, small)
		require.Empty(t, refusal)
		for _, leaf := range leaves(values, nil) {
			t.Run(set+" "+strings.Join(leaf, "."), func(t *testing.T) {
				s := root
				for _, step := range leaf {
					s = s.at(root, step)
				}
				changed := with(values, leaf, func(value any) any { return another(value, get(defaults, leaf), s.resolve(root)) })
				if leaf[0] == "crds" {
					crds, _ := render(t, values)
					without, _ := render(t, changed)
					assert.NotEqual(t, crds, without)
					return
				}
				after, refusal := render(t, changed, small)
				// Not NotEqual, which would print both.
				assert.False(t, before == after, "nothing is made of it")
				if refusal != "" {
					assert.Contains(t, refusal, leaf[0])
				}
			})
		}
	}
}

// The sets together must have all that the schema has, or the test above would not see
// a value that reaches no template.
func TestTheValueSetsHaveEveryValueOfTheSchema(t *testing.T) {
	root := readSchema(t)
	seen := map[string]bool{}
	// What a definition describes need be seen once, wherever it is used.
	below := func(s schema, path string) string {
		if ref, ok := s["$ref"].(string); ok {
			return ref
		}
		if all, ok := s["allOf"].([]any); ok {
			return all[0].(map[string]any)["$ref"].(string)
		}
		return path
	}
	var look func(value any, s schema, path string)
	look = func(value any, s schema, path string) {
		seen[path] = true
		path = below(s, path)
		switch v := value.(type) {
		case map[string]any:
			for key, nested := range v {
				look(nested, s.at(root, key), path+"."+key)
			}
		case []any:
			for _, nested := range v {
				look(nested, s.at(root, "0"), path+"[]")
			}
		}
	}
	for _, path := range valueSets(t) {
		look(readValues(t, path), root, "")
	}
	var want func(s schema, path string)
	want = func(s schema, path string) {
		if path == ".global" || path == ".enabled" { // for charts above this one
			return
		}
		assert.True(t, seen[path], "no value set has %s", path)
		path = below(s, path)
		s = s.resolve(root)
		if properties, ok := s["properties"].(map[string]any); ok {
			for key := range properties {
				want(s.at(root, key), path+"."+key)
			}
		}
		if s["items"] != nil {
			want(s.at(root, "0"), path+"[]")
		}
	}
	want(root, "")
}

// Every object that the schema describes refuses a key that it does not list.
func TestATypingMistakeIsRefusedWhereverItIs(t *testing.T) {
	root := readSchema(t)
	var look func(part any, path string)
	look = func(part any, path string) {
		switch p := part.(type) {
		case map[string]any:
			if p["type"] == "object" && path != ".properties.global" { // that is for charts above this one
				assert.Contains(t, p, "additionalProperties", path)
				if _, listed := p["properties"]; listed {
					assert.Equal(t, false, p["additionalProperties"], path)
				}
			}
			for key, nested := range p {
				look(nested, path+"."+key)
			}
		case []any:
			for i, nested := range p {
				look(nested, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	look(map[string]any(root), "")

	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		for value, want := range map[string]string{
			"replicas=3":                                "replicas",
			"metrics.serviceMonitors":                   "serviceMonitors",
			"guard.modes.hpa=Deny":                      "hpa",
			"config.limits.maxReplicas=5":               "maxReplicas",
			"affinity.podAntiAffinity.requiredDuring=1": "requiredDuring",
			"config.endpoints[0].name=a,config.endpoints[0].url=http://b,config.endpoints[0].tls=c": "tls",
		} {
			if !strings.Contains(value, "=") {
				value += "=1"
			}
			_, complaint, err := h.tryTemplate(t, "--set="+value)
			require.Error(t, err, value)
			assert.Contains(t, complaint, want)
			assert.Regexp(t, "(?i)additional propert", complaint)
		}
	})
}

func TestValuesThatCannotBeMeantAreRefused(t *testing.T) {
	h := newHelm(t, both[1])
	const (
		endpoint = "config.endpoints[0].name=a,config.endpoints[0].url=http://b,config.endpoints[0]."
		oauth2   = endpoint + "oauth2.client_id=a,config.endpoints[0].oauth2.client_secret_file=/a,config.endpoints[0].oauth2.token_url="
	)
	managerOf := func(i int, group, resource string) string {
		return strings.ReplaceAll("MANAGER.group="+group+",MANAGER.resource="+resource+",MANAGER.version=v1,MANAGER.kind=Scaler,MANAGER.targets=[]",
			"MANAGER", fmt.Sprintf("config.managers[%d]", i))
	}
	for name, tc := range map[string]struct{ value, want string }{
		"no replica":                        {"replicaCount=0", "replicaCount"},
		"an unknown mode of the guard":      {"guard.modes.scale=deny", "scale"},
		"Preserve for HPAs":                 {"guard.modes.horizontalPodAutoscalers=Preserve", "horizontalPodAutoscalers"},
		"no endpoint":                       {"config.endpoints=null", "endpoints"},
		"a password in the clear":           {endpoint + "basic_auth.password=secret", "basic_auth"},
		"a token in the clear":              {endpoint + "authorization.credentials=secret", "authorization"},
		"credentials in a URL":              {"config.endpoints[0].name=a,config.endpoints[0].url=http://user:secret@b", "url"},
		"credentials in a token's URL":      {oauth2 + "http://user:secret@b/token", "token_url"},
		"a query in a token's URL":          {oauth2 + "http://b/token?key=secret", "token_url"},
		"a header with credentials":         {endpoint + "http_headers.authorization.values={secret}", "config.endpoints[0].http_headers.authorization: the operator does not start"},
		"a proxy's header with credentials": {endpoint + "http_headers.Proxy-Authorization.files={/a}", "http_headers.Proxy-Authorization: the operator does not start"},
		"a file of no Secret":               {endpoint + "authorization.credentials_file=prometheus/token", `config.endpoints[0].authorization.credentials_file: no Secret of endpointSecrets brings the file "prometheus/token"`},
		"a file of another Secret":          {endpoint + "http_headers.X-Key.files={a/b},endpointSecrets[0].name=a,endpointSecrets[0].keys={c}", `http_headers.X-Key.files: no Secret of endpointSecrets brings the file "a/b"`},
		"webhooks on the probes' port":      {"webhook.port=8081", "healthPort is 8081, and so is webhook.port"},
		"metrics on the webhooks' port":     {"metrics.port=9443", "metrics.port is 9443, and so is webhook.port"},
		"a label that selects the pods":     {`podLabels.app\.kubernetes\.io/instance=x`, "podLabels has app.kubernetes.io/instance"},
		"a ServiceMonitor of no metrics":    {"metrics.enabled=false,metrics.serviceMonitor.enabled=true", "Set metrics.enabled to true, or metrics.serviceMonitor.enabled to false"},
		"alerts of no metrics":              {"metrics.enabled=false,metrics.prometheusRule.enabled=true", "metrics.prometheusRule.enabled is true and"},
		"a dashboard of no metrics":         {"metrics.enabled=false,metrics.dashboard.enabled=true", "metrics.dashboard.enabled is true and"},
		"every port in place of none":       {"networkPolicy.enabled=true,networkPolicy.apiServerPorts=null", "networkPolicy.apiServerPorts is empty"},
		"a digest that is none":             {"image.digest=latest", "digest"},
		"every port in place of DNS'":       {"networkPolicy.enabled=true,networkPolicy.dnsPorts=null", "networkPolicy.dnsPorts is empty"},
		"two endpoints of one name":         {endpoint + "max_response_bytes=1,config.endpoints[1].name=a,config.endpoints[1].url=http://c", `config.endpoints[1].name is "a", and so is that of config.endpoints[0]`},
		"a replica manager twice":           {managerOf(0, "keda.sh", "scaledobjects") + "," + managerOf(1, "keda.sh", "scaledobjects"), "config.managers[1] is scaledobjects.keda.sh, and so is config.managers[0]"},
		"HPAs as a replica manager":         {managerOf(0, "autoscaling", "horizontalpodautoscalers"), "config.managers[0]: HorizontalPodAutoscalers are looked at anyway"},
		"a Secret beside cert-manager's":    {"certificates.secretName=a", "certificates.secretName is for mode provided, and certificates.mode is cert-manager"},
		"an issuer of no mode":              {"certificates.mode=self-managed,certificates.issuerRef.name=a", "certificates.issuerRef is for mode cert-manager, and certificates.mode is self-managed"},
		"no guard's modes":                  {"guard.modes=null", "modes"},
		"no configuration":                  {"config=null", "config"},
		"a renewal before the beginning":    {"certificates.duration=12h,certificates.renewBefore=720m", "certificates.renewBefore is 720m, and certificates.duration 12h"},
		"readers of metrics for anybody":    {"metrics.secure=false,metrics.readers[0].namespace=a,metrics.readers[0].name=b", "metrics.readers has accounts"},
		"another CA's annotation":           {`webhook.annotations.cert-manager\.io/inject-ca-from=a/b`, "webhook.annotations has cert-manager.io/inject-ca-from"},
		"another install's namespaces":      {`webhook.annotations.autoscale\.example\.com/watch-namespaces=a`, "webhook.annotations has autoscale.example.com/watch-namespaces"},
		"another checksum":                  {"podAnnotations.checksum/config=a", "podAnnotations has checksum/config"},
		"a negative quantity":               {"resources.requests.cpu=-1", "cpu"},
		"an unknown issuer of certificates": {"certificates.mode=manual", "mode"},
		"a quantity that hangs a parser":    {"resources.limits.memory=1e-2147483648", "memory"},
		"a provided Secret without name":    {"certificates.mode=provided", "say in certificates.secretName"},
		"no account":                        {"serviceAccount.create=false", "say in serviceAccount.name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, complaint, err := h.tryTemplate(t, "--set="+tc.value)
			require.Error(t, err)
			assert.Contains(t, complaint, tc.want)
		})
	}
}

// What looks like the values above and is meant.
func TestValuesThatAreMeantAreTaken(t *testing.T) {
	h := newHelm(t, both[1])
	const endpoint = "config.endpoints[0].name=a,config.endpoints[0].url=http://b,config.endpoints[0]."
	for name, value := range map[string]string{
		"the token of the pod's own account":          endpoint + "authorization.credentials_file=/var/run/secrets/kubernetes.io/serviceaccount/token",
		"a file of a Secret, by another way":          endpoint + "tls_config.ca_file=./a/ca.crt,endpointSecrets[0].name=a,endpointSecrets[0].keys={ca.crt}",
		"a parameter that is called as a file is":     endpoint + "oauth2.client_id=a,config.endpoints[0].oauth2.client_secret_file=/a,config.endpoints[0].oauth2.token_url=http://b/t,config.endpoints[0].oauth2.endpoint_params.a_file=b",
		"the probes' port for metrics that are off":   "metrics.enabled=false,metrics.port=8081",
		"no port of the API server without a policy":  "networkPolicy.apiServerPorts=null",
		"cert-manager's own times":                    "certificates.duration=null,certificates.renewBefore=null,metrics.prometheusRule.enabled=true",
		"a quantity that YAML takes for a number":     "resources.requests.cpu=0.5",
		"a label that is close to the selector's own": `podLabels.app\.kubernetes\.io/part-of=x`,
	} {
		t.Run(name, func(t *testing.T) { h.template(t, "--set="+value) })
	}
}

// Off without quotes is YAML's word for false.
func TestAModeThatYAMLTakesForFalseIsOff(t *testing.T) {
	h := newHelm(t, both[1])
	path := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(path, []byte("guard: {modes: {scale: Off, managers: off}}\n"), 0o600))

	rendered := decode(t, h.template(t, "--values="+path))

	var names []string
	for _, o := range ofKind(rendered, "ValidatingAdmissionPolicy") {
		names = append(names, o.GetName())
	}
	assert.ElementsMatch(t, []string{
		"autoscale-operator-guard-deployments", "autoscale-operator-guard-horizontalpodautoscalers", "autoscale-operator-guard-bindings",
	}, names)
}

// A chart above this one may share values with it, and leave it out by a condition.
func TestAChartAboveMayAddItsOwnValues(t *testing.T) {
	withEach(t, func(t *testing.T, h *helm) {
		t.Helper()
		h.template(t, "--set=enabled=true,global.registry=example.com")
	})
}
