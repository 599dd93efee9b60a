package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/test/builders"
)

func scheduled(schedules ...v1alpha1.Schedule) *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler("production", "web").Bounds(2, 20).Obj()
	a.Spec.Schedules = schedules
	return a
}

// daily begins at noon in UTC.
func daily(name string, change func(*v1alpha1.Schedule)) v1alpha1.Schedule {
	s := v1alpha1.Schedule{Name: name, Start: "0 12 * * *", DurationSeconds: 3600}
	change(&s)
	return s
}

func floorOf(n int32) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.MinReplicas = &n }
}
func capOf(n int32) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.MaxReplicas = &n }
}
func freeze(f v1alpha1.ScheduleFreeze) func(*v1alpha1.Schedule) {
	return func(s *v1alpha1.Schedule) { s.Freeze = f }
}

func TestSchedulesInForceMoveTheBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		schedules []v1alpha1.Schedule
		low, high int32
		freeze    scaling.Freeze
	}{
		"none":                                   {nil, 2, 20, scaling.FreezeNone},
		"a floor":                                {[]v1alpha1.Schedule{daily("a", floorOf(10))}, 10, 20, scaling.FreezeNone},
		"a floor below that of the spec":         {[]v1alpha1.Schedule{daily("a", floorOf(1))}, 2, 20, scaling.FreezeNone},
		"a floor above the spec's maximum":       {[]v1alpha1.Schedule{daily("a", floorOf(30))}, 30, 30, scaling.FreezeNone},
		"a cap":                                  {[]v1alpha1.Schedule{daily("a", capOf(5))}, 2, 5, scaling.FreezeNone},
		"a cap above the spec's maximum":         {[]v1alpha1.Schedule{daily("a", capOf(50))}, 2, 50, scaling.FreezeNone},
		"a cap below the spec's minimum":         {[]v1alpha1.Schedule{daily("a", capOf(1))}, 2, 2, scaling.FreezeNone},
		"the highest floor":                      {[]v1alpha1.Schedule{daily("a", floorOf(6)), daily("b", floorOf(9)), daily("c", floorOf(7))}, 9, 20, scaling.FreezeNone},
		"the lowest cap, above the spec's too":   {[]v1alpha1.Schedule{daily("a", capOf(60)), daily("b", capOf(40)), daily("c", capOf(50))}, 2, 40, scaling.FreezeNone},
		"a floor of one above the cap of others": {[]v1alpha1.Schedule{daily("a", floorOf(9)), daily("b", capOf(5))}, 9, 9, scaling.FreezeNone},
		"the strongest freeze":                   {[]v1alpha1.Schedule{daily("a", freeze(v1alpha1.FreezeAll)), daily("b", freeze(v1alpha1.FreezeScaleDown))}, 2, 20, scaling.FreezeAll},
		"a freeze of scale-downs":                {[]v1alpha1.Schedule{daily("a", freeze(v1alpha1.FreezeScaleDown))}, 2, 20, scaling.FreezeScaleDown},
	} {
		t.Run(name, func(t *testing.T) {
			a := scheduled(tc.schedules...)
			p, in, err := Policy(a, nil, noon.Add(30*time.Minute))
			require.NoError(t, err)
			assert.Equal(t, tc.low, p.MinReplicas)
			assert.Equal(t, tc.high, p.MaxReplicas)
			assert.Equal(t, tc.freeze, p.Freeze)
			assert.Len(t, in.Names, len(tc.schedules))

			p, in, err = Policy(a, nil, noon.Add(-time.Second))
			require.NoError(t, err)
			assert.Equal(t, [2]int32{2, 20}, [2]int32{p.MinReplicas, p.MaxReplicas}, "before their start")
			assert.Equal(t, scaling.FreezeNone, p.Freeze)
			assert.Empty(t, in.Names)
		})
	}
}

func TestAScheduleIsInForceFromItsStartUntilItsDurationHasPassed(t *testing.T) {
	a := scheduled(daily("a", floorOf(10)))
	for at, names := range map[time.Duration][]string{
		-time.Nanosecond: nil, 0: {"a"}, time.Nanosecond: {"a"}, time.Hour - time.Nanosecond: {"a"}, time.Hour: nil, 24 * time.Hour: {"a"},
	} {
		in, err := ScheduleAt(a, noon.Add(at))
		require.NoError(t, err)
		assert.Equal(t, names, in.Names, at.String())
	}
}

func TestTheNextChangeIsKnown(t *testing.T) {
	weekly := v1alpha1.Schedule{Name: "c", Start: "0 0 * * 3", DurationSeconds: 604800}
	for name, tc := range map[string]struct {
		at        time.Duration
		schedules []v1alpha1.Schedule
		want      time.Duration
	}{
		"a start":                       {-time.Hour, []v1alpha1.Schedule{daily("a", floorOf(3))}, 0},
		"an end":                        {0, []v1alpha1.Schedule{daily("a", floorOf(3))}, time.Hour},
		"the start after the end":       {time.Hour, []v1alpha1.Schedule{daily("a", floorOf(3))}, 24 * time.Hour},
		"the first of several":          {10 * time.Minute, []v1alpha1.Schedule{weekly, daily("a", floorOf(3)), {Name: "b", Start: "30 12 * * *", DurationSeconds: 60}}, 30 * time.Minute},
		"none within a day":             {0, []v1alpha1.Schedule{{Name: "a", Start: "0 0 29 2 *", DurationSeconds: 60}}, -1},
		"none without a schedule":       {0, nil, -1},
		"the earliest possible, of one": {30 * time.Second, []v1alpha1.Schedule{{Name: "a", Start: "* * * * *", DurationSeconds: 3600}}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := ScheduleAt(scheduled(tc.schedules...), noon.Add(tc.at))
			require.NoError(t, err)
			if tc.want < 0 {
				assert.True(t, in.Change.IsZero(), in.Change)
				return
			}
			assert.True(t, noon.Add(tc.want).Equal(in.Change), in.Change)
		})
	}
}

