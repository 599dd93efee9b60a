package report

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/simulate"
)

var start = time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)

func about() *Subject {
	return &Subject{Title: "web", Autoscalers: []string{"web"}, Metrics: []Metric{{Name: "load", Target: 100}}, Interval: 15 * time.Second}
}

// step n of a load that is 900 but for one step with 9,000.
func step(n int) *simulate.Step {
	load, replicas := 900.0, int32(9)
	if n == 100_003 {
		load, replicas = 9000, 20
	}
	return &simulate.Step{
		Verdict: simulate.Verdict{Recommended: int32(load / 100), Desired: replicas, Replicas: replicas, Min: 2, Max: 20},
		At:      start.Add(time.Duration(n) * 15 * time.Second), For: 15 * time.Second, Before: 9, Ready: 9,
		Load: []simulate.Load{{Value: load}}, Needed: int32(load / 100), Known: true,
	}
}

// moment is that of a step.
func moment(s *simulate.Step) *simulate.Moment {
	return &simulate.Moment{At: s.At, For: s.For, Load: s.Load, Ready: []int32{s.Ready}, Needed: s.Needed, Invalid: s.Invalid}
}

// take gives a writer a step with its moment.
func take(t *testing.T, w Writer, s *simulate.Step) {
	t.Helper()
	w.Moment(moment(s))
	require.NoError(t, w.Step(s))
}

func TestAChartOfAnyLengthHasAsManyColumnsAndLosesNoPeak(t *testing.T) {
	c := newColumns(about())
	const steps = 500_000
	for n := range steps {
		s := step(n)
		c.measure(moment(s))
		c.add(s)
	}
	assert.LessOrEqual(t, len(c.all), maxColumns)
	assert.Greater(t, len(c.all), maxColumns/3)
	var peaks int
	for i := range c.all {
		column := &c.all[i]
		require.True(t, column.loads[0].known)
		assert.InDelta(t, 900, column.loads[0].low, 0)
		if column.loads[0].high == 9000 {
			peaks++
			from, to := c.span(i)
			at := step(100_003).At
			assert.True(t, !at.Before(from) && at.Before(to), "the peak is where it was")
			assert.True(t, column.short, "and marked")
		}
	}
	assert.Equal(t, 1, peaks)
	assert.Equal(t, start.Add(steps*15*time.Second), c.end)
}

func TestAMomentThatIsNotKnownIsAGap(t *testing.T) {
	c := newColumns(about())
	for n := range 10 {
		s := step(n)
		if n == 4 || n == 5 {
			s.Load[0] = simulate.Load{Value: math.NaN()}
			s.Invalid, s.Known = []string{"InvalidValue"}, false
		}
		c.measure(moment(s))
	}
	lines, _ := c.points(func(at *column) *extent { return &at.loads[0] })
	require.Len(t, lines, 2)
	assert.InDelta(t, seconds(start.Add(time.Minute)), lines[0].x[len(lines[0].x)-1], 0)
	var gaps [][2]time.Time
	c.runs(func(at *column) bool { return at.invalid }, func(from, to time.Time) { gaps = append(gaps, [2]time.Time{from, to}) })
	assert.Equal(t, [][2]time.Time{{start.Add(time.Minute), start.Add(90 * time.Second)}}, gaps)
}

func TestANameOfAManifestIsNoMarkup(t *testing.T) {
	s := about()
	s.Title, s.Autoscalers[0], s.Metrics[0].Name = "<script>alert(1)</script>", "</script><b>", "<i>"
	for name, form := range map[string]func(io.Writer, *Subject) Writer{"html": NewHTML, "svg": NewSVG} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			w := form(&out, s)
			take(t, w, step(0))
			require.NoError(t, w.Close(make([]simulate.Summary, 1)))
			assert.NotContains(t, out.String(), "<script>alert")
			assert.NotContains(t, out.String(), "</script><b>")
			assert.NotContains(t, out.String(), "<i>:")
		})
	}
}

