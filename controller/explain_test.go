package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

// logTo is the operator's own logger.
func logTo(b *bytes.Buffer) logr.Logger { return zap.New(zap.WriteTo(b)) }

// explains goes through an evaluation and gives what it logs: no line, or one.
func (f *telling) explains(e *evaluation) map[string]any {
	f.t.Helper()
	var out bytes.Buffer
	f.begins(e.before)
	f.explain(logTo(&out), e)
	if out.Len() == 0 {
		return nil
	}
	var line map[string]any
	require.NoError(f.t, json.Unmarshal(out.Bytes(), &line), "one line")
	delete(line, "level")
	delete(line, "ts")
	return line
}

func TestALineHasEverythingThatExplainsADecision(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(9)
	e.autoscaler.Generation = 4
	e.samples[0].Value = 900.0000012
	e.decision.Replicas, e.decision.Rule = 7, scaling.RuleScaleUpStep
	e.decision.Metrics[0].Limited, e.decision.Metrics[0].Rule = 7, scaling.RuleScaleUpStep
	e.policy.Metrics[0].Name = "load"
	e.trace()
	e.scaled = true
	assert.Equal(t, map[string]any{
		"msg": "decision changed", "uid": "a", "generation": 4.0, "target": "web", "targetUID": "d",
		"current": 5.0, "ready": 5.0, "recommended": 9.0, "desired": 9.0, "result": 7.0, "rule": "ScaleUpStep",
		"minReplicas": 2.0, "maxReplicas": 20.0, "written": true, "outcome": "Written",
		"metrics": []any{map[string]any{
			"name": "load", "value": 900.0, "validity": "Valid", "raw": 9.0, "tolerated": 0.0, "bounded": 9.0,
			"stabilized": 9.0, "limited": 7.0, "rule": "ScaleUpStep",
		}},
	}, f.explains(e))
}

// metrics are what a line says of them.
func (f *telling) metrics(e *evaluation) []any {
	f.t.Helper()
	e.trace()
	line := f.explains(e)
	require.NotNil(f.t, line)
	return line["metrics"].([]any)
}

func TestABacklogIsLoggedWithItsArrivalRate(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(9)
	e.policy.Metrics[0].Semantics = scaling.Backlog
	e.samples[0].Value, e.samples[0].ArrivalRate = 600, 12.3456789
	assert.Subset(t, f.metrics(e)[0], map[string]any{"value": 600.0, "arrivalRate": 12.3457})

	other := tellingAt(t)
	assert.NotContains(t, other.metrics(other.evaluation(9))[0], "arrivalRate", "where it is no backlog")
}

func TestAMetricThatIsInvalidIsLoggedWithoutCounts(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(5)
	e.policy.Metrics[0].Name = "load"
	e.samples[0] = scaling.Sample{Reason: "Timeout"}
	e.decision.Metrics[0] = scaling.MetricTrace{Reason: "Timeout"}
	assert.Equal(t, []any{map[string]any{"name": "load", "validity": "Invalid", "reason": "Timeout"}}, f.metrics(e))
}

// rejected is an evaluation whose write was refused.
func (f *telling) rejected() *evaluation {
	e, reason := f.evaluation(9), v1alpha1.ReasonForbidden
	e.hold(reason, reason, "the scale of Deployment \"web\" was not written: because")
	return e
}

func TestARejectedWriteSaysWhy(t *testing.T) {
	f := tellingAt(t)
	line := f.explains(f.rejected())
	assert.Equal(t, false, line["written"])
	assert.Equal(t, "Forbidden", line["outcome"])
	assert.Equal(t, "the scale of Deployment \"web\" was not written: because", line["why"])
}

