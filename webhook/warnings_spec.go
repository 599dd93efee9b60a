package webhook

import (
	"fmt"
	"slices"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// What a spec says that is legal but hardly meant, in the order in which it is said.
const (
	// A pause that is none.
	warnUntilUnpaused = "spec.pausedUntil: it has no effect unless spec.paused is set"
	warnUntilPassed   = "spec.pausedUntil: this time has passed, so the pause is over"
	warnWhyUnpaused   = "spec.pauseReason: it has no effect unless spec.paused is set"
	// Nothing will ever move.
	warnFixed = "spec.maxReplicas: it equals minReplicas, so metrics never change the count"
	// One sample is enough.
	warnShortWindow   = "%s: %d s is shorter than the poll interval of %d s, so a single low sample scales down"
	warnShortUpWindow = "%s: %d s is shorter than the poll interval of %d s, so a single high sample scales up" //nolint:gosec // no credentials
	// Tolerances that hide the load.
	warnToleranceUp   = "%s: %s lets the load grow to %g times what the replicas carry before one is added"
	warnToleranceDown = "%s: %s tolerates the loss of all load, so this metric never scales down"
	// Bounds without an effect.
	warnFloorUnused    = "spec.fallback.floorReplicas: it is not above minReplicas (%d), so it adds nothing to that"
	warnScheduleMin    = "%s.minReplicas: it is not above spec.minReplicas (%d), so it changes nothing"
	warnScheduleMax    = "%s.maxReplicas: it equals spec.maxReplicas, so it changes nothing"
	warnScheduleLow    = "%s.maxReplicas: it is below spec.minReplicas; the count stays at %d, since the highest floor wins"
	warnScheduleLifts  = "%s.minReplicas: it is above spec.maxReplicas (%d), which is lifted to it while the schedule is in force"
	warnFrozenBelowMin = "%s.minReplicas: the freeze forbids the move to it; give it a schedule of its own that begins earlier"
	warnFrozenAboveMax = "%s.maxReplicas: the freeze forbids the move down to it; give it a schedule of its own that begins earlier"
	// A profile that takes a loss of metrics for an idle service.
	warnEmptyZero = "spec.onEmpty: with Zero, a service whose series are lost is scaled down as if it were idle; freshness would tell one from the other"
)

// specWarnings looks at nothing but the spec and the time.
func specWarnings(a *v1alpha1.AutoScaler, now time.Time) []string {
	var said []string
	if until := a.Spec.PausedUntil; until != nil {
		switch {
		case !a.Spec.Paused:
			said = append(said, warnUntilUnpaused)
		case !a.PausedAt(now):
			said = append(said, warnUntilPassed)
		}
	}
	if a.Spec.PauseReason != "" && !a.Spec.Paused {
		said = append(said, warnWhyUnpaused)
	}
	moved := slices.ContainsFunc(a.Spec.Schedules, func(s v1alpha1.Schedule) bool { return s.MinReplicas != nil || s.MaxReplicas != nil })
	if a.Spec.MinReplicas == a.Spec.MaxReplicas && !moved {
		said = append(said, warnFixed)
	}
	poll := int32(spec.PollInterval(a).Seconds())
	said = append(said, behaviorWarnings("spec.behavior", a.Spec.Behavior, poll)...)
	for i := range a.Spec.Metrics {
		said = append(said, behaviorWarnings(fmt.Sprintf("spec.metrics[%d].behavior", i), a.Spec.Metrics[i].Behavior, poll)...)
	}
	if f := a.Spec.Fallback; f != nil && f.FloorReplicas <= a.Spec.MinReplicas {
		said = append(said, fmt.Sprintf(warnFloorUnused, a.Spec.MinReplicas))
	}
	for i := range a.Spec.Schedules {
		said = append(said, scheduleWarnings(fmt.Sprintf("spec.schedules[%d]", i), &a.Spec.Schedules[i], &a.Spec)...)
	}
	return said
}

// behaviorWarnings names, first, the windows that do not reach from one evaluation to
// the next. A window of 0 is no mistake: it says that none is wanted.
func behaviorWarnings(path string, b *v1alpha1.Behavior, poll int32) []string {
	if b == nil {
		return nil
	}
	var said []string
	short := func(window *int32) bool { return window != nil && *window > 0 && *window < poll }
	if short(b.ScaleUpStabilizationSeconds) {
		said = append(said, fmt.Sprintf(warnShortUpWindow, path+".scaleUpStabilizationSeconds", *b.ScaleUpStabilizationSeconds, poll))
	}
	if short(b.ScaleDownStabilizationSeconds) {
		said = append(said, fmt.Sprintf(warnShortWindow, path+".scaleDownStabilizationSeconds", *b.ScaleDownStabilizationSeconds, poll))
	}
	if up, err := v1alpha1.ParseShare(b.ToleranceUp); err == nil && up >= 0.5 {
		said = append(said, fmt.Sprintf(warnToleranceUp, path+".toleranceUp", b.ToleranceUp, 1+up))
	}
	if down, err := v1alpha1.ParseShare(b.ToleranceDown); err == nil && down == 1 {
		said = append(said, fmt.Sprintf(warnToleranceDown, path+".toleranceDown", b.ToleranceDown))
	}
	return said
}

// scheduleWarnings names the bounds of a schedule that do nothing, or not what they
// look like.
func scheduleWarnings(path string, s *v1alpha1.Schedule, of *v1alpha1.AutoScalerSpec) []string {
	var said []string
	if low := s.MinReplicas; low != nil {
		switch {
		case *low <= of.MinReplicas:
			said = append(said, fmt.Sprintf(warnScheduleMin, path, of.MinReplicas))
		case s.Freeze == v1alpha1.FreezeAll:
			said = append(said, fmt.Sprintf(warnFrozenBelowMin, path))
		case s.MaxReplicas == nil && *low > of.MaxReplicas:
			said = append(said, fmt.Sprintf(warnScheduleLifts, path, of.MaxReplicas))
		}
	}
	if high := s.MaxReplicas; high != nil {
		switch {
		case *high < of.MinReplicas:
			said = append(said, fmt.Sprintf(warnScheduleLow, path, of.MinReplicas))
		case *high == of.MaxReplicas:
			said = append(said, fmt.Sprintf(warnScheduleMax, path))
		case s.Freeze != "" && *high < of.MaxReplicas:
			said = append(said, fmt.Sprintf(warnFrozenAboveMax, path))
		}
	}
	return said
}

// profileWarnings says what is worth knowing of a MetricProfile that is admitted.
func profileWarnings(p *v1alpha1.MetricProfile) []string {
	if p.Spec.OnEmpty == v1alpha1.EmptyZero && p.Spec.Freshness == nil {
		return []string{warnEmptyZero}
	}
	return nil
}
