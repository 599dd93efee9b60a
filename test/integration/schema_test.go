//go:build integration

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// plain gives an object as a client that knows no Go types would send it.
func plain(t *testing.T, obj client.Object, change func(spec map[string]any)) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	delete(fields, "status")
	change(fields["spec"].(map[string]any))
	return &unstructured.Unstructured{Object: fields}
}

func metric(spec map[string]any) map[string]any {
	return spec["metrics"].([]any)[0].(map[string]any)
}

func TestTheSeedsExampleAppliesAsPrinted(t *testing.T) {
	h := newHarness(t)
	profile, autoscaler := sample(t, "metricprofile.yaml"), sample(t, "autoscaler.yaml")
	h.create(profile)
	t.Cleanup(func() { _ = h.client.Delete(context.Background(), profile) })
	autoscaler.SetNamespace("production")
	require.NoError(t, client.IgnoreAlreadyExists(h.client.Create(h.ctx, namespace("production"))))
	require.NoError(t, h.client.Create(h.ctx, autoscaler))
	t.Cleanup(func() { _ = h.client.Delete(context.Background(), autoscaler) })

	var a v1alpha1.AutoScaler
	require.NoError(t, h.client.Get(h.ctx, client.ObjectKeyFromObject(autoscaler), &a))
	assert.Equal(t, int32(4), *a.Spec.Metrics[0].Behavior.ScaleUpMaxStep, "behavior inside the metric is kept")
	assert.Equal(t, int32(60), *a.Spec.Metrics[0].Behavior.ScaleDownMinIntervalSeconds)
}

func sample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", file))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict(data, &obj.Object))
	return obj
}

func TestDefaultsAreVisibleInTheStoredObject(t *testing.T) {
	h := newHarness(t)
	h.create(plain(t, h.autoscaler().Obj(), func(spec map[string]any) {
		delete(spec, "pollIntervalSeconds")
		delete(spec, "behavior")
		delete(metric(spec), "maxAgeSeconds")
	}))

	a := h.get("web")
	assert.Equal(t, int32(v1alpha1.DefaultPollIntervalSeconds), a.Spec.PollIntervalSeconds)
	assert.Equal(t, int32(v1alpha1.DefaultMaxAgeSeconds), a.Spec.Metrics[0].MaxAgeSeconds)
	assert.Equal(t, int32(v1alpha1.DefaultScaleDownStabilizationSeconds), *a.Spec.Behavior.ScaleDownStabilizationSeconds)
	assert.Nil(t, a.Spec.Metrics[0].Behavior, "a metric has its own behavior only if it asks for one")
}

// TestFC14_… holds the CRD schema, the Go parser and so the webhook to one table.
func TestFC14_TheSchemaAcceptsAndRefusesTheSameNumbersAsTheParser(t *testing.T) {
	h := newHarness(t, withoutWebhooks) // the schema alone
	profile := h.profile("total")
	for _, value := range []any{
		"100", "0.5", "100m", "0.5m", "0.000001", "0.000001m", "999999999999.999999",
		"0", "0m", "0.000000", "", " 1", "1 ", "+1", "-1", "01", ".5", "1.", "1,5", "0.0000001",
		"1e3", "1E", "1k", "1Ki", "Ki", "m", "1mm", "NaN", "Inf", "+Inf", "0x1p4",
		"1e1.5", ".07893E985.90504", "0e9999", "1e400", "1e-400", "1e-2147483648", "2E6024865272343",
		"9999999999999999999", "1000000000000", "1\n", "١٠٠", strings.Repeat("1", 64),
		1.5, int64(100), nil, true, []any{"100"}, map[string]any{"value": "100"},
	} {
		a := plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "1").Obj(), func(spec map[string]any) {
			metric(spec)["targetPerReplica"] = value
		})
		began := time.Now()
		err := h.client.Create(h.ctx, a, client.DryRunAll)
		assert.Less(t, time.Since(began), 5*time.Second, "%v", value)

		text, isText := value.(string)
		_, parseErr := v1alpha1.ParsePositiveDecimal(text)
		if isText && parseErr == nil {
			assert.NoError(t, err, "%q", text)
			continue
		}
		require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v gave %v", value, err)
		assert.ErrorContains(t, err, "targetPerReplica", "%v", value)
		if isText && len(text) <= v1alpha1.DecimalMaxLength {
			assert.ErrorContains(t, err, `as "100" or "0.5"`, "%v: the accepted form", value)
		}
	}
}

func TestFC15_WindowsAreWholeSecondsWithinBounds(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	profile := h.profile("total")
	for _, tc := range []struct {
		value any
		valid bool
	}{
		{int64(0), true}, {int64(300), true}, {int64(86400), true},
		{int64(-300), false}, {int64(86401), false}, {int64(1) << 40, false},
		{"300", false}, {"5m", false}, {"-5m", false}, {"1d", false}, {"999999999h", false}, {"1h 30m", false}, {1.5, false},
	} {
		a := plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "1").Obj(), func(spec map[string]any) {
			spec["behavior"] = map[string]any{"scaleDownStabilizationSeconds": tc.value}
		})
		err := h.client.Create(h.ctx, a, client.DryRunAll)
		if tc.valid {
			assert.NoError(t, err, "%v", tc.value)
			continue
		}
		assert.ErrorContains(t, err, "scaleDownStabilizationSeconds", "%v", tc.value)
	}
}