func TestAPageListsSoManyChangesAndCountsTheRest(t *testing.T) {
	var out bytes.Buffer
	w := NewHTML(&out, about())
	for n := range maxChanges + 7 {
		s := step(n)
		s.Before = 8
		take(t, w, s)
	}
	require.NoError(t, w.Close(make([]simulate.Summary, 1)))
	assert.Contains(t, out.String(), "And 7 more.")
	assert.Equal(t, 3, strings.Count(out.String(), `<div class="wide"><`), "chart and tables scroll in themselves, for a phone")
	assert.Equal(t, maxChanges, strings.Count(out.String(), "<tr><td>"), "the changes")
}

func TestAnEmptyRecordingIsNoPicture(t *testing.T) {
	for _, form := range []func(io.Writer, *Subject) Writer{NewHTML, NewSVG, NewPNG} {
		assert.ErrorIs(t, form(io.Discard, about()).Close(make([]simulate.Summary, 1)), errNothing)
	}
}

func TestTicksAreAtWholeStepsOfTheClock(t *testing.T) {
	for name, span := range map[string]time.Duration{
		"a minute": time.Minute, "an hour": time.Hour, "a day": 24 * time.Hour, "a year": 366 * 24 * time.Hour, "a century": 36525 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			ticks := timeTicks{}.Ticks(seconds(start), seconds(start.Add(span)))
			assert.GreaterOrEqual(t, len(ticks), 3)
			assert.LessOrEqual(t, len(ticks), 14)
		})
	}
}

func TestNumbersHaveTheDigitsThatMatter(t *testing.T) {
	for want, v := range map[string]float64{"0": 0, "900": 900, "1234567": 1234567, "2117.9": 2117.94, "0.3333": 1.0 / 3, "NaN": math.NaN(), "+Inf": math.Inf(1), ">1000000000000000": 1e30} {
		assert.Equal(t, want, number(v))
	}
}

// svg is the drawing of some steps with their moments.
func svg(t *testing.T, s *Subject, steps ...*simulate.Step) string {
	t.Helper()
	var out bytes.Buffer
	w := NewSVG(&out, s)
	for _, step := range steps {
		m := moment(step)
		m.Ready = slices.Repeat(m.Ready, len(s.Autoscalers))
		w.Moment(m)
		require.NoError(t, w.Step(step))
	}
	require.NoError(t, w.Close(make([]simulate.Summary, len(s.Autoscalers))))
	return out.String()
}

func TestALineThatIsCutSaysSo(t *testing.T) {
	far, near := step(1), step(1)
	far.Recommended = 90
	assert.Contains(t, svg(t, about(), step(0), far), "recommended (cut at 32)")
	near.Recommended = 31
	assert.NotContains(t, svg(t, about(), step(0), near), "cut at")
	other := step(0)
	other.Of, other.Replicas = 1, 60
	s := about()
	s.Autoscalers = []string{"web", "hpa"}
	assert.Contains(t, svg(t, s, other, step(0), far), ">60<", "the axis reaches as far as the replicas of another")
	assert.NotContains(t, svg(t, s, other, step(0), far), "cut at")
}

func TestABandSaysWhoseItIs(t *testing.T) {
	missing := step(0)
	missing.Ready = 3
	s := about()
	assert.Contains(t, svg(t, s, missing), ">too few ready<")
	s.Autoscalers = []string{"web", "hpa"}
	assert.Contains(t, svg(t, s, missing), ">too few ready of web<")
}

func TestLabelsOfSchedulesDoNotStandOverEachOther(t *testing.T) {
	year, day := make([]*simulate.Step, 0, 2*365), make([]*simulate.Step, 0, 2)
	for n := range 2 * 365 {
		s := step(n)
		s.At, s.For = start.Add(time.Duration(n)*12*time.Hour), 12*time.Hour
		if n%2 == 0 {
			s.Schedules = []string{"rush", "office-hours"}
		}
		year = append(year, s)
	}
	day = append(day, year[:2]...)
	s := about()
	s.Interval = 12 * time.Hour
	for name, steps := range map[string][]*simulate.Step{"a year": year, "a day": day} {
		drawn := svg(t, s, steps...)
		assert.Equal(t, 1, strings.Count(drawn, ">rush<"), name)
		assert.Equal(t, 1, strings.Count(drawn, ">office-hours<"), name)
	}
}

