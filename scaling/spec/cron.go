package spec

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the zones must be there in an image that holds nothing but the program

	"github.com/robfig/cron/v3"
)

// starts are the times at which a schedule begins: whenever the clocks of its zone
// show a minute that the five fields match.
//
// Where the clocks are put forward, a minute that they skip begins when they are: no
// start is lost. Where they are put back, a minute that they show twice begins twice.
//
// The library parses the fields, as it does for CronJobs, and nothing more: what it
// takes for the next time skips the minutes that the clocks do, and it knows no last
// time. Both are looked for within bounded spans, day by day.
type starts struct {
	fields *cron.SpecSchedule
	zone   *time.Location
}

// star is set in a field that was "*" or "?".
const star = 1 << 63

// The library is given this: by itself it takes "*-x" for "*", "," for nothing, "+5"
// for 5, and numbers as large as the machine's.
const (
	oneValue = `([0-9]{1,3}|[A-Za-z]+)`
	oneField = `(\*|\?|` + oneValue + `(-` + oneValue + `)?)(/[0-9]{1,3})?`
)

var (
	cronFields = regexp.MustCompile(`^` + oneField + `(,` + oneField + `)*([ \t]+` + oneField + `(,` + oneField + `)*){4}$`)
	parser     = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
)

var errNeverStarts = errors.New("no year has such a day, so the schedule would never start")

// parseStarts reads the five fields of a start.
func parseStarts(expr string, zone *time.Location) (*starts, error) {
	switch {
	case strings.Contains(expr, "TZ="):
		return nil, errors.New("holds a time zone; set timeZone for it")
	case strings.HasPrefix(expr, "@"):
		return nil, errors.New(`is a short form; write the five fields, as "0 8 * * 1-5"`)
	case !cronFields.MatchString(expr):
		return nil, errors.New(`must be five cron fields, minute, hour, day of the month, month and day of the week, as "0 8 * * 1-5"`)
	}
	parsed, err := parser.Parse(expr)
	if err != nil {
		return nil, err
	}
	fields, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("is no schedule of five fields: %T", parsed)
	}
	s := &starts{fields: fields, zone: zone}
	if !s.anyDay() {
		return nil, errNeverStarts
	}
	return s, nil
}

// longest months, of a leap year.
var longest = [...]int{1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}

// anyDay says whether there is a day that matches. A given day of the week alone is
// found in every month, and every day of the year falls on it at some time.
func (s *starts) anyDay() bool {
	if s.fields.Dom&star == 0 && s.fields.Dow&star == 0 {
		return true
	}
	first := bits.TrailingZeros64(s.fields.Dom)
	for month := 1; month <= 12; month++ {
		if s.fields.Month>>month&1 == 1 && first <= longest[month] {
			return true
		}
	}
	return false
}

// zones holds what was loaded, which reads files. Only zones that exist get in, so
// there are a few hundred at most.
var zones sync.Map

// zoneName leaves out paths, and what the database may hold beside zones.
var zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// loadZone gives a zone of the IANA database; without a name it is UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	unknown := errors.New(`is no time zone of the IANA database, as "Europe/Berlin" or "UTC"`)
	if !zoneName.MatchString(name) || name == "Local" || name == "localtime" || strings.HasPrefix(name, "right/") || strings.HasPrefix(name, "posix/") {
		return nil, unknown
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown
	}
	zones.Store(name, zone)
	return zone, nil
}

// Below, times are Unix seconds, and local ones the seconds that the clocks show as if
// they were UTC.

const (
	day     = 24 * 60 * 60
	forever = math.MaxInt64 / 2
)

// last is the last start after since and not after now.
func (s *starts) last(now, since int64) (int64, bool) {
	for at := now; at > since; {
		z := zoneAt(s.zone, at)
		if local, ok := s.lastLocal(max(z.from, since+1)+z.offset, at+z.offset); ok {
			return local - z.offset, true
		}
		if z.from > since && s.skipped(z) {
			return z.from, true
		}
		at = z.from - 1
	}
	return 0, false
}

