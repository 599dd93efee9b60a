package spec

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the table of docs/schedules.md")

const (
	tableBegins = "<!-- what follows is written by go test ./scaling/spec -run TestTheTable -update -->\n"
	tableEnds   = "<!-- until here -->\n"
)

// TestTheTableOfClockChangesIsWhatSchedulesDo holds docs/schedules.md to the code.
func TestTheTableOfClockChangesIsWhatSchedulesDo(t *testing.T) {
	const forward, back = "put forward", "put back"
	rows := []struct {
		zone, clocks, how string
		date              time.Time
		start             string
		duration          time.Duration
	}{
		{"Europe/Berlin", "02:00 → 03:00", forward, time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), "0 2 * * *", time.Hour},
		{"Europe/Berlin", "02:00 → 03:00", forward, time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), "30 2 * * *", time.Hour},
		{"Europe/Berlin", "02:00 → 03:00", forward, time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), "30 1 * * *", time.Hour},
		{"Europe/Berlin", "03:00 → 02:00", back, time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), "30 2 * * *", 30 * time.Minute},
		{"Europe/Berlin", "03:00 → 02:00", back, time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), "30 2 * * *", time.Hour},
		{"Europe/Berlin", "03:00 → 02:00", back, time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), "30 1 * * *", time.Hour},
		{"America/New_York", "02:00 → 03:00", forward, time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC), "15 2 * * *", time.Hour},
		{"America/New_York", "02:00 → 01:00", back, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), "15 1 * * *", 30 * time.Minute},
		{"Australia/Lord_Howe", "02:00 → 02:30", forward, time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC), "15 2 * * *", time.Hour},
		{"Australia/Lord_Howe", "02:00 → 02:30", forward, time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC), "30 2 * * *", time.Hour},
		{"Australia/Lord_Howe", "02:00 → 01:30", back, time.Date(2026, 4, 5, 0, 0, 0, 0, time.UTC), "45 1 * * *", 10 * time.Minute},
		{"Australia/Lord_Howe", "02:00 → 01:30", back, time.Date(2026, 4, 5, 0, 0, 0, 0, time.UTC), "45 1 * * *", time.Hour},
		{"America/Santiago", "00:00 → 01:00", forward, time.Date(2026, 9, 6, 0, 0, 0, 0, time.UTC), "0 0 * * *", time.Hour},
	}
	var table strings.Builder
	table.WriteString("| zone | clocks | start | duration | in force on that day |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		zone, err := loadZone(r.zone)
		require.NoError(t, err)
		from := time.Date(r.date.Year(), r.date.Month(), r.date.Day(), 0, 0, 0, 0, zone).Add(-30 * time.Minute)
		s := v1alpha1.Schedule{Name: "a", Start: r.start, TimeZone: r.zone, DurationSeconds: int32(r.duration.Seconds()), MinReplicas: number(5)}
		fmt.Fprintf(&table, "| %s | %s: %s, %s | `%s` | %d min | %s |\n",
			r.zone, r.date.Format("2006-01-02"), r.how, r.clocks, r.start, int(r.duration.Minutes()), spans(t, s, from, from.Add(20*time.Hour)))
	}

	const file = "../../docs/schedules.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), tableBegins)
	require.True(t, ok, "%s has no place for the table", file)
	_, after, ok := strings.Cut(rest, tableEnds)
	require.True(t, ok, "%s has no end of the table", file)
	want := before + tableBegins + table.String() + tableEnds + after
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "go test ./scaling/spec -run TestTheTable -update writes it")
}
