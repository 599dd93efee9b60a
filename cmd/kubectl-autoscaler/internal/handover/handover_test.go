package handover

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/scaling/spec"
)

const hpaHead = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: production}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
`

const kedaHead = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: production}
spec:
  scaleTargetRef: {name: web}
`

// run gives what the command prints for a file.
func run(t *testing.T, manifest string, args ...string) (out, advice string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(manifest), Out: &o, Err: &e}
	c := Command(streams)
	c.SilenceUsage, c.SilenceErrors = true, true
	code = cli.Execute(t.Context(), c, streams, append([]string{"-f", "-"}, args...))
	return o.String(), e.String(), code
}

// draft is what the command drafts, decoded; it must be valid by itself.
func draft(t *testing.T, manifest string) (a *v1alpha1.AutoScaler, profiles []*v1alpha1.MetricProfile, advice string) {
	t.Helper()
	out, advice, code := run(t, manifest)
	require.Zero(t, code, advice)
	documents := strings.Split(out, "---\n")
	for _, document := range documents[:len(documents)-1] {
		p := &v1alpha1.MetricProfile{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(document), p))
		require.Empty(t, spec.ValidateMetricProfile(p))
		profiles = append(profiles, p)
	}
	a = &v1alpha1.AutoScaler{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), a))
	require.Empty(t, spec.ValidateAutoScaler(a, v1alpha1.DefaultLimits))
	assert.True(t, a.Spec.DryRun)
	assert.Equal(t, v1alpha1.ClaimWait, a.Spec.ClaimPolicy)
	for i := range a.Spec.Metrics {
		assert.Equal(t, profiles[i].Name, a.Spec.Metrics[i].MetricProfileRef)
	}
	return a, profiles, advice
}

func TestAnHPAWithoutMetricsIsOneOfTheCPU(t *testing.T) {
	a, profiles, advice := draft(t, hpaHead)

	require.Len(t, profiles, 1)
	assert.Equal(t, "avg(sum by (pod) (rate(container_cpu_usage_seconds_total{namespace=$namespace, deployment=$target, container!=\"\"}[2m])))", profiles[0].Spec.Query)
	assert.Equal(t, v1alpha1.SemanticsPerReplicaAverage, profiles[0].Spec.Semantics)
	assert.Equal(t, []v1alpha1.NamespaceName{"production"}, profiles[0].Spec.AllowedNamespaces)
	assert.Equal(t, "web", a.Spec.TargetRef.Name)
	assert.Equal(t, []int32{2, 20}, []int32{a.Spec.MinReplicas, a.Spec.MaxReplicas})
	assert.Equal(t, "0.8", a.Spec.Metrics[0].TargetPerReplica)
	assert.Contains(t, advice, "80 % of the requested cpu, and the request is not known")
	assert.Equal(t, int32(20), *a.Spec.Behavior.ScaleUpMaxStep, "100 % of maxReplicas are more than 4 pods")
	assert.Contains(t, advice, "scaleUp: 100 % per 15 s has become 20 replicas per poll of 15 s, the share of maxReplicas (20)")
	assert.Contains(t, advice, `The load of metric "cpu" is the total of all replicas, not their mean: record sum(sum by (pod) (rate(container_cpu_usage_seconds_total{namespace="production", deployment="web", container!=""}[2m])))`)
	assert.Nil(t, a.Spec.Behavior.ScaleDownMaxStep)
	assert.Equal(t, int32(300), *a.Spec.Behavior.ScaleDownStabilizationSeconds)
	assert.Equal(t, "0.1", a.Spec.Behavior.ToleranceUp)
	for _, step := range []string{
		"kubectl autoscaler replay", "kubectl apply -f draft.yaml", `{"spec":{"dryRun":false}}`, "kubectl -n production delete hpa web", "docs/rollout.md",
		`{"spec":{"paused":true,"pausedUntil":null}}`, "kubectl -n production wait scalebinding/web --for=jsonpath='{.spec.guard}'=Open",
	} {
		assert.Contains(t, advice, step)
	}
}