func TestTheSchemaRefuses(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	profile := h.profile("total")
	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   []string
	}{
		"max below min":            {func(s map[string]any) { s["maxReplicas"] = int64(1) }, []string{"spec.maxReplicas", "maxReplicas must be at least minReplicas"}},
		"min of 0":                 {func(s map[string]any) { s["minReplicas"] = int64(0) }, []string{"spec.minReplicas"}},
		"a negative max":           {func(s map[string]any) { s["maxReplicas"] = int64(-1) }, []string{"spec.maxReplicas"}},
		"a max past int32":         {func(s map[string]any) { s["maxReplicas"] = int64(1) << 40 }, []string{"spec.maxReplicas"}},
		"a poll every second":      {func(s map[string]any) { s["pollIntervalSeconds"] = int64(1) }, []string{"spec.pollIntervalSeconds"}},
		"no target":                {func(s map[string]any) { delete(s, "targetRef") }, []string{"spec.targetRef"}},
		"an empty target":          {func(s map[string]any) { s["targetRef"] = map[string]any{"name": ""} }, []string{"spec.targetRef.name"}},
		"a hostile target":         {func(s map[string]any) { s["targetRef"] = map[string]any{"name": `"} or vector(1e9) #`} }, []string{"spec.targetRef.name"}},
		"no metrics":               {func(s map[string]any) { s["metrics"] = []any{} }, []string{"spec.metrics"}},
		"two metrics of a name":    {func(s map[string]any) { s["metrics"] = []any{metric(s), metric(s)} }, []string{"spec.metrics[1]"}},
		"eleven metrics":           {func(s map[string]any) { s["metrics"] = manyMetrics(metric(s), 11) }, []string{"spec.metrics"}},
		"a metric of another type": {func(s map[string]any) { metric(s)["type"] = "Datadog" }, []string{"spec.metrics[0].type", "Prometheus"}},
		"a step of 0":              {func(s map[string]any) { s["behavior"] = map[string]any{"scaleUpMaxStep": int64(0)} }, []string{"scaleUpMaxStep"}},
		"a maxAge of 0":            {func(s map[string]any) { metric(s)["maxAgeSeconds"] = int64(0) }, []string{"maxAgeSeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "1").Obj(), tc.change)
			err := h.client.Create(h.ctx, a, client.DryRunAll)
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func manyMetrics(m map[string]any, n int) []any {
	var all []any
	for i := range n {
		next := runtime.DeepCopyJSON(m)
		next["name"] = "m-" + string(rune('a'+i))
		all = append(all, next)
	}
	return all
}

func TestTheSchemaKeepsABindingWhatItIs(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.create(h.autoscaler().Obj())

	b := h.binding()
	b.Spec.TargetRef.Name = "api"
	assert.ErrorContains(t, h.client.Update(h.ctx, b), "targetRef cannot change")
	b = h.binding()
	b.Spec.Epoch = 0
	assert.ErrorContains(t, h.client.Update(h.ctx, b), "epoch never falls")
	b = h.binding()
	b.Spec.OwnerRef = nil
	assert.ErrorContains(t, h.client.Update(h.ctx, b), "ownerRef and ownerUID are set together")
	alias := h.binding()
	alias.Name, alias.ResourceVersion = "alias", ""
	assert.ErrorContains(t, h.client.Create(h.ctx, alias), "bears the name of its Deployment")
}

func TestFC12_AnUndecodableObjectInStorageHarmsOnlyItself(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.create(h.autoscaler().Obj())
	h.create(builders.Deployment(h.namespace, "broken", 2))
	h.storePastTheSchema(plain(t, builders.MakeAutoScaler(h.namespace, "broken").Target("broken").Obj(), func(spec map[string]any) {
		spec["minReplicas"] = "two"
		metric(spec)["targetPerReplica"] = "1e-2147483648"
	}))
	h.metrics.Value(900)

	h.poll()
	assert.Equal(t, int32(9), h.replicas(), "the object beside it is managed")

	h.events.take()
	result, err := h.reconcile("broken")
	require.NoError(t, err, "it is not retried: only a new spec mends it")
	assert.Positive(t, result.RequeueAfter)
	// The API server refuses any write to an object it cannot evaluate its rules
	// on, the status too; an event tells.
	events := only(h.events.take(), v1alpha1.ReasonInvalidSpec)
	require.NotEmpty(t, events)
	assert.Contains(t, events[0], "minReplicas")
	assert.Len(t, h.bindings(), 1, "nothing is claimed for a spec that cannot be read")
}

func TestFC13_AStoredValueThatWouldHangAParserIsReportedOnItsObject(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	h.deployment(2)
	h.profile("total")
	h.storePastTheSchema(plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", h.namespace+"-total", "1").Obj(), func(spec map[string]any) {
		metric(spec)["targetPerReplica"] = "1e-2147483648"
	}))

	message := h.requireCondition(h.poll(), v1alpha1.ConditionReady, "False", v1alpha1.ReasonInvalidSpec)

	assert.Contains(t, message, "spec.metrics[0].targetPerReplica")
	assert.Contains(t, message, `"1e-2147483648"`)
	assert.Contains(t, message, "decimal number above 0")
}
