package spec

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func startsOf(t require.TestingT, expr, zone string) *starts {
	loaded, err := loadZone(zone)
	require.NoError(t, err)
	s, err := parseStarts(expr, loaded)
	require.NoError(t, err, expr)
	return s
}

// startsWithin gives all starts after one time and not after another, found forwards,
// and holds those found backwards to them.
func startsWithin(t require.TestingT, s *starts, after, until int64) []int64 {
	var found []int64
	for at := after; ; {
		next, ok := s.next(at, until)
		if !ok {
			break
		}
		found, at = append(found, next), next
	}
	var back []int64
	for at := until; ; {
		last, ok := s.last(at, after)
		if !ok {
			break
		}
		back, at = append([]int64{last}, back...), last-1
	}
	require.Equal(t, found, back)
	return found
}

// slowly finds the same starts by looking at the clock at every full minute; the zones
// of the tests are whole minutes ahead of UTC.
func slowly(s *starts, after, until int64) []int64 {
	shows := func(local int64) bool {
		t := time.Unix(local, 0).UTC()
		f := s.fields
		dom, dow := f.Dom>>t.Day()&1 == 1, f.Dow>>t.Weekday()&1 == 1
		onDay := dom || dow
		if f.Dom&star != 0 || f.Dow&star != 0 {
			onDay = dom && dow
		}
		return t.Second() == 0 && onDay && f.Month>>t.Month()&1 == 1 && f.Hour>>t.Hour()&1 == 1 && f.Minute>>t.Minute()&1 == 1
	}
	clock := func(at int64) int64 {
		_, offset := time.Unix(at, 0).In(s.zone).Zone()
		return at + int64(offset)
	}
	var found []int64
	for at := after + 60 - after%60; at <= until; at += 60 {
		is := shows(clock(at))
		for skipped := clock(at-60) + 60; skipped < clock(at); skipped += 60 {
			is = is || shows(skipped)
		}
		if is {
			found = append(found, at)
		}
	}
	return found
}

// changes are days on which clocks are put forward or back, by an hour, by half of one,
// by two, and over a whole day.
var changes = []struct {
	zone string
	at   time.Time
}{
	{"Europe/Berlin", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 10, 3, 15, 30, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, 4, 4, 15, 0, 0, 0, time.UTC)},
	{"Antarctica/Troll", time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)},
	{"America/Santiago", time.Date(2026, 9, 6, 4, 0, 0, 0, time.UTC)}, // at midnight
	{"Pacific/Apia", time.Date(2011, 12, 30, 10, 0, 0, 0, time.UTC)},
	{"UTC", time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)},
	{"Asia/Kathmandu", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	// Years that a zone's file has only a rule for, and whose last day ZoneBounds ends early.
	{"America/New_York", time.Date(2040, 12, 31, 0, 0, 0, 0, time.UTC)},
	{"Australia/Sydney", time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2040, 10, 28, 1, 0, 0, 0, time.UTC)},
}

func TestStartsAreThoseThatAClockOnTheWallShows(t *testing.T) {
	field := func(low, high int) *rapid.Generator[string] {
		one := rapid.Custom(func(t *rapid.T) string {
			a := rapid.IntRange(low, high).Draw(t, "a")
			switch rapid.IntRange(0, 4).Draw(t, "form") {
			case 0:
				return fmt.Sprint(a)
			case 1:
				return fmt.Sprintf("%d-%d", a, rapid.IntRange(a, high).Draw(t, "b"))
			case 2:
				return fmt.Sprintf("*/%d", rapid.IntRange(1, high+3).Draw(t, "step"))
			case 3:
				return fmt.Sprintf("%d/%d", a, rapid.IntRange(1, high+3).Draw(t, "step"))
			}
			return "*"
		})
		return rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(one, 1, 2).Draw(t, "field"), ",")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		change := rapid.SampledFrom(changes).Draw(t, "change")
		zone, err := loadZone(change.zone)
		require.NoError(t, err)
		expr := strings.Join([]string{
			field(0, 59).Draw(t, "minute"), field(0, 23).Draw(t, "hour"), field(1, 31).Draw(t, "day"),
			field(1, 12).Draw(t, "month"), field(0, 6).Draw(t, "weekday"),
		}, " ")
		s, err := parseStarts(expr, zone)
		if err != nil {
			require.ErrorIs(t, err, errNeverStarts)
			return
		}
		after := change.at.Unix() - rapid.Int64Range(0, 5*3600).Draw(t, "before")
		until := change.at.Unix() + rapid.Int64Range(0, 5*3600).Draw(t, "after")
		require.Equal(t, slowly(s, after, until), startsWithin(t, s, after, until), "%q in %s", expr, change.zone)
	})
}