func TestTheTargetOfAResourceIsOfTheRequest(t *testing.T) {
	d := newDraft("hpa web", "production", "web", "web", 2, 20)
	f := Facts{Endpoint: "main", Requests: map[string]map[string]float64{"app": {"cpu": 0.5, "memory": 1 << 30}, "sidecar": {"cpu": 0.25}}}
	for name, tc := range map[string]struct{ resource, container, want string }{
		"of all containers": {"cpu", "", "0.45"},
		"of one":            {"cpu", "app", "0.3"},
		"of the memory":     {"memory", "", "644245094.4"},
	} {
		t.Run(name, func(t *testing.T) {
			d.AutoScaler.Spec.Metrics = nil
			d.resource(tc.resource, tc.container, utilization(60), f)
			assert.Equal(t, tc.want, d.AutoScaler.Spec.Metrics[0].TargetPerReplica)
		})
	}
}

func TestMetricsOfAdapters(t *testing.T) {
	a, profiles, advice := draft(t, hpaHead+`  metrics:
  - type: External
    external:
      metric: {name: "queue-length", selector: {matchLabels: {queue: orders}}}
      target: {type: AverageValue, averageValue: "30"}
  - type: Pods
    pods:
      metric: {name: http_requests}
      target: {type: AverageValue, averageValue: 500m}
  - type: Object
    object:
      describedObject: {kind: Ingress, name: shop, apiVersion: networking.k8s.io/v1}
      metric: {name: http_requests}
      target: {type: Value, value: 2k}
`)

	require.Len(t, profiles, 3)
	assert.Equal(t, `sum({__name__="queue-length", namespace=$namespace, queue="orders"})`, profiles[0].Spec.Query)
	assert.Equal(t, v1alpha1.SemanticsTotal, profiles[0].Spec.Semantics)
	assert.Equal(t, "avg(http_requests{namespace=$namespace})", profiles[1].Spec.Query)
	assert.Equal(t, v1alpha1.SemanticsPerReplicaAverage, profiles[2].Spec.Semantics)
	assert.Equal(t, []string{"queue-length", "http-requests", "http-requests-2"}, []string{a.Spec.Metrics[0].Name, a.Spec.Metrics[1].Name, a.Spec.Metrics[2].Name})
	assert.Equal(t, []string{"30", "0.5", "2000"}, []string{a.Spec.Metrics[0].TargetPerReplica, a.Spec.Metrics[1].TargetPerReplica, a.Spec.Metrics[2].TargetPerReplica})
	assert.Contains(t, advice, `Metric "http_requests" is of Ingress "shop"`)
	assert.Contains(t, advice, "which the HPA multiplies the count by")
}