// Nothing changes before the time that is said.
func TestNothingChangesBeforeTheNextChange(t *testing.T) {
	a := scheduled(
		v1alpha1.Schedule{Name: "overlapping", Start: "*/7 1-4 * * *", TimeZone: "Europe/Berlin", DurationSeconds: 660, MinReplicas: number(5)},
		v1alpha1.Schedule{Name: "gapped", Start: "*/20 * * * 0", TimeZone: "Australia/Lord_Howe", DurationSeconds: 300, MinReplicas: number(7)},
		v1alpha1.Schedule{Name: "late", Start: "30 2 * * *", TimeZone: "Europe/Berlin", DurationSeconds: 5000, Freeze: v1alpha1.FreezeAll},
	)
	now := time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC)
	end := now.Add(12 * time.Hour)
	for now.Before(end) {
		in, err := ScheduleAt(a, now)
		require.NoError(t, err)
		require.True(t, in.Change.After(now))
		for at := now; at.Before(in.Change) && at.Before(end); at = at.Add(30 * time.Second) {
			then, err := ScheduleAt(a, at)
			require.NoError(t, err)
			require.Equal(t, in.Names, then.Names, "%s, said at %s to stay until %s", at, now, in.Change)
		}
		now = in.Change
	}
}

func TestAScheduleThatIsLongerThanItsPeriodStaysInForce(t *testing.T) {
	a := scheduled(v1alpha1.Schedule{Name: "a", Start: "*/10 * * * *", DurationSeconds: 900, MinReplicas: number(5)})
	for at := noon; at.Before(noon.Add(3 * time.Hour)); at = at.Add(time.Minute) {
		in, err := ScheduleAt(a, at)
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, in.Names)
	}
}

// spans says from when to when a schedule is in force.
func spans(t *testing.T, s v1alpha1.Schedule, from, until time.Time) string {
	t.Helper()
	zone, err := loadZone(s.TimeZone)
	require.NoError(t, err)
	var all []string
	began := time.Time{}
	for at := from; at.Before(until); at = at.Add(time.Minute) {
		in, err := ScheduleAt(scheduled(s), at)
		require.NoError(t, err)
		switch active := len(in.Names) > 0; {
		case active && began.IsZero():
			began = at
		case !active && !began.IsZero():
			all = append(all, fmt.Sprintf("%s – %s", began.In(zone).Format("15:04 MST"), at.In(zone).Format("15:04 MST")))
			began = time.Time{}
		}
	}
	return strings.Join(all, ", ")
}

// FC-15: bounds and forms of durations are the schema's; here is that none of the
// accepted ones costs much.
func TestNoScheduleIsCostly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	var hostile []v1alpha1.Schedule
	for i, start := range []string{"* * * * *", "59 23 31 12 *", "0 0 29 2 *", "*/59 */23 */31 */12 */6", "0 0 1 1 1"} {
		for j, zone := range []string{"Australia/Lord_Howe", "Antarctica/Troll", "Africa/Casablanca", "UTC"} {
			hostile = append(hostile, v1alpha1.Schedule{Name: fmt.Sprintf("s%d-%d", i, j), Start: start, TimeZone: zone, DurationSeconds: 604800, MinReplicas: number(3)})
		}
	}
	a := scheduled(hostile...)
	require.Empty(t, ValidateAutoScaler(a, v1alpha1.DefaultLimits))
	began := time.Now()
	for i := range 100 {
		_, err := ScheduleAt(a, noon.Add(time.Duration(i)*97*time.Hour))
		require.NoError(t, err)
	}
	assert.Less(t, time.Since(began), 5*time.Second, "50 ms each, where 0.1 ms is usual")
}

func BenchmarkScheduleAt(b *testing.B) {
	a := scheduled(
		v1alpha1.Schedule{Name: "a", Start: "0 8 * * 1-5", TimeZone: "Europe/Berlin", DurationSeconds: 36000, MinReplicas: number(3)},
		v1alpha1.Schedule{Name: "b", Start: "30 23 * * *", TimeZone: "America/New_York", DurationSeconds: 3600, MinReplicas: number(3)},
		v1alpha1.Schedule{Name: "c", Start: "0 0 1 * *", DurationSeconds: 604800, MinReplicas: number(3)},
	)
	for b.Loop() {
		if _, err := ScheduleAt(a, noon); err != nil {
			b.Fatal(err)
		}
	}
}

// What an evaluation pays for looking at a spec again.
func BenchmarkValidateAutoScaler(b *testing.B) {
	a := scheduled(daily("a", floorOf(3)))
	for b.Loop() {
		if errs := ValidateAutoScaler(a, v1alpha1.DefaultLimits); errs != nil {
			b.Fatal(errs)
		}
	}
}