func TestEveryQuarterOfAnHourAroundAChangeOfClocks(t *testing.T) {
	for _, change := range changes {
		after, until := change.at.Unix()-2*3600, change.at.Unix()+2*3600
		for quarter := range 24 * 4 {
			s := startsOf(t, fmt.Sprintf("%d %d * * *", quarter%4*15, quarter/4), change.zone)
			require.Equal(t, slowly(s, after, until), startsWithin(t, s, after, until), "%02d:%02d in %s", quarter/4, quarter%4*15, change.zone)
		}
	}
}

func TestWhereNoClockIsChangedStartsAreThoseOfTheLibrary(t *testing.T) {
	for _, expr := range []string{"0 8 * * 1-5", "*/7 3,15 * * *", "30 23 31 * *", "0 0 29 2 *", "15 10 13 * 5", "59 23 * 12 0", "0 0 1 1 *", "5/20 * 1-7 * mon"} {
		s := startsOf(t, expr, "UTC")
		library, err := cron.ParseStandard(expr)
		require.NoError(t, err)
		at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		for range 30 {
			want := library.Next(at)
			if want.IsZero() {
				break // it looks five years ahead, and 2100 is no leap year
			}
			got, ok := s.next(at.Unix(), want.Unix()+3600)
			require.True(t, ok, expr)
			require.Equal(t, want, time.Unix(got, 0).UTC(), expr)
			back, ok := s.last(want.Unix()+59, at.Unix())
			require.True(t, ok, expr)
			require.Equal(t, got, back, expr)
			at = want
		}
	}
}

func TestALeapDayIsFoundAndADayThatNeverComesIsRefused(t *testing.T) {
	s := startsOf(t, "0 12 29 2 *", "Europe/Berlin")
	leap := time.Date(2028, 2, 29, 11, 0, 0, 0, time.UTC)
	at, ok := s.next(time.Date(2028, 2, 28, 23, 0, 0, 0, time.UTC).Unix(), leap.Unix()+86400)
	require.True(t, ok)
	assert.Equal(t, leap, time.Unix(at, 0).UTC())
	_, ok = s.last(time.Date(2027, 3, 5, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2027, 2, 25, 0, 0, 0, 0, time.UTC).Unix())
	assert.False(t, ok, "no other year has it")

	for _, expr := range []string{"0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * 31 feb ?"} {
		_, err := parseStarts(expr, time.UTC)
		assert.ErrorIs(t, err, errNeverStarts, expr)
	}
	for _, expr := range []string{"0 0 29 2 *", "0 0 30 2 1", "0 0 30 1,2 *", "0 0 31 * 0"} {
		_, err := parseStarts(expr, time.UTC)
		assert.NoError(t, err, expr)
	}
}

func TestTheLastDayOfALeapYearIsSearchedToItsEnd(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Sydney"} {
		s := startsOf(t, "0 * * * *", zone)
		for hours := range int64(48) {
			at := time.Date(2040, 12, 30, 12, 0, 0, 0, time.UTC).Unix() + hours*3600
			z := zoneAt(s.zone, at)
			require.True(t, z.from <= at && at < z.to, "%s: %s is in no period", zone, time.Unix(at, 0).UTC())
			next, ok := s.next(at, at+day)
			require.True(t, ok)
			require.Equal(t, at+3600, next, zone)
		}
	}
}