func TestPoliciesOfAnHPA(t *testing.T) {
	for name, tc := range map[string]struct {
		behavior string
		want     v1alpha1.Behavior
		note     string
	}{
		"by pods": {
			"scaleUp: {policies: [{type: Pods, value: 3, periodSeconds: 15}]}, scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 1, periodSeconds: 120}]}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(3)), ScaleDownMaxStep: new(int32(1)), ScaleDownMinIntervalSeconds: new(int32(120)), ScaleDownStabilizationSeconds: new(int32(60))}, "",
		},
		"a rate": {
			"scaleUp: {stabilizationWindowSeconds: 30, policies: [{type: Pods, value: 10, periodSeconds: 300}]}",
			v1alpha1.Behavior{ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 10, PeriodSeconds: 300}, ScaleUpStabilizationSeconds: new(int32(30)), ScaleDownStabilizationSeconds: new(int32(300))}, "",
		},
		"the slowest": {
			"scaleUp: {selectPolicy: Min, policies: [{type: Pods, value: 8, periodSeconds: 15}, {type: Pods, value: 2, periodSeconds: 15}]}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(2)), ScaleDownStabilizationSeconds: new(int32(300))}, "",
		},
		"a share": {
			"scaleDown: {policies: [{type: Percent, value: 10, periodSeconds: 15}]}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(20)), ScaleDownMaxStep: new(int32(1)), ScaleDownStabilizationSeconds: new(int32(300))}, "scaleDown: 10 % per 15 s has become 1 replica per poll of 15 s, the share of 2 (minReplicas, as the present count is not known): slower than the HPA at higher counts, faster at lower ones",
		},
		"a share for scaling up": {
			"scaleUp: {policies: [{type: Percent, value: 50, periodSeconds: 15}]}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(10)), ScaleDownStabilizationSeconds: new(int32(300))},
			"scaleUp: 50 % per 15 s has become 10 replicas per poll of 15 s, the share of maxReplicas (20): never slower than the HPA, and faster at small counts, where the HPA takes the share of what there is. Lower behavior.scaleUpMaxStep",
		},
		"a share over a period": {
			"scaleUp: {policies: [{type: Percent, value: 10, periodSeconds: 60}]}",
			v1alpha1.Behavior{ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 2, PeriodSeconds: 60}, ScaleDownStabilizationSeconds: new(int32(300))},
			"scaleUp: 10 % per 60 s has become 2 replicas in any 60 s",
		},
		"periods shorter than a poll": {
			"scaleUp: {policies: [{type: Pods, value: 2, periodSeconds: 5}]}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(6)), ScaleDownStabilizationSeconds: new(int32(300))}, "",
		},
		"a burst, and a slow rise": {
			"scaleUp: {policies: [{type: Pods, value: 4, periodSeconds: 60}, {type: Pods, value: 1, periodSeconds: 15}]}",
			v1alpha1.Behavior{ScaleUpRate: &v1alpha1.ScaleRate{MaxReplicas: 8, PeriodSeconds: 60}, ScaleDownStabilizationSeconds: new(int32(300))},
			"they have become their sum, 8 replicas in any 60 s",
		},
		"never down": {
			"scaleDown: {selectPolicy: Disabled}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(20)), ScaleDownStabilizationSeconds: new(int32(300))}, "scaleDown is disabled in the HPA",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, advice := draft(t, hpaHead+"  behavior: {"+tc.behavior+"}\n")

			tc.want.ToleranceUp, tc.want.ToleranceDown = "0.1", "0.1"
			assert.Equal(t, &tc.want, a.Spec.Behavior)
			assert.Contains(t, advice, tc.note)
		})
	}
}

func TestAScaledObject(t *testing.T) {
	a, profiles, advice := draft(t, kedaHead+`  minReplicaCount: 0
  maxReplicaCount: 30
  cooldownPeriod: 100
  triggers:
  - type: prometheus
    metadata:
      serverAddress: http://prometheus.monitoring:9090
      query: sum(rate(http_requests_total{namespace="production", deployment='web'}[1m]))
      threshold: "100"
  - type: cron
    metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: "10"}
  fallback: {failureThreshold: 4, replicas: 6}
  advanced: {restoreToOriginalReplicaCount: true}
`)

	require.Len(t, profiles, 1)
	assert.Equal(t, `sum(rate(http_requests_total{namespace=$namespace, deployment=$target}[1m]))`, profiles[0].Spec.Query)
	assert.Equal(t, "100", a.Spec.Metrics[0].TargetPerReplica)
	assert.Equal(t, []int32{1, 30, 30}, []int32{a.Spec.MinReplicas, a.Spec.MaxReplicas, a.Spec.PollIntervalSeconds})
	assert.Equal(t, []v1alpha1.Schedule{{Name: "cron-1", Start: "0 8 * * *", TimeZone: "UTC", DurationSeconds: 36000, MinReplicas: new(int32(10))}}, a.Spec.Schedules)
	assert.Equal(t, &v1alpha1.Fallback{FloorReplicas: 6, AfterSeconds: 120}, a.Spec.Fallback)
	for _, note := range []string{
		"there is no scaling to zero", "has become schedule \"cron-1\": at least 10 replicas for 10h0m0s from each start", "KEDA takes no data", "idleReplicaCount and cooldownPeriod are about zero",
		`"restoreToOriginalReplicaCount":false`, `asks http://prometheus.monitoring:9090: that must be the endpoint "main"`, "delete scaledobject web",
	} {
		assert.Contains(t, advice, note)
	}
}

