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

func TestFC14_TheSchemaAcceptsAndRefusesTheSameSharesAsTheParser(t *testing.T) {
	h := newHarness(t, withoutWebhooks) // the schema alone
	profile := h.profile("total")
	for _, value := range []any{
		"0", "0.1", "0.10", "100m", "0.000001", "0.999999", "1", "1.0", "1.000000", "1000m", "999m", "0m",
		"", "1.1", "1.000001", "1001m", "0100m", "0.1m", "00", "2", "10%", "-0.1", "+0.1", ".1", "0.", "0,1", " 0.1", "0.1\n", "m",
		"0.0000001", "1e-1", "1e-2147483648", "0e9999", "NaN", "Inf", "0x1p-4", "100u", "Ki", "٠", strings.Repeat("0", 64),
		0.1, int64(1), true, []any{"0.1"}, map[string]any{"value": "0.1"},
	} {
		for _, name := range []string{"toleranceUp", "toleranceDown"} {
			a := plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "1").Obj(), func(spec map[string]any) {
				spec["behavior"] = map[string]any{name: value}
			})
			err := h.client.Create(h.ctx, a, client.DryRunAll)

			text, isText := value.(string)
			_, parseErr := v1alpha1.ParseShare(text)
			if isText && parseErr == nil {
				assert.NoError(t, err, "%s %q", name, text)
				continue
			}
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%s %v gave %v", name, value, err)
			assert.ErrorContains(t, err, name, "%v", value)
			if isText && len(text) <= v1alpha1.ShareMaxLength {
				assert.ErrorContains(t, err, `as "0.1"`, "%v: the accepted form", value)
			}
		}
	}
}

// TestTheSchemaAndTheValidationGiveOneVerdict changes one field of a valid object at a
// time; where the schema refuses, so must the validation of what Go decodes, for objects
// that were stored past the schema.
func TestTheSchemaAndTheValidationGiveOneVerdict(t *testing.T) {
	h := newHarness(t, withoutWebhooks)
	profile := h.profile("total")
	schedule := func(change map[string]any) map[string]any {
		s := map[string]any{"name": "a", "start": "0 8 * * *", "durationSeconds": int64(60), "freeze": "All"}
		for key, value := range change {
			s[key] = value
		}
		return map[string]any{"schedules": []any{s}}
	}
	for name, change := range map[string]map[string]any{
		"a fallback at its lower ends":  {"fallback": map[string]any{"floorReplicas": int64(1), "afterSeconds": int64(15)}},
		"a fallback at its upper ends":  {"fallback": map[string]any{"floorReplicas": int64(20), "afterSeconds": int64(86400)}},
		"a fallback above the maximum":  {"fallback": map[string]any{"floorReplicas": int64(21), "afterSeconds": int64(60)}},
		"FC-15 a fallback too soon":     {"fallback": map[string]any{"floorReplicas": int64(5), "afterSeconds": int64(14)}},
		"FC-15 a fallback too late":     {"fallback": map[string]any{"floorReplicas": int64(5), "afterSeconds": int64(86401)}},
		"a rate":                        {"behavior": map[string]any{"scaleUpRate": map[string]any{"maxReplicas": int64(1), "periodSeconds": int64(3600)}}},
		"FC-15 a rate's period":         {"behavior": map[string]any{"scaleUpRate": map[string]any{"maxReplicas": int64(1), "periodSeconds": int64(3601)}}},
		"FC-15 an up-window":            {"behavior": map[string]any{"scaleUpStabilizationSeconds": int64(3601)}},
		"FC-15 a negative up-window":    {"behavior": map[string]any{"scaleUpStabilizationSeconds": int64(-1)}},
		"a schedule":                    schedule(nil),
		"FC-15 a schedule of 59 s":      schedule(map[string]any{"durationSeconds": int64(59)}),
		"FC-15 a schedule of a week":    schedule(map[string]any{"durationSeconds": int64(604800)}),
		"FC-15 a schedule of a week, +": schedule(map[string]any{"durationSeconds": int64(604801)}),
		"FC-15 a negative schedule":     schedule(map[string]any{"durationSeconds": int64(-3600)}),
		"a schedule's floor of 0":       schedule(map[string]any{"minReplicas": int64(0)}),
		"a schedule's cap below it":     schedule(map[string]any{"minReplicas": int64(3), "maxReplicas": int64(2)}),
		"a schedule's cap above all":    schedule(map[string]any{"maxReplicas": int64(900)}),
		"a schedule's odd freeze":       schedule(map[string]any{"freeze": "ScaleUp"}),
		"a schedule's odd name":         schedule(map[string]any{"name": "Black Friday"}),
		"a schedule's long zone":        schedule(map[string]any{"timeZone": strings.Repeat("a", 65)}),
		"a schedule's long start":       schedule(map[string]any{"start": strings.Repeat("1", 101)}),
		"a reason of 256 letters":       {"pauseReason": strings.Repeat("ä", 256)},
		"a reason of 257 letters":       {"pauseReason": strings.Repeat("ä", 257)},
		"a time":                        {"pausedUntil": "2099-01-01T00:00:00.5+02:00"},
		"a time with a small t":         {"pausedUntil": "2099-01-01t00:00:00z"},
		"a time of the 30th February":   {"pausedUntil": "2099-02-30T00:00:00Z"},
		"a time in words":               {"pausedUntil": "tomorrow"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := plain(t, builders.MakeAutoScaler(h.namespace, "web").Metric("load", profile, "1").Obj(), func(spec map[string]any) {
				for key, value := range change {
					spec[key] = value
				}
			})
			data, err := obj.MarshalJSON()
			require.NoError(t, err)
			var a v1alpha1.AutoScaler
			require.NoError(t, a.UnmarshalJSON(data))

			errs := v1alpha1.ValidateAutoScaler(&a, v1alpha1.DefaultLimits)
			err = h.client.Create(h.ctx, obj, client.DryRunAll)

			assert.Equal(t, err != nil, len(errs) > 0, "the API server: %v; the validation: %v", err, errs)
		})
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
