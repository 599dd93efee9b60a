package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

func TestWhatIsDueComesBeforeTheNextAnswer(t *testing.T) {
	ago := func(d time.Duration) int64 { return noon.Add(-d).UnixMicro() }
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		want   time.Duration
	}{
		"nothing": {func(*evaluation) {}, time.Hour},
		"the end of a pause": {func(e *evaluation) {
			e.paused, e.autoscaler.Spec.PausedUntil = true, new(metav1.NewTime(noon.Add(time.Minute)))
		}, time.Minute},
		"the end of a pause that is none": {func(e *evaluation) {
			e.autoscaler.Spec.PausedUntil = new(metav1.NewTime(noon.Add(time.Minute)))
		}, time.Hour},
		"a schedule": {func(e *evaluation) { e.schedule.Change = noon.Add(time.Second) }, time.Second},
		"the fallback": {func(e *evaluation) {
			e.policy.Fallback = scaling.Fallback{FloorReplicas: 5, After: time.Minute}
			e.record.memory.AllInvalidSince = ago(20 * time.Second)
		}, 40 * time.Second},
		"the fallback has been": {func(e *evaluation) {
			e.policy.Fallback = scaling.Fallback{FloorReplicas: 5, After: time.Minute}
			e.record.memory.AllInvalidSince = ago(time.Minute)
		}, time.Hour},
		"the end of a step up": {func(e *evaluation) {
			e.decision.Rule, e.record.memory.Up.At = scaling.RuleScaleUpStep, ago(quarter-30*time.Millisecond)
		}, 30 * time.Millisecond},
		"the end of a step down": {func(e *evaluation) {
			e.decision.Rule, e.record.memory.Down.At = scaling.RuleScaleDownStep, ago(5*time.Second)
		}, 10 * time.Second},
		"the shortest interval between scale-downs that is to end": {func(e *evaluation) {
			e.decision.Rule, e.record.memory.LastDown = scaling.RuleScaleDownMinInterval, ago(20*time.Second)
			for _, d := range []time.Duration{0, time.Minute, 30 * time.Second, 10 * time.Second} {
				e.policy.Metrics = append(e.policy.Metrics, scaling.Metric{Behavior: scaling.Behavior{DownMinInterval: d}})
			}
		}, 10 * time.Second},
		"a step that is no longer in the way": {func(e *evaluation) { e.record.memory.Up.At = ago(5 * time.Second) }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(time.Minute)
			e.after, e.policy.PollInterval = time.Hour, quarter
			tc.change(e)
			e.plan()
			assert.Equal(t, tc.want, e.after)
		})
	}
}

func TestAnAnswerIsWaitedForAsLongAsTheSlowestQuestionMayTake(t *testing.T) {
	q := func(seconds int) prometheus.Question {
		return prometheus.Question{Timeout: time.Duration(seconds) * time.Second}
	}
	assert.Equal(t, 7*time.Second, patience([]prometheus.Measure{
		{Load: q(2)}, {Load: q(1), Arrivals: q(3), Freshness: prometheus.Freshness{Question: q(7)}},
	}))
}
