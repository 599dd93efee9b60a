package v1alpha1

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of a schedule's durationSeconds.
const (
	minScheduleSeconds = 60
	maxScheduleSeconds = 7 * 24 * 60 * 60
)

func validateSchedules(path *field.Path, schedules []Schedule, limits Limits) field.ErrorList {
	if len(schedules) > MaxSchedules {
		return field.ErrorList{field.TooMany(path, len(schedules), MaxSchedules)}
	}
	var errs field.ErrorList
	seen := make(map[string]bool, len(schedules))
	for i := range schedules {
		s, at := &schedules[i], path.Index(i)
		errs = append(errs, validateLabel(at.Child("name"), s.Name)...)
		if seen[s.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), s.Name))
		}
		seen[s.Name] = true
		if s.Start == "" {
			errs = append(errs, field.Required(at.Child("start"), `say when it begins, as "30 7 * * 1-5" for half past seven on working days`))
		}
		errs = append(errs, notLonger(at.Child("start"), s.Start, MaxScheduleStartLength)...)
		errs = append(errs, inRange(at.Child("durationSeconds"), s.DurationSeconds, minScheduleSeconds, maxScheduleSeconds)...)
		errs = append(errs, notLonger(at.Child("timeZone"), s.TimeZone, MaxTimeZoneLength)...)
		errs = append(errs, validateEffect(at, s, limits)...)
	}
	return errs
}

// validateEffect checks what a schedule does while it is in force.
func validateEffect(path *field.Path, s *Schedule, limits Limits) field.ErrorList {
	var errs field.ErrorList
	if s.MinReplicas == nil && s.MaxReplicas == nil && s.Freeze == "" {
		errs = append(errs, field.Required(path, "set minReplicas, maxReplicas or freeze; without one of them the schedule changes nothing"))
	}
	for _, bound := range []struct {
		name  string
		value *int32
	}{{"minReplicas", s.MinReplicas}, {"maxReplicas", s.MaxReplicas}} {
		if bound.value == nil {
			continue
		}
		at := path.Child(bound.name)
		found := inRange(at, *bound.value, 1, MaxReplicasCeiling)
		if len(found) == 0 {
			found = withinPlatform(at, *bound.value, limits)
		}
		errs = append(errs, found...)
	}
	if s.MinReplicas != nil && s.MaxReplicas != nil && *s.MaxReplicas < *s.MinReplicas {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), *s.MaxReplicas, fmt.Sprintf("must be at least the schedule's minReplicas (%d)", *s.MinReplicas)))
	}
	if s.Freeze != "" && s.Freeze != FreezeScaleDown && s.Freeze != FreezeAll {
		errs = append(errs, field.NotSupported(path.Child("freeze"), s.Freeze, []ScheduleFreeze{FreezeAll, FreezeScaleDown}))
	}
	return errs
}