func TestATargetThatIsNoneIsToldOf(t *testing.T) {
	for _, threshold := range []string{"", "many", "NaN", "0", "-5", "1e999"} {
		a, _, advice := draft(t, kedaHead+`  triggers:
  - type: prometheus
    metadata: {serverAddress: "http://who:secret@prometheus:9090", query: 'sum(up{namespace="production"})', threshold: "`+threshold+`"}
`)

		assert.Equal(t, "1", a.Spec.Metrics[0].TargetPerReplica, threshold)
		assert.Contains(t, advice, "targetPerReplica is 1 and must be set", threshold)
		assert.NotContains(t, advice, "secret")
	}
}

func TestWhatCannotBeHandedOver(t *testing.T) {
	stateful := strings.Replace(hpaHead, "kind: Deployment", "kind: StatefulSet", 1)
	for name, tc := range map[string]struct{ manifest, want string }{
		"an HPA of a StatefulSet":        {stateful, `scales StatefulSet "web", and an AutoScaler scales Deployments only`},
		"a ScaledObject of another kind": {strings.Replace(kedaHead, "{name: web}\n", "{name: web, kind: StatefulSet}\n", 2), "Deployments only"},
		"something else":                 {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", `it holds ConfigMap "x"`},
		"nothing":                        {"", "it holds nothing"},
		"no YAML":                        {"\x00\x01", "error: stdin:"},
		"a key that stands twice":        {hpaHead + "  maxReplicas: 30\n", "the key maxReplicas stands there twice"},
		"two of them":                    {hpaHead + "---" + kedaHead, "it holds hpa/web, scaledobject/web: say which one, as in kubectl autoscaler handover -f - hpa/web"},
		"a field of another type":        {strings.Replace(hpaHead, "minReplicas: 2", "minReplicas: many", 1), "HorizontalPodAutoscaler production/web"},
		"an enormous file":               {strings.Repeat("# nothing\n", 500_000), "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			out, complaint, code := run(t, tc.manifest)

			assert.Equal(t, cli.ExitTrouble, code)
			assert.Empty(t, out)
			assert.Contains(t, complaint, tc.want)
		})
	}
}

// metric is an HPA of an external metric with a target.
func metric(target string) string {
	return hpaHead + "  metrics: [{type: External, external: {metric: {name: q}, target: " + target + "}}]\n"
}

func TestFC13_AnExtremeQuantityIsAnErrorAtOnce(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"a mean":         {metric(`{type: AverageValue, averageValue: "1e-2147483648"}`), "spec.metrics[0].external.target.averageValue"},
		"a value":        {metric(`{type: Value, value: 2E6024865272343}`), "spec.metrics[0].external.target.value"},
		"a tolerance":    {hpaHead + "  behavior: {scaleUp: {tolerance: 2E6024865272343}}\n", "spec.behavior.scaleUp.tolerance"},
		"that of KEDA's": {kedaHead + `  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleDown: {tolerance: "1e-2147483648"}}}}`, "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.tolerance"},
	} {
		t.Run(name, func(t *testing.T) {
			out, complaint, code := run(t, tc.manifest)

			assert.Equal(t, cli.ExitTrouble, code)
			assert.Empty(t, out)
			assert.Contains(t, complaint, tc.want+" is no quantity")
		})
	}
	_, _, code := run(t, strings.Replace(metric(`{type: Value, value: "1e-2147483648"}`), "spec:", "Spec:", 1))
	assert.Equal(t, cli.ExitTrouble, code, "Spec is not spec")
}