// next is the first start after now and not after until.
func (s *starts) next(now, until int64) (int64, bool) {
	for at := now + 1; at <= until; {
		z := zoneAt(s.zone, at)
		if at == z.from && s.skipped(z) {
			return at, true
		}
		if local, ok := s.nextLocal(at+z.offset, min(z.to-1, until)+z.offset); ok {
			return local - z.offset, true
		}
		at = z.to
	}
	return 0, false
}

// skipped says whether the clocks were put forward over a start when the period began.
func (s *starts) skipped(z period) bool {
	_, ok := s.lastLocal(z.from+z.before, z.from+z.offset-1)
	return ok
}

// period is a time in which the clocks of a zone are not put forward or back.
type period struct {
	from, to int64
	// offset is what the clocks are ahead of UTC, and before what they were until from.
	offset, before int64
}

func zoneAt(zone *time.Location, at int64) period {
	t := time.Unix(at, 0).In(zone)
	_, offset := t.Zone()
	z := period{from: -forever, to: forever, offset: int64(offset), before: int64(offset)}
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		z.from = from.Unix()
		_, before := from.Add(-time.Second).Zone()
		z.before = int64(before)
	}
	if !to.IsZero() {
		z.to = to.Unix()
	}
	if z.to <= at {
		// In the years that a zone's file has only a rule for, the last day of a leap year
		// ends, as ZoneBounds says, before it has begun. No clock is changed on it.
		z.to = (dayOf(at) + 1) * day
	}
	return z
}

// lastLocal is the last minute from one local time to another, both included, that
// matches. Its cost grows with the number of days between them.
func (s *starts) lastLocal(from, to int64) (int64, bool) {
	for date := dayOf(to); from <= to && date >= dayOf(from); date-- {
		if !s.onDate(date) {
			continue
		}
		if minute, ok := s.lastMinute(min((to-date*day)/60, 24*60-1)); ok {
			local := date*day + minute*60
			return local, local >= from
		}
	}
	return 0, false
}

// nextLocal is the first one.
func (s *starts) nextLocal(from, to int64) (int64, bool) {
	for date := dayOf(from); from <= to && date <= dayOf(to); date++ {
		if !s.onDate(date) {
			continue
		}
		if minute, ok := s.nextMinute(max((from-date*day+59)/60, 0)); ok {
			local := date*day + minute*60
			return local, local <= to
		}
	}
	return 0, false
}

// onDate says whether a day, counted from 1970, matches. As everywhere with cron, it
// need be only one of day of the month and day of the week where both are given.
func (s *starts) onDate(date int64) bool {
	t := time.Unix(date*day, 0).UTC()
	if s.fields.Month>>t.Month()&1 == 0 {
		return false
	}
	dom := s.fields.Dom>>t.Day()&1 == 1
	dow := s.fields.Dow>>t.Weekday()&1 == 1
	if (s.fields.Dom|s.fields.Dow)&star != 0 {
		return dom && dow
	}
	return dom || dow
}

// lastMinute is the last minute of a day that matches and is not after limit.
func (s *starts) lastMinute(limit int64) (int64, bool) {
	for hour := limit / 60; hour >= 0; hour-- {
		if s.fields.Hour>>hour&1 == 0 {
			continue
		}
		within := s.fields.Minute &^ star
		if hour == limit/60 {
			within &= 1<<(limit%60+1) - 1
		}
		if within != 0 {
			return hour*60 + int64(bits.Len64(within)) - 1, true
		}
	}
	return 0, false
}

// nextMinute is the first one that is not before limit.
func (s *starts) nextMinute(limit int64) (int64, bool) {
	for hour := limit / 60; hour < 24; hour++ {
		if s.fields.Hour>>hour&1 == 0 {
			continue
		}
		within := s.fields.Minute &^ star
		if hour == limit/60 {
			within &= ^uint64(0) << (limit % 60)
		}
		if within != 0 {
			return hour*60 + int64(bits.TrailingZeros64(within)), true
		}
	}
	return 0, false
}

// dayOf divides towards the past.
func dayOf(at int64) int64 {
	if at < 0 {
		return -((-at + day - 1) / day)
	}
	return at / day
}