func TestALineIsLoggedWhenTheDecisionChangesAndNotPerPoll(t *testing.T) {
	invalid := func(e *evaluation, reason string) {
		e.samples[0] = scaling.Sample{Reason: reason}
		e.decision = scaling.Decision{Desired: 5, Replicas: 5, Rule: scaling.RuleAllMetricsInvalid, TotalMetrics: 1}
		e.decision.Metrics[0].Reason = reason
		e.trace()
	}
	for name, tc := range map[string]struct {
		before, now func(f *telling) *evaluation
		want        bool
	}{
		"the same":       {func(f *telling) *evaluation { return f.evaluation(5) }, func(f *telling) *evaluation { return f.evaluation(5) }, false},
		"another result": {func(f *telling) *evaluation { return f.evaluation(5) }, func(f *telling) *evaluation { return f.evaluation(6) }, true},
		"another recommendation and limit, the same result": {
			func(f *telling) *evaluation { return f.evaluation(5) },
			func(f *telling) *evaluation {
				e := f.evaluation(5)
				e.decision.Recommended, e.decision.Desired, e.decision.Rule = 4, 4, scaling.RuleScaleDownStabilization
				return e
			}, false},
		"the demand exceeds the cap, the same result": {
			func(f *telling) *evaluation { return f.evaluation(5) },
			func(f *telling) *evaluation {
				e := f.evaluation(5)
				e.decision.Recommended, e.decision.Rule = 30, scaling.RuleMaxReplicas
				return e
			}, true},
		"a metric fails": {
			func(f *telling) *evaluation { return f.evaluation(5) },
			func(f *telling) *evaluation { e := f.evaluation(5); invalid(e, "Timeout"); return e }, true},
		"a metric goes on failing": {
			func(f *telling) *evaluation { e := f.evaluation(5); invalid(e, "Timeout"); return e },
			func(f *telling) *evaluation { e := f.evaluation(5); invalid(e, "Timeout"); return e }, false},
		"a metric fails for another reason": {
			func(f *telling) *evaluation { e := f.evaluation(5); invalid(e, "Timeout"); return e },
			func(f *telling) *evaluation { e := f.evaluation(5); invalid(e, "NoData"); return e }, true},
		"a write is refused": {
			func(f *telling) *evaluation { return f.evaluation(9) },
			func(f *telling) *evaluation { return f.rejected() }, true},
		"a write is refused again": {
			func(f *telling) *evaluation { return f.rejected() },
			func(f *telling) *evaluation { return f.rejected() }, false},
		"a write, and then nothing to do": {
			func(f *telling) *evaluation { e := f.evaluation(9); e.scaled = true; return e },
			func(f *telling) *evaluation { return f.evaluation(9) }, false},
		"a write of what somebody undid unnoticed": {
			func(f *telling) *evaluation { e := f.evaluation(9); e.scaled = true; return e },
			func(f *telling) *evaluation { e := f.evaluation(9); e.scaled = true; return e }, true},
		"another spec": {
			func(f *telling) *evaluation { return f.evaluation(9) },
			func(f *telling) *evaluation { e := f.evaluation(9); e.autoscaler.Generation++; return e }, true},
		"another Deployment of the name": {
			func(f *telling) *evaluation { return f.evaluation(9) },
			func(f *telling) *evaluation { e := f.evaluation(9); e.target.uid = "new"; return e }, true},
		"one that ended without a result, to be made anew": {
			func(f *telling) *evaluation { return f.evaluation(9) },
			func(f *telling) *evaluation { e := f.rejected(); e.looked = nil; return e }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := tellingAt(t)
			require.NotNil(t, f.explains(tc.before(f)), "the first is news")
			f.after(15 * time.Second)
			assert.Equal(t, tc.want, f.explains(tc.now(f)) != nil)
		})
	}
}

// missing is an evaluation that found no Deployment.
func (f *telling) missing() *evaluation {
	a := f.evaluation(5).before
	e := &evaluation{now: f.clock.Now(), before: a, autoscaler: a.DeepCopy()}
	e.hold(v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetNotFound, "there is no Deployment \"web\" in namespace \"production\"")
	e.notEvaluated()
	e.nothingDecided()
	return e
}

func TestWhyNothingWasDecidedIsALineToo(t *testing.T) {
	f := tellingAt(t)
	assert.Equal(t, map[string]any{
		"msg": "nothing decided", "uid": "a", "generation": 0.0, "target": "web", "targetUID": "",
		"outcome": "TargetNotFound", "why": "there is no Deployment \"web\" in namespace \"production\"",
	}, f.explains(f.missing()))
	assert.Nil(t, f.explains(f.missing()))
	assert.Equal(t, "decision changed", f.explains(f.evaluation(5))["msg"])
}

func TestTheSeriesOfADecisionEndWhenNoneStands(t *testing.T) {
	f := tellingAt(t)
	defer f.lead()()
	f.store(func(a *v1alpha1.AutoScaler) { a.Status = v1alpha1.AutoScalerStatus{} })
	f.explains(f.evaluate(7))
	require.Equal(t, 7.0, f.value("autoscale_recommended_replicas"))
	f.explains(f.missing())
	assert.Equal(t, -99.0, f.value("autoscale_recommended_replicas"))
}

func TestTheLogHasNoTextOfAMetricSource(t *testing.T) {
	f := tellingAt(t)
	e := f.evaluation(5)
	e.autoscaler.Spec.Metrics = builders.MakeAutoScaler("production", "web").Metric("load", "orders", "100").Obj().Spec.Metrics
	e.samples[0] = scaling.Sample{Reason: "QueryRejected", Message: "sum(secret_metric) at http://user:password@prometheus"}
	e.decision = scaling.Decision{Desired: 5, Replicas: 5, Rule: scaling.RuleAllMetricsInvalid, TotalMetrics: 1}
	e.decision.Metrics[0].Reason = "QueryRejected"
	e.trace()
	e.describeSamples()
	e.hold(v1alpha1.ReasonScaleFailed, v1alpha1.ReasonScaleFailed, tellable(errors.New("Put \"https://10.0.0.1:6443/apis\": dial tcp")))
	var out bytes.Buffer
	f.begins(e.before)
	f.explain(logTo(&out), e)
	require.Contains(t, out.String(), "QueryRejected")
	for _, secret := range []string{"secret_metric", "password", "http", "10.0.0.1"} {
		assert.NotContains(t, out.String(), secret)
	}
}

func TestAValueHasSixDigits(t *testing.T) {
	for value, want := range map[float64]float64{
		0: 0, 123.4567891: 123.457, 0.00012345678: 0.000123457, 1e300 / 3: 3.33333e299, 98765432: 98765400, 5e-324: 5e-324, 1.7976931348623157e308: 1.79769e308,
	} {
		assert.InEpsilon(t, want+1e-320, sixDigits(value)+1e-320, 1e-12, value)
	}
}

// BenchmarkExplainUnchanged is what a poll costs that changes nothing.
func BenchmarkExplainUnchanged(b *testing.B) {
	f := tellingAt(&testing.T{})
	e := f.evaluation(5)
	f.begins(e.before)
	var out bytes.Buffer
	log := logTo(&out)
	f.explain(log, e)
	logged := out.Len()
	b.ReportAllocs()
	for b.Loop() {
		f.explain(log, e)
	}
	require.Equal(b, logged, out.Len())
}