func TestTheLoadIsDrawnBehindTheCapacities(t *testing.T) {
	c := &chart{columns: newColumns(about())}
	c.measure(moment(step(0)))
	c.loads()
	var drawn []string
	for _, e := range c.entries {
		drawn = append(drawn, e.name)
	}
	assert.Equal(t, []string{"load", "capacity"}, drawn)
}

func TestOneIsNotSeveral(t *testing.T) {
	assert.Contains(t, sentence("web", &simulate.Summary{Ups: 1, Flaps: 1}), "1 change, short of replicas for 0s, 1 flap")
	assert.Contains(t, sentence("web", &simulate.Summary{Ups: 1, Downs: 1}), "2 changes,")
}

func TestNoNumberHasAnExponent(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 100: "100", 284.55: "284.6", 99.999: "100", 1234.56: "1234.6", 2e6: "2000000", 0.25: "0.25", 0.00001234567: "0.00001235",
		1e-9: "<0.000001", -1e-9: ">-0.000001", -0.5: "-0.5", 1e300: ">1000000000000000", -1e300: "<-1000000000000000",
		math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		assert.Equal(t, want, number(v))
	}
	assert.Equal(t, "NaN", number(math.NaN()))
	for part, want := range map[time.Duration]string{
		0: "0s", time.Hour: "1h0m0s (100%)", time.Hour - time.Nanosecond: "59m59.999999999s (>99.9%)", 3582 * time.Second: "59m42s (99.5%)",
		876 * time.Second: "14m36s (24%)", 330 * time.Second: "5m30s (9.2%)", 3 * time.Second: "3s (0.083%)", time.Millisecond: "1ms (<0.01%)",
	} {
		assert.Equal(t, want, share(part, time.Hour))
	}
	for v, want := range map[float64]string{1e6: "1000000", 31536000: "31536000", 0.00001: "0.00001", 1e300: "1e+300", 900.5: "900.5"} {
		assert.Equal(t, want, float(v), "for a program, that reads the same number")
	}
	for _, tick := range (valueTicks{}).Ticks(0, 2.5e6) {
		assert.NotContains(t, tick.Label, "e")
	}
}

func TestALineIsDrawnInPiecesThatAreTheLine(t *testing.T) {
	for _, n := range []int{1, 2, atOnce, atOnce + 1, 2*atOnce - 1, 1000} {
		var line []vg.Point
		for i := range n {
			line = append(line, vg.Point{X: vg.Length(i), Y: vg.Length(i % 7)})
		}
		var joined []vg.Point
		for i, piece := range pieces(line) {
			assert.LessOrEqual(t, len(piece), atOnce)
			if i > 0 {
				require.Equal(t, joined[len(joined)-1], piece[0])
				joined, piece = joined[:len(joined)-1], piece[1:] // the middle
			}
			joined = append(joined, piece...)
		}
		assert.Equal(t, line, joined)
	}
}

func TestAnAreaIsDrawnInPiecesThatLeaveNothingOut(t *testing.T) {
	for _, n := range []int{2, atOnce, atOnce + 1, atOnce + 3, 1000} {
		area := make([]vg.Point, 2*n)
		for i := range n {
			area[i] = vg.Point{X: vg.Length(i), Y: 9}
			area[2*n-1-i] = vg.Point{X: vg.Length(i), Y: 1}
		}
		reached := vg.Length(0)
		for _, piece := range areaPieces(area) {
			last := len(piece)/2 - 1
			assert.LessOrEqual(t, piece[0].X, reached)
			assert.Equal(t, piece[last].X, piece[last+1].X, "it goes down where it has come to")
			assert.Equal(t, piece[0].X, piece[len(piece)-1].X)
			reached = max(reached, piece[last].X)
		}
		assert.InDelta(t, n-1, float64(reached), 0)
	}
}
