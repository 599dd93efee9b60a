package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
)

func TestAPauseSaysUntilWhenAndWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		want   string
	}{
		"no more than that it is": {func(*evaluation) {}, "spec.paused is set: the claim is kept, nothing is written"},
		"beside who holds it":     {func(e *evaluation) { e.holding = nil }, "spec.paused is set: nothing is written"},
		"until and why, in UTC": {func(e *evaluation) {
			zone := time.FixedZone("", 3600)
			e.autoscaler.Spec.PausedUntil = new(metav1.NewTime(noon.In(zone)))
			e.autoscaler.Spec.PauseReason = "migration, ask Ada"
		}, "spec.paused is set until 2026-11-29T12:00:00Z: the claim is kept, nothing is written (migration, ask Ada)"},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(time.Minute)
			e.holding = &binding.Holding{}
			tc.change(e)
			assert.Equal(t, tc.want, e.pausedMessage())
		})
	}
}

func TestWhoSetTheCountIsToStopUnlessItMay(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		want   string
	}{
		"while the count is written": {func(*evaluation) {}, "; spec.replicas was last set by kubectl; if the manifest names a count, take it out"},
		"while paused":               {func(e *evaluation) { e.paused = true }, "; spec.replicas was last set by kubectl, which it may be while paused"},
		"at 0":                       {func(e *evaluation) { e.target.replicas = 0 }, "; spec.replicas was last set by kubectl"},
		"by nobody else":             {func(e *evaluation) { e.target.setBy = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(time.Minute)
			e.binding = &v1alpha1.ScaleBinding{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			e.target.replicas, e.target.setBy = 3, []string{"kubectl"}
			tc.change(e)
			e.bound()
			assert.Equal(t, `ScaleBinding "web" names this AutoScaler`+tc.want, e.condition(v1alpha1.ConditionBound).Message)
		})
	}
}

type noted []string

func (n *noted) Eventf(_, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	*n = append(*n, eventtype+" "+reason+" "+fmt.Sprintf(note, args...))
}

func TestTheBeginAndTheEndOfAPauseAreEvents(t *testing.T) {
	paused := condition(v1alpha1.ConditionAbleToScale, "False", v1alpha1.ReasonPaused)
	ready := condition(v1alpha1.ConditionAbleToScale, "True", v1alpha1.ReasonScaleReady)
	bound := condition(v1alpha1.ConditionBound, "True", v1alpha1.ReasonClaimHeld)
	hpa := condition(v1alpha1.ConditionBound, "False", v1alpha1.ReasonConflictingHPA)
	for name, tc := range map[string]struct {
		was, now, bound *metav1.Condition
		want            string
	}{
		"it begins":          {ready, paused, bound, "Normal Paused"},
		"it goes on":         {paused, paused, bound, ""},
		"it never was":       {ready, ready, bound, ""},
		"it ends":            {paused, ready, bound, "Normal Resumed the pause is over"},
		"it ends beside HPA": {paused, condition(v1alpha1.ConditionAbleToScale, "False", v1alpha1.ReasonNotBound), hpa, "Warning Resumed the pause is over, but nothing is written"},
	} {
		t.Run(name, func(t *testing.T) {
			var events noted
			e := evaluationAt(time.Minute)
			e.before.Status.Conditions = []metav1.Condition{*tc.was}
			e.autoscaler.Status.Conditions = []metav1.Condition{*tc.now, *tc.bound}
			(&Reconciler{Events: &events}).tellOfPause(e)
			got := strings.Join(events, "\n")
			if tc.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Len(t, events, 1)
			assert.True(t, strings.HasPrefix(got, tc.want), got)
		})
	}
}

func TestSchedulesThatComeAndGoAreEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is []string
		want    noted
	}{
		"as before":     {[]string{"night"}, []string{"night"}, nil},
		"they come":     {nil, []string{"night", "sale"}, noted{"Normal Scheduled in force by schedule: night, sale"}},
		"the last goes": {[]string{"night"}, nil, noted{"Normal Scheduled no schedule is in force any more"}},
	} {
		t.Run(name, func(t *testing.T) {
			var events noted
			e := evaluationAt(time.Minute)
			e.before.Status.LastDecision.Schedules, e.autoscaler.Status.LastDecision.Schedules = tc.was, tc.is
			(&Reconciler{Events: &events}).tellOfSchedules(e)
			assert.Equal(t, tc.want, events)
		})
	}
}
