package spec

import (
	"fmt"
	"time"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// lookAhead bounds how far the next start of a schedule is looked for.
const lookAhead = 24 * time.Hour

// Schedule is what the schedules of an AutoScaler say at one moment.
type Schedule struct {
	// Names of those that are in force, in the order of the spec.
	Names []string
	// MinReplicas and MaxReplicas are the bounds: the highest floor and the lowest
	// cap. A floor above the cap lifts it, since too few replicas are an outage and
	// too many a bill.
	MinReplicas, MaxReplicas int32
	// Freeze is the strongest.
	Freeze scaling.Freeze
	// Change is the earliest time at which any of this can be different, zero where it
	// stays for a day.
	Change time.Time
}

// ScheduleAt says what the schedules of an AutoScaler are at a time: each is in force
// from every one of its starts until its duration has passed. The error names the
// first field that cannot be read; ValidateAutoScaler would have refused it.
func ScheduleAt(a *v1alpha1.AutoScaler, now time.Time) (Schedule, error) {
	in := Schedule{MinReplicas: a.Spec.MinReplicas, MaxReplicas: a.Spec.MaxReplicas}
	var lowest *int32
	for i := range a.Spec.Schedules {
		s := &a.Spec.Schedules[i]
		active, change, err := activeAt(s, now)
		if err != nil {
			return Schedule{}, fmt.Errorf("spec.schedules[%d].%w", i, err)
		}
		if !change.IsZero() && (in.Change.IsZero() || change.Before(in.Change)) {
			in.Change = change
		}
		if !active {
			continue
		}
		in.Names = append(in.Names, s.Name)
		in.MinReplicas = max(in.MinReplicas, value(s.MinReplicas))
		in.Freeze = max(in.Freeze, freezeOf(s.Freeze))
		if s.MaxReplicas != nil && (lowest == nil || *s.MaxReplicas < *lowest) {
			lowest = s.MaxReplicas
		}
	}
	if lowest != nil {
		in.MaxReplicas = *lowest
	}
	in.MaxReplicas = max(in.MaxReplicas, in.MinReplicas)
	return in, nil
}

// activeAt says whether a schedule is in force, and until when that is certain.
func activeAt(s *v1alpha1.Schedule, now time.Time) (active bool, change time.Time, err error) {
	zone, err := loadZone(s.TimeZone)
	if err != nil {
		return false, time.Time{}, fmt.Errorf("timeZone: %w", err)
	}
	starts, err := parseStarts(s.Start, zone)
	if err != nil {
		return false, time.Time{}, fmt.Errorf("start: %w", err)
	}
	// Whole seconds will do: starts and durations are.
	at, duration := now.Unix(), int64(s.DurationSeconds)
	if began, ok := starts.last(at, at-duration); ok {
		return true, time.Unix(began+duration, 0), nil
	}
	if begins, ok := starts.next(at, at+int64(lookAhead/time.Second)); ok {
		return false, time.Unix(begins, 0), nil
	}
	return false, time.Time{}, nil
}

func freezeOf(f v1alpha1.ScheduleFreeze) scaling.Freeze {
	switch f {
	case v1alpha1.FreezeAll:
		return scaling.FreezeAll
	case v1alpha1.FreezeScaleDown:
		return scaling.FreezeScaleDown
	}
	return scaling.FreezeNone
}
