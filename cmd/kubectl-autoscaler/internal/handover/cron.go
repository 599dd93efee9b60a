package handover

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// cron makes a schedule of a cron trigger, which asks for a count from each of its starts
// to the next of its ends: a floor, as the highest trigger counts. A schedule has a start
// and a duration; so it says the same where the ends always follow by the same time.
func (d *Draft) cron(name string, trigger map[string]string) {
	replicas, err := strconv.ParseInt(trigger["desiredReplicas"], 10, 32)
	var duration time.Duration
	if err == nil {
		duration, err = between(trigger["start"], trigger["end"])
	}
	switch {
	case err != nil:
		d.note("Trigger %s of type cron (%s replicas from %q to %q, %s) is not translated: %s. Write spec.schedules with minReplicas for it, docs/schedules.md.",
			name, trigger["desiredReplicas"], trigger["start"], trigger["end"], trigger["timezone"], err)
		return
	case replicas <= int64(d.AutoScaler.Spec.MinReplicas):
		d.note("Trigger %s of type cron asks for %s, no more than minReplicas: it needs no schedule.", name, counted(replicas))
		return
	}
	floor := min(int32(replicas), d.AutoScaler.Spec.MaxReplicas) // what KEDA's HPA would cut off, too
	s := v1alpha1.Schedule{
		Name: unique(label(name), func(s string) bool {
			for i := range d.AutoScaler.Spec.Schedules {
				if d.AutoScaler.Spec.Schedules[i].Name == s {
					return true
				}
			}
			return false
		}),
		Start: trigger["start"], TimeZone: trigger["timezone"], DurationSeconds: int32(duration / time.Second), MinReplicas: &floor,
	}
	d.AutoScaler.Spec.Schedules = append(d.AutoScaler.Spec.Schedules, s)
	d.note("Trigger %s of type cron has become schedule %q: at least %s for %s from each start. On a day on which the clocks change it ends that much earlier or later than KEDA's.",
		name, s.Name, counted(int64(floor)), duration)
}

const (
	// maxDuration is the longest that a schedule has (7 days).
	maxDuration = 7 * 24 * time.Hour
	// leapYears is how long starts and ends are compared: each day of a year is in it.
	leapYears = 5 * 366 * 24 * time.Hour
)

var (
	errDuration = errors.New("its ends do not follow its starts by one duration of at most 7 days")
	fiveFields  = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow) // as KEDA
)

// between is the one duration from each start to the next end. It compares what the clocks
// show, and so knows no change of them.
func between(start, end string) (time.Duration, error) {
	starts, err := fiveFields.Parse(start)
	if err != nil {
		return 0, err
	}
	ends, err := fiveFields.Parse(end)
	if err != nil {
		return 0, err
	}
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	duration := time.Duration(math.MaxInt64)
	for at := starts.Next(begin); !at.IsZero() && at.Sub(begin) < leapYears; {
		until := ends.Next(at)
		next := starts.Next(at)
		lasts := until.Sub(at)
		if until.IsZero() || lasts > maxDuration || duration != math.MaxInt64 && lasts != duration || !next.IsZero() && next.Before(until) {
			return 0, errDuration
		}
		duration, at = lasts, next
	}
	if duration == math.MaxInt64 {
		return 0, errors.New("it never starts")
	}
	return duration, nil
}
