package handover

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	assert.Equal(t, "avg(sum by (pod) (rate(container_cpu_usage_seconds_total{namespace=$namespace, deployment=$target}[2m])))", profiles[0].Spec.Query)
	assert.Equal(t, v1alpha1.SemanticsPerReplicaAverage, profiles[0].Spec.Semantics)
	assert.Equal(t, []v1alpha1.NamespaceName{"production"}, profiles[0].Spec.AllowedNamespaces)
	assert.Equal(t, "web", a.Spec.TargetRef.Name)
	assert.Equal(t, []int32{2, 20}, []int32{a.Spec.MinReplicas, a.Spec.MaxReplicas})
	assert.Equal(t, "0.8", a.Spec.Metrics[0].TargetPerReplica)
	assert.Contains(t, advice, "80 % of the requested cpu, and the request is not known")
	// The defaults of an HPA's behavior, at 2 replicas: 4 pods are more than 100 %.
	assert.Equal(t, int32(4), *a.Spec.Behavior.ScaleUpMaxStep)
	assert.Nil(t, a.Spec.Behavior.ScaleDownMaxStep)
	assert.Equal(t, int32(300), *a.Spec.Behavior.ScaleDownStabilizationSeconds)
	assert.Equal(t, "0.1", a.Spec.Behavior.ToleranceUp)
	for _, step := range []string{
		"kubectl autoscaler replay", "kubectl apply -f draft.yaml", `{"spec":{"dryRun":false}}`, "kubectl -n production delete hpa web", "docs/rollout.md",
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
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(4)), ScaleDownMaxStep: new(int32(1)), ScaleDownStabilizationSeconds: new(int32(300))}, "scaleDown: 10 % per 15 s has become 1 replicas, the share of 2",
		},
		"never down": {
			"scaleDown: {selectPolicy: Disabled}",
			v1alpha1.Behavior{ScaleUpMaxStep: new(int32(4)), ScaleDownStabilizationSeconds: new(int32(300))}, "scaleDown is disabled in the HPA",
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
	assert.Equal(t, &v1alpha1.Fallback{FloorReplicas: 6, AfterSeconds: 120}, a.Spec.Fallback)
	for _, note := range []string{
		"there is no scaling to zero", "spec.schedules says the same", "KEDA takes no data", "idleReplicaCount and cooldownPeriod are about zero",
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
		"nothing":                        {"", "it holds"},
		"no YAML":                        {"\x00\x01", "error: -:"},
		"a key that stands twice":        {hpaHead + "  maxReplicas: 30\n", "maxReplicas"},
		"a field of another type":        {strings.Replace(hpaHead, "minReplicas: 2", "minReplicas: many", 1), "HorizontalPodAutoscaler production/web"},
		"an enormous file":               {strings.Repeat("# nothing\n", 500_000), "it is larger than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			out, complaint, code := run(t, tc.manifest)

			assert.Equal(t, cli.ExitTrouble, code)
			assert.Empty(t, out)
			assert.Contains(t, complaint, tc.want)
		})
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
