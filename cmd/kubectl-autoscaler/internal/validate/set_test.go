package validate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

const profile = `apiVersion: autoscale.example.com/v1alpha1
kind: MetricProfile
metadata: {name: load}
spec:
  endpoint: main
  query: sum(rate(http_requests_total{namespace=$namespace, deployment=$target}[1m]))
  semantics: Total
  allowedNamespaces: [production]
`

// autoscaler is one for a Deployment; more are further fields of its spec, a line each.
func autoscaler(name, target string, more ...string) string {
	return fmt.Sprintf(`apiVersion: autoscale.example.com/v1alpha1
kind: AutoScaler
metadata: {name: %s, namespace: production}
spec:
  targetRef: {name: %s}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - {name: load, type: Prometheus, metricProfileRef: load, targetPerReplica: "100"}
`, name, target) + lines("  ", more)
}

func lines(indent string, all []string) string {
	var b strings.Builder
	for _, line := range all {
		b.WriteString(indent + line + "\n")
	}
	return b.String()
}

func deployment(name string, more ...string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: production}\nspec:\n  template: {}\n", name) + lines("  ", more)
}

const hpa = `apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: production}
spec: {maxReplicas: 9, targetCPUUtilizationPercentage: 50, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`

const scaledObject = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: production}
spec: {scaleTargetRef: {name: web}}
`

// found gives the findings of one run as "level object: text".
func found(t *testing.T, args []string, documents ...string) (int, []string) {
	t.Helper()
	code, report := reported(t, strings.Join(documents, "---\n"), append([]string{"-f", "-"}, args...)...)
	var all []string
	for _, f := range report.Findings {
		text := fmt.Sprintf("%d %s %s: %s", f.Line, f.Level, f.Object, (&Finding{Field: f.Field, Message: f.Message}).Text())
		if f.See != nil {
			text += fmt.Sprintf(" [%d]", f.See.Line)
		}
		all = append(all, text)
	}
	return code, all
}

func withConfig(t *testing.T, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operator.yaml")
	require.NoError(t, os.WriteFile(path, []byte("endpoints: [{name: main, url: 'http://prometheus:9090'}]\n"+text), 0o600))
	return []string{"--complete", "--config", path}
}

func TestTheGivenObjectsAreHeldAgainstEachOther(t *testing.T) {
	const none = ""
	for name, tc := range map[string]struct {
		config    string
		documents []string
		code      int
		want      []string // a part of each finding, in order
	}{
		"nothing to say": {none, []string{profile, deployment("web"), autoscaler("web", "web")}, cli.ExitOK, nil},
		"two AutoScalers of one Deployment": {none, []string{profile, deployment("web"), autoscaler("web", "web"), autoscaler("two", "web")}, cli.ExitFound,
			[]string{`30 error AutoScaler production/two: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "web"`}},
		"the second one may wait": {none, []string{profile, deployment("web"), autoscaler("web", "web"), autoscaler("two", "web", "claimPolicy: Wait")}, cli.ExitOK,
			[]string{`warning AutoScaler production/two: spec.claimPolicy: AutoScaler "web" holds the replica count`}},
		"the second one is a dry run": {none, []string{profile, deployment("web"), autoscaler("web", "web"), autoscaler("two", "web", "dryRun: true")}, cli.ExitOK, nil},
		"the first one is refused for something else": {none, []string{profile, deployment("web"), autoscaler("web", "web", "schedules: [{name: a, start: x, durationSeconds: 60, minReplicas: 3}]"), autoscaler("two", "web")}, cli.ExitFound,
			[]string{"spec.schedules[0].start", `AutoScaler production/two: spec.targetRef.name: Forbidden`}},
		"the same one twice": {none, []string{profile, deployment("web"), autoscaler("web", "web"), autoscaler("web", "web")}, cli.ExitOK,
			[]string{"warning AutoScaler production/web: metadata.name: an object of this name is among the given files already; whichever is applied last counts [16]"}},
		"beside an HPA of an older version": {none, []string{profile, hpa, deployment("web"), autoscaler("web", "web")}, cli.ExitFound,
			[]string{`spec.targetRef.name: Forbidden: HorizontalPodAutoscaler "web" already scales Deployment "web"`}},
		"beside an HPA that comes later": {none, []string{profile, deployment("web"), autoscaler("web", "web"), hpa}, cli.ExitFound,
			[]string{`HorizontalPodAutoscaler "web" already scales Deployment "web"`}},
		"beside a ScaledObject": {none, []string{profile, deployment("web"), autoscaler("web", "web"), scaledObject, hpa}, cli.ExitFound,
			[]string{`ScaledObject "web" already scales Deployment "web"`}},
		"beside a ScaledObject that is registered no more": {"managers: []", []string{profile, deployment("web"), autoscaler("web", "web"), scaledObject}, cli.ExitOK, nil},
		"a ScaledObject that cannot be read": {none, []string{profile, deployment("web"), autoscaler("web", "web"), strings.Replace(scaledObject, "{name: web}}", "5}", 1)}, cli.ExitOK,
			[]string{"warning ScaledObject production/web: what this object says could not be read"}},
		"a Deployment that sets the count": {none, []string{profile, deployment("web", "replicas: 3"), autoscaler("web", "web")}, cli.ExitOK,
			[]string{`15 warning Deployment production/web: spec.replicas: AutoScaler "web" is to own this count; leave it out of the manifest, or every apply asks for 3 again [17]`}},
		"a Deployment of a dry run may set it": {none, []string{profile, deployment("web", "replicas: 3"), autoscaler("web", "web", "dryRun: true")}, cli.ExitOK, nil},
		"no Deployment":                        {none, []string{profile, autoscaler("web", "web")}, cli.ExitOK, []string{`there is no Deployment "web" in namespace "production" yet`}},
		"no profile":                           {none, []string{deployment("web"), autoscaler("web", "web")}, cli.ExitFound, []string{"there is no such MetricProfile"}},
		"a profile of another namespace": {none, []string{strings.Replace(profile, "[production]", "[staging]", 1), deployment("web"), autoscaler("web", "web")}, cli.ExitFound,
			[]string{`spec.metrics[0].metricProfileRef: Forbidden: MetricProfile "load" does not allow namespace "production"`}},
		"a profile that is refused itself": {none, []string{strings.Replace(profile, "sum(rate(http_requests_total{namespace=$namespace, deployment=$target}[1m]))", "vector(", 1), deployment("web"), autoscaler("web", "web")}, cli.ExitFound,
			[]string{"error MetricProfile load: spec.query: Invalid value: query: position 8: unclosed left parenthesis", `note AutoScaler production/web: spec.metrics[0].metricProfileRef: MetricProfile "load" would be refused itself`}},
		"an endpoint that is not configured": {none, []string{strings.Replace(profile, "main", "other", 1)}, cli.ExitFound, []string{`spec.endpoint: Unsupported value: "other"`}},
		"a limit of the platform":            {"limits: {max_replicas: 10}", []string{profile, deployment("web"), autoscaler("web", "web")}, cli.ExitFound, []string{"the platform allows at most 10 replicas"}},
		"a default of the platform": {"defaults: {claim_policy: Wait}", []string{profile, hpa, deployment("web"), autoscaler("web", "web")}, cli.ExitOK,
			[]string{`warning AutoScaler production/web: spec.claimPolicy: HorizontalPodAutoscaler "web" scales the Deployment`}},
		"a rule over others of the namespace": {"rules: [{name: few, action: Deny, expression: others.size() < 1, message: one is enough}]",
			[]string{profile, deployment("a"), deployment("b"), autoscaler("a", "a"), autoscaler("b", "b")}, cli.ExitFound, []string{"AutoScaler production/b: spec: Forbidden: platform rule \"few\": one is enough"}},
		"a rule over a namespace that is not given": {"rules: [{name: labeled, action: Deny, expression: has(namespaceObject.metadata.labels.team), message: no team}]",
			[]string{profile, deployment("web"), autoscaler("web", "web")}, cli.ExitOK, []string{`note AutoScaler production/web: metadata.namespace: rules of the platform look at Namespace "production"`}},
		"a rule over a namespace that is given": {"rules: [{name: labeled, action: Deny, expression: '\"team\" in namespaceObject.metadata.labels', message: no team}]",
			[]string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: production, labels: {a: b}}\n", profile, deployment("web"), autoscaler("web", "web")}, cli.ExitFound, []string{"no team"}},
		"a rule over who asks": {"rules: [{name: who, action: Deny, expression: request.userInfo.username != 'eve', message: not eve}]",
			[]string{profile, deployment("web"), autoscaler("web", "web")}, cli.ExitOK, []string{"rules of the platform look at the request"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, all := found(t, withConfig(t, tc.config), tc.documents...)
			assert.Equal(t, tc.code, code)
			require.Len(t, all, len(tc.want), "%v", all)
			for i, want := range tc.want {
				assert.Contains(t, all[i], want)
			}
		})
	}
}

func TestWhatOnlyAClusterKnowsIsANote(t *testing.T) {
	code, all := found(t, nil, profile, autoscaler("web", "web", "claimPolicy: Reject"), strings.ReplaceAll(autoscaler("other", "other"), "metricProfileRef: load", "metricProfileRef: elsewhere, parameters: {queue: a}"))

	assert.Equal(t, cli.ExitOK, code)
	require.Len(t, all, 4, "%v", all)
	assert.Contains(t, all[0], `note MetricProfile load: spec.endpoint: whether there is an endpoint "main"`)
	assert.Contains(t, all[1], `note AutoScaler production/web: spec.targetRef.name: Deployment "web" is not among the given files`)
	assert.Contains(t, all[2], `note AutoScaler production/other: spec.targetRef.name: Deployment "other"`)
	assert.Contains(t, all[3], `note AutoScaler production/other: spec.metrics[0].metricProfileRef: MetricProfile "elsewhere" is not among the given files`)

	code, all = found(t, nil, strings.ReplaceAll(autoscaler("web", "web"), "maxReplicas: 20", "maxReplicas: 2000"), autoscaler("two", "web"))
	assert.Equal(t, cli.ExitFound, code, "what the files do tell is found all the same")
	require.Len(t, all, 6, "%v", all)
}

func TestObjectsWithoutANamespaceAreOfTheOneThatIsMeant(t *testing.T) {
	documents := []string{profile, strings.ReplaceAll(deployment("web"), ", namespace: production", ""), strings.ReplaceAll(autoscaler("web", "web"), ", namespace: production", "")}

	code, all := found(t, append(withConfig(t, ""), "-n", "production"), documents...)
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, all)

	code, all = found(t, withConfig(t, ""), documents...)
	assert.Equal(t, cli.ExitFound, code)
	require.Len(t, all, 1)
	assert.Contains(t, all[0], `AutoScaler default/web: spec.metrics[0].metricProfileRef: Forbidden: MetricProfile "load" does not allow namespace "default"`)
}

func TestAnObjectOfAnotherNamespaceThanIsAskedForIsRefusedAsByKubectl(t *testing.T) {
	documents := []string{profile, deployment("web"), strings.ReplaceAll(autoscaler("web", "web"), ", namespace: production", "")}

	code, all := found(t, append(withConfig(t, ""), "-n", "production"), documents...)
	assert.Equal(t, cli.ExitOK, code, "%v", all)

	code, all = found(t, append(withConfig(t, ""), "-n", "other"), profile, deployment("web"), autoscaler("web", "web"))
	assert.Equal(t, cli.ExitFound, code)
	require.Len(t, all, 2, "%v", all)
	assert.Contains(t, all[0], `error Deployment production/web: metadata.namespace: the object is of namespace "production", and --namespace asks for "other"`)
	assert.Contains(t, all[1], `error AutoScaler production/web: metadata.namespace: `)
}

func TestFC12FC13_WhatHangsAQuantityParserIsRefusedAtOnce(t *testing.T) {
	for _, value := range []string{`"1e-2147483648"`, `"2E6024865272343"`, `"1e1.5"`, `".07893E985.90504"`, `"0e9999"`, `"1e400"`, `"Ki"`, "1e-2147483648", "1.5", "null"} {
		code, all := found(t, nil, strings.ReplaceAll(autoscaler("web", "web"), `"100"`, value))
		assert.Equal(t, cli.ExitFound, code, value)
		assert.Contains(t, strings.Join(all, "\n"), "spec.metrics[0].targetPerReplica", value)
	}
}

func TestFC13_AnExtremeQuantityOfAnotherObjectIsNotRead(t *testing.T) {
	const extreme = `"1e-2147483648"`
	code, all := found(t, withConfig(t, ""), profile, autoscaler("web", "web"),
		deployment("web", "replicas: 3")+"  paused: {resources: {requests: {cpu: "+extreme+"}}}\n")
	assert.Equal(t, cli.ExitOK, code)
	require.Len(t, all, 1, "%v", all)
	assert.Contains(t, all[0], `Deployment production/web: spec.replicas: AutoScaler "web" is to own this count`)

	code, all = found(t, withConfig(t, ""), profile, autoscaler("web", "web"), deployment("web"),
		strings.ReplaceAll(hpa, "maxReplicas: 9", "maxReplicas: 9, metrics: [{averageValue: "+extreme+"}]"))
	assert.Equal(t, cli.ExitFound, code, "its target is known all the same")
	require.Len(t, all, 2, "%v", all)
	assert.Contains(t, all[0], `HorizontalPodAutoscaler "web" already scales Deployment "web"`)
	assert.Contains(t, all[1], "29 warning HorizontalPodAutoscaler production/web: spec.metrics[0].averageValue: to read this number as a quantity would take for ever")

	code, all = found(t, withConfig(t, ""), profile, autoscaler("web", "web"), deployment("web"),
		strings.ReplaceAll(scaledObject, "spec: {", "spec: {triggers: [{metadata: {threshold: "+extreme+"}}], "))
	assert.Equal(t, cli.ExitOK, code)
	require.Len(t, all, 1, "%v", all)
	assert.Contains(t, all[0], "29 warning ScaledObject production/web: spec.triggers[0].metadata.threshold: to read this number as a quantity would take for ever, so the object was left out of account")

	code, all = found(t, withConfig(t, ""), profile, deployment("web", "replicas: many"))
	assert.Equal(t, cli.ExitOK, code)
	require.Len(t, all, 1, "%v", all)
	assert.Contains(t, all[0], "warning Deployment production/web: what this object says could not be read")
}

func TestGeneratedNamesAreOfDifferentObjects(t *testing.T) {
	generated := func(target string) string {
		return strings.ReplaceAll(autoscaler("x", target), "{name: x, ", "{generateName: a-, ")
	}
	code, all := found(t, withConfig(t, ""), profile, deployment("web"), generated("web"), generated("web"), autoscaler("a-00001", "web"))
	assert.Equal(t, cli.ExitFound, code)
	require.Len(t, all, 2, "%v", all)
	assert.Contains(t, all[0], `error AutoScaler production/a-…: spec.targetRef.name: Forbidden: the replica count of Deployment "web" is held by AutoScaler "a-00002"`)
	assert.Contains(t, all[1], `error AutoScaler production/a-00001: spec.targetRef.name: Forbidden: `)

	code, all = found(t, withConfig(t, ""), profile, deployment("a"), deployment("b"), generated("a"), generated("b"))
	assert.Equal(t, cli.ExitOK, code)
	assert.Empty(t, all)
}

func TestManyAutoScalersAreAnsweredInTime(t *testing.T) {
	for name, target := range map[string]func(int) string{
		"of one Deployment": func(int) string { return "web" },
		"of their own":      func(i int) string { return fmt.Sprintf("web-%d", i) },
	} {
		t.Run(name, func(t *testing.T) {
			documents := []string{profile}
			for i := range 1000 {
				documents = append(documents, autoscaler(fmt.Sprintf("web-%d", i), target(i)))
			}
			began := time.Now()
			_, all := found(t, nil, documents...)
			assert.Less(t, time.Since(began), 30*time.Second)
			assert.GreaterOrEqual(t, len(all), 1000)
		})
	}
}

func TestAKindThatDoesNotExistSaysWhichDo(t *testing.T) {
	code, all := found(t, nil, "apiVersion: autoscale.example.com/v1alpha1\nkind: Autoscaler\nmetadata: {name: web}\n")
	assert.Equal(t, cli.ExitFound, code)
	require.Len(t, all, 1)
	assert.Contains(t, all[0], "2 error Autoscaler default/web: kind: there is no Autoscaler in autoscale.example.com/v1alpha1; this version has AutoScaler, MetricProfile, ScaleBinding, ScaleGuard in autoscale.example.com/v1alpha1")
}

func TestAnObjectIsNotFloodedWithFindings(t *testing.T) {
	code, all := found(t, nil, autoscaler("web", "web")+manyFields(500))
	assert.Equal(t, cli.ExitFound, code)
	require.Len(t, all, maxPerObject+1)
	assert.Contains(t, strings.Join(all, "\n"), "and 400 more findings for this object")
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  field%d: 1\n", i)
	}
	return b.String()
}

func TestAnObjectOfAMillionPartsIsAnsweredAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"items":        {autoscaler("web", "web", "schedules: ["+strings.Repeat("{},", 100000)+"{}]"), "spec: it has 100"},
		"numbers":      {autoscaler("web", "web", "schedules: ["+strings.Repeat("1,", 250000)+"1]"), "spec: it has 250"},
		"fields":       {autoscaler("web", "web") + manyFields(40000), "and 39900 more findings"},
		"lists":        {autoscaler("web", "web", "schedules: ["+strings.Repeat("["+strings.Repeat("[],", 100)+"[]],", 100)+"[]]"), "spec: it has 102"},
		"a long value": {strings.ReplaceAll(autoscaler("web", "web"), `"100"`, `"`+strings.Repeat("9", 2<<20)+`"`), "targetPerReplica: Too long"},
		"a long query": {strings.ReplaceAll(profile, "sum(", strings.Repeat("(", 2<<20)), "spec.query: Too long"},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			code, all := found(t, nil, tc.text)
			assert.Less(t, time.Since(began), 30*time.Second)
			assert.Equal(t, cli.ExitFound, code)
			assert.Contains(t, strings.Join(all, "\n"), tc.want)
		})
	}
}