func TestNamesThatEndInCommandsAreValid(t *testing.T) {
	for name, tc := range map[string]struct{ metadata, want string }{
		"commands":                     {`{name: "w\e[2J; rm -rf ~ $(id)", namespace: production}`, `metadata.name "w\x1b[2J; rm -rf ~ $(id)": a lowercase RFC 1123 subdomain`},
		"commands in the namespace":    {`{name: web, namespace: "a; id"}`, `metadata.namespace "a; id": a lowercase RFC 1123 label`},
		"another key of the same name": {`{name: web, Name: "w; id"}`, ""},
		"no name":                      {`{namespace: production}`, "metadata.name is missing"},
		"a name that is no text":       {`{name: 1, namespace: production}`, "metadata.name is 1, which is no text"},
		"a namespace that is no text":  {`{name: web, namespace: n}`, "metadata.namespace is false, which is no text: put it in quotation marks"},
	} {
		for _, head := range []string{hpaHead, kedaHead} {
			t.Run(name, func(t *testing.T) {
				out, complaint, code := run(t, strings.Replace(head, "{name: web, namespace: production}", tc.metadata, 1))

				assert.NotContains(t, complaint, "delete hpa w;")
				assert.NotContains(t, complaint, "delete scaledobject w;")
				if tc.want == "" {
					assert.Zero(t, code)
					return
				}
				assert.Equal(t, cli.ExitTrouble, code)
				assert.Empty(t, out)
				assert.Contains(t, complaint, "error: stdin:2:1: ")
				assert.Contains(t, complaint, tc.want)
			})
		}
	}
	_, complaint, code := run(t, strings.Replace(hpaHead, ", namespace: production", "", 1), "-n", "a; id")
	assert.Equal(t, cli.ExitTrouble, code)
	assert.Contains(t, complaint, "RFC 1123 label")
}

func TestNotesCannotMoveTheCursor(t *testing.T) {
	_, advice, code := run(t, strings.ReplaceAll(metric(`{type: Value, value: 1}`), "name: q", `name: "q\e[2J\nerror: x"`))
	assert.Zero(t, code)
	assert.NotContains(t, advice, "\x1b")
	assert.NotContains(t, advice, "\nerror")

	_, advice, code = run(t, kedaHead+`  triggers: [{type: "x\e[2J\nerror: y", name: "z\e"}]`+"\n")
	assert.Zero(t, code)
	assert.NotContains(t, advice, "\x1b")
	assert.NotContains(t, advice, "\nerror")
}

func TestAddressesAreToldWithoutSecrets(t *testing.T) {
	for given, want := range map[string]string{ //nolint:gosec // made up
		"https://user:secret@prom.example:9090/a?token=secret#secret": "https://prom.example:9090/a",
		"http://prom:9090/?secret":                                    "http://prom:9090/",
		"user:secret@prom:9090":                                       "an address that the ScaledObject does not have",
		"":                                                            "an address that the ScaledObject does not have",
	} {
		assert.Equal(t, want, address(given), given)
	}
}

func TestOneOfSeveralInAFile(t *testing.T) {
	several := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---" + hpaHead + "---" + strings.Replace(hpaHead, "name: web, namespace", "name: other, namespace", 1)

	out, advice, code := run(t, several, "hpa/other")
	assert.Zero(t, code, advice)
	assert.Contains(t, out, "name: other\n")
	assert.Equal(t, 1, strings.Count(out, "kind: AutoScaler"))

	_, complaint, code := run(t, several, "so/other")
	assert.Equal(t, cli.ExitTrouble, code)
	assert.Contains(t, complaint, `it holds no ScaledObject "other", but hpa/web, hpa/other`)
}

// TestTheDraftIsNeverSlowerThanTheHPA: what the HPA's defaults reach in four steps the
// draft does too.
func TestTheDraftIsNeverSlowerThanTheHPA(t *testing.T) {
	a, _, _ := draft(t, strings.Replace(hpaHead, "maxReplicas: 20", "maxReplicas: 100", 1))

	hpa, ours := int32(2), int32(2)
	for steps := 0; hpa < 100; steps++ {
		hpa, ours = min(100, max(hpa+4, 2*hpa)), min(100, ours+*a.Spec.Behavior.ScaleUpMaxStep)
		assert.GreaterOrEqual(t, ours, hpa)
		require.Less(t, steps, 6)
	}
}