func TestWhatIsNotFiveFieldsIsRefused(t *testing.T) {
	for expr, says := range map[string]string{
		"":                                "must be five cron fields",
		"0 8 * *":                         "must be five cron fields",
		"0 0 8 * * 1-5":                   "must be five cron fields",
		"@daily":                          "is a short form",
		"@every 1s":                       "is a short form",
		"TZ=Europe/Berlin 0 8 * * *":      "set timeZone",
		"CRON_TZ=Europe/Berlin 0 8 * * *": "set timeZone",
		"TZ=":                             "set timeZone",
		" 0 8 * * *":                      "must be five cron fields",
		"0 8 * * *\n":                     "must be five cron fields",
		"0\u00a08 * * *":                  "must be five cron fields",
		"*-5 8 * * *":                     "must be five cron fields",
		", 8 * * *":                       "must be five cron fields",
		"+5 8 * * *":                      "must be five cron fields",
		"-5 8 * * *":                      "must be five cron fields",
		"5, 8 * * *":                      "must be five cron fields",
		"5/ 8 * * *":                      "must be five cron fields",
		"0x5 8 * * *":                     "must be five cron fields",
		"60 8 * * *":                      "above maximum (59)",
		"0 24 * * *":                      "above maximum (23)",
		"0 0 0 * *":                       "below minimum (1)",
		"0 0 * 13 *":                      "above maximum (12)",
		"0 0 * * 7":                       "above maximum (6)",
		"0 0 * * 5-1":                     "beyond end of range",
		"*/0 * * * *":                     "should be a positive number",
		"0 0 * foo *":                     "failed to parse int from foo",
		"0 0 L * *":                       "failed to parse int from L",
		"99999999999999999999 * * * *":    "must be five cron fields",
		"59/9223372036854775807 * * * *":  "must be five cron fields",
	} {
		_, err := parseStarts(expr, time.UTC)
		require.Error(t, err, "%q", expr)
		assert.Contains(t, err.Error(), says, "%q", expr)
	}
	for _, expr := range []string{"0 8 * * 1-5", "*/15 * * * *", "0\t8  * * MON-fri", "? ? ? ? ?", "0,30 9-17/2 1,15 jan-jun,12 0,6", "059/999 0 1 1 0"} {
		_, err := parseStarts(expr, time.UTC)
		assert.NoError(t, err, "%q", expr)
	}
}

func TestAQuestionMarkMeansWhatAStarDoes(t *testing.T) {
	for mark, star := range map[string]string{
		"? ? ? ? ?":       "* * * * *",
		"0 8 ? * 1":       "0 8 * * 1",
		"0 8 1 * ?":       "0 8 1 * *",
		"?/15 9-17 ? * ?": "*/15 9-17 * * *",
		"0 ?/6 ?/2 * MON": "0 */6 */2 * MON",
		"0 8 1,? * MON":   "0 8 1,* * MON",
		"30 ? 29 feb,? ?": "30 * 29 feb,* *",
	} {
		got, err := parseStarts(mark, time.UTC)
		require.NoError(t, err, mark)
		assert.Equal(t, startsOf(t, star, "UTC").fields, got.fields, mark)
	}
}

func TestOnlyZonesOfTheDatabaseAreKnown(t *testing.T) {
	for _, name := range []string{"Local", "localtime", "../../etc/passwd", "/etc/localtime", "Europe", "Europe/", "Europe//Berlin", "europe berlin", "CET+1", "UTC+1", "GMT-25", "Mars/Olympus", "right/Europe/Berlin", "posix/UTC", `Europe\Berlin`, "+01:00", "zone.tab", strings.Repeat("A", 1000)} {
		_, err := loadZone(name)
		assert.ErrorContains(t, err, "is no time zone of the IANA database", "%q", name)
	}
	for _, name := range []string{"", "UTC", "Europe/Berlin", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "America/Port-au-Prince", "EST5EDT"} {
		_, err := loadZone(name)
		assert.NoError(t, err, "%q", name)
	}
	first, err := loadZone("Asia/Tokyo")
	require.NoError(t, err)
	again, err := loadZone("Asia/Tokyo")
	require.NoError(t, err)
	assert.Same(t, first, again, "files are read once")
}

// Whatever the text, it is read soon, and what was read is searched soon.
func FuzzStarts(f *testing.F) {
	for _, seed := range []string{"0 8 * * 1-5", "0 0 30 2 *", "0 0 29 2 1", "TZ=", "CRON_TZ=x", "@every 1ns", "* * * * *", "59/9223372036854775807 0 1 1 0", "*/1,*/1 ? ? ? ?", "0 0 31 12 0", ",,,, , , , ,"} {
		f.Add(seed, int64(1_793_000_000), int64(604_800))
	}
	f.Fuzz(func(t *testing.T, expr string, now, duration int64) {
		now, duration = now%(1<<40), min(max(duration, 60), 604_800)
		for _, change := range changes {
			zone, err := loadZone(change.zone)
			require.NoError(t, err)
			s, err := parseStarts(expr, zone)
			if err != nil {
				return
			}
			if at, ok := s.last(now, now-duration); ok {
				require.LessOrEqual(t, at, now)
				require.Greater(t, at, now-duration)
			}
			if at, ok := s.next(now, now+86_400); ok {
				require.LessOrEqual(t, at, now+86_400)
				require.Greater(t, at, now)
				back, ok := s.last(at, now)
				require.True(t, ok)
				require.Equal(t, at, back)
			}
		}
	})
}