func TestCronTriggers(t *testing.T) {
	for name, tc := range map[string]struct {
		start, end string
		want       time.Duration
		complaint  string
	}{
		"by day":                       {"0 8 * * *", "30 18 * * *", 10*time.Hour + 30*time.Minute, ""},
		"over night":                   {"0 22 * * *", "0 6 * * *", 8 * time.Hour, ""},
		"on working days":              {"0 8 * * 1-5", "0 18 * * 1-5", 10 * time.Hour, ""},
		"the weekend":                  {"0 20 * * 5", "0 6 * * 1", 58 * time.Hour, ""},
		"once a year":                  {"0 0 24 12 *", "0 0 27 12 *", 72 * time.Hour, ""},
		"twice a day":                  {"0 8,14 * * *", "0 10,16 * * *", 2 * time.Hour, ""},
		"nights of working days":       {"0 22 * * 1-5", "0 6 * * 1-5", 0, "by one duration"},
		"two lengths":                  {"0 8,14 * * *", "0 10,17 * * *", 0, "by one duration"},
		"starts within":                {"0 * * * *", "0 18 * * *", 0, "by one duration"},
		"longer than a schedule lasts": {"0 0 1 * *", "0 0 20 * *", 0, "by one duration"},
		"an end that never comes":      {"0 0 1 * *", "0 0 30 2 *", 0, "by one duration"},
		"a start that never comes":     {"0 0 30 2 *", "0 0 1 * *", 0, "it never starts"},
		"no cron":                      {"often", "0 6 * * *", 0, "expected exactly 5 fields"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := between(tc.start, tc.end)
			assert.Equal(t, tc.want, got)
			if tc.complaint != "" {
				assert.ErrorContains(t, err, tc.complaint)
			} else {
				assert.NoError(t, err)
			}
		})
	}
}

func TestACronTriggerThatIsNoScheduleIsToldOf(t *testing.T) {
	a, _, advice := draft(t, kedaHead+`  minReplicaCount: 2
  triggers:
  - {type: prometheus, metadata: {serverAddress: "http://p:9090", query: 'sum(up{namespace="production"})', threshold: "1"}}
  - {type: cron, name: nights, metadata: {timezone: Europe/Berlin, start: 0 22 * * 1-5, end: 0 6 * * 1-5, desiredReplicas: "10"}}
  - {type: cron, name: low, metadata: {timezone: Europe/Berlin, start: 0 22 * * *, end: 0 6 * * *, desiredReplicas: "1"}}
`)

	assert.Empty(t, a.Spec.Schedules)
	assert.Contains(t, advice, `Trigger nights of type cron (10 replicas from "0 22 * * 1-5" to "0 6 * * 1-5", Europe/Berlin) is not translated: its ends do not follow its starts by one duration`)
	assert.Contains(t, advice, "Trigger low of type cron asks for 1 replica, no more than minReplicas")
}

func TestCompletionOffersThePrefixes(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for typed, want := range map[string]string{"": "hpa/\nscaledobject/\n:6\n", "hpa/": ":4\n"} {
		var out, complaint bytes.Buffer
		c := Command(cli.Streams{Out: &out, Err: &complaint})
		c.SetOut(&out)
		c.SetArgs([]string{"__complete", typed})
		require.NoError(t, c.Execute())
		assert.Equal(t, want, out.String())
	}
}

func TestTheReferenceOfAnObject(t *testing.T) {
	for given, want := range map[string]string{
		"hpa/web": kindHPA, "horizontalpodautoscalers.autoscaling/web": kindHPA, "hpa web": kindHPA, "ScaledObject/web": kindScaledObject, "so/web": kindScaledObject,
	} {
		kind, name, err := parseReference(strings.Fields(given))
		require.NoError(t, err, given)
		assert.Equal(t, want, kind)
		assert.Equal(t, "web", name)
	}
	for _, given := range []string{"web", "hpa/", "deployment/web", "hpa/a/b"} {
		_, _, err := parseReference([]string{given})
		require.Error(t, err, given)
	}
}

func TestTheExamplesOfTheDocsAreTranslated(t *testing.T) {
	for _, page := range []string{"handover-hpa", "handover-keda"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", page+".md"))
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(text), "```yaml given\n")
		require.True(t, found)
		manifest, _, _ := strings.Cut(rest, "```")

		a, profiles, _ := draft(t, manifest)

		assert.Equal(t, "order-service", a.Spec.TargetRef.Name)
		assert.NotEmpty(t, profiles)
	}
}

func utilization(percent int32) autoscalingv2.MetricTarget {
	return autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent}
}
