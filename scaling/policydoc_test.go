package scaling_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
)

var update = flag.Bool("update", false, "write the tables of docs/policy.md")

const policyDoc = "../docs/policy.md"

// The tables of docs/policy.md are what Decide gives. After a change:
//
//	go test ./scaling -run TestPolicyDoc -update
func TestPolicyDocShowsWhatDecideGives(t *testing.T) {
	page, err := os.ReadFile(policyDoc)
	require.NoError(t, err)
	text := string(page)
	for name, table := range map[string]string{
		"capacity": capacityTable(t), "stages": stagesTable(t), "tolerance": toleranceTable(t),
		"way-up": wayUpTable(t), "way-down": wayDownTable(t),
	} {
		begin, end := "<!-- table: "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(text, begin)
		require.True(t, found, "no table %q", name)
		shown, after, found := strings.Cut(rest, end)
		require.True(t, found, "table %q has no end", name)
		if !*update {
			assert.Equal(t, table, shown, "table %q", name)
		}
		text = before + begin + table + end + after
	}
	if *update {
		require.NoError(t, os.WriteFile(policyDoc, []byte(text), 0o600))
	}
}

// table renders a head and rows of cells.
func table(head string, rows ...[]string) string {
	var b strings.Builder
	columns := strings.Split(head, "|")
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

func text(cells ...any) []string {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	return row
}

// rule as the status shows it.
func rule(d *scaling.Decision) string {
	if d.Rule == scaling.RuleNone {
		return ""
	}
	return "`" + d.Rule.String() + "`"
}

func capacityTable(t *testing.T) string {
	t.Helper()
	row := func(what, formula string, p *scaling.Policy, ready int32, s scaling.Sample, want int32) []string {
		o := observe(start, max(ready, 1), s)
		over(ready, o)
		d, _ := scaling.Decide(p, o, scaling.Memory{})
		require.Equal(t, want, d.Recommended, what)
		result := fmt.Sprint(d.Recommended)
		if d.ValidMetrics == 0 {
			result = "none: `" + d.Metrics[0].Reason + "`"
		}
		return text(what, formula, result)
	}
	total, average, backlog := of(scaling.Total, 100), of(scaling.PerReplicaAverage, 100), of(scaling.Backlog, 10)
	backlog.Metrics[0].Clearance = time.Minute
	queue := valid(3000)
	queue.ArrivalRate = 50
	return table("what is read|replicas|`recommendedReplicas`",
		row("Total: 900 requests/s, 3 replicas run", "900 / 100", total, 3, valid(900), 9),
		row("Total: the same, 6 replicas run", "900 / 100", total, 6, valid(900), 9),
		row("Total: 901 requests/s", "901 / 100, rounded up", total, 6, valid(901), 10),
		row("Total: 10,000 requests/s, `maxReplicas: 20`", "10,000 / 100", total, 6, valid(10_000), 100),
		row("PerReplicaAverage: 150 requests/s each, 6 Ready", "6 × 150 / 100", average, 6, valid(150), 9),
		row("PerReplicaAverage: 150 requests/s each, none Ready", "", average, 0, valid(150), 0),
		row("a total of 900 read as an average, 3 Ready: wrong", "3 × 900 / 100", average, 3, valid(900), 27),
		row("Backlog: 3,000 items wait, 50/s arrive, cleared in 60 s, 10/s each", "(50 + 3,000 / 60) / 10", backlog, 3, queue, 10),
	)
}

func stagesTable(t *testing.T) string {
	t.Helper()
	b := scaling.Behavior{
		UpMaxStep: 4, DownMaxStep: 1, DownStabilization: usualWindow, DownMinInterval: time.Minute,
		ToleranceUp: 0.1, ToleranceDown: 0.1,
	}
	row := func(what string, current int32, load float64, before func(l *loop), want int32) []string {
		l := newLoop(perReplica100(b), current)
		before(l)
		l.current = current
		d := l.at(time.Hour, valid(load))
		require.Equal(t, want, d.Replicas, what)
		m := &d.Metrics[0]
		return text(what, current, m.Raw, m.Tolerated, m.Bounded, m.Stabilized, m.Limited, rule(&d))
	}
	nothing := func(*loop) {}
	quiet := func(l *loop) { l.run(50*time.Minute, time.Hour-poll, valid(400)) }
	idle := func(l *loop) { l.run(50*time.Minute, time.Hour-poll, valid(0)) }
	peak := func(l *loop) {
		l.run(50*time.Minute, 58*time.Minute, valid(900))
		l.run(58*time.Minute+poll, time.Hour-poll, valid(400))
	}
	down := func(l *loop) {
		quiet(l)
		l.memory = l.memory.Scaled(start.Add(time.Hour-30*time.Second), 10, 9, poll)
	}
	return table("load|current|raw|tolerated|bounded|stabilized|limited|rule",
		row("950 requests/s: near enough", 9, 950, nothing, 9),
		row("1,200: four more at a time", 5, 1200, nothing, 9),
		row("5,000: above the maximum of 20, and a step", 15, 5000, nothing, 19),
		row("400: 900 were seen two minutes ago", 10, 400, peak, 9),
		row("400: for more than five minutes", 9, 400, quiet, 8),
		row("400: but the last scale-down was 30 s ago", 9, 400, down, 9),
		row("0: never below the minimum of 2", 3, 0, idle, 2),
	)
}

// hpa is the HPA's formula: the ratio's distance from 1 is tolerated up to 0.1, the
// end included.
func hpa(current int32, value, target float64) int32 {
	if ratio := value / target; ratio >= 0.9 && ratio <= 1.1 {
		return current
	}
	return int32(math.Ceil(float64(current) * value / target))
}

func toleranceTable(t *testing.T) string {
	t.Helper()
	var rows [][]string
	for _, c := range []struct {
		millicores float64
		want       int32
	}{{80, 2}, {110, 3}, {120, 3}, {132, 3}, {133, 4}, {160, 4}} {
		p := of(scaling.PerReplicaAverage, 0.120)
		p.Metrics[0].Behavior = scaling.Behavior{ToleranceUp: 0.1, ToleranceDown: 0.1}
		d, _ := scaling.Decide(p, observe(start, 3, valid(c.millicores/1000)), scaling.Memory{})
		require.Equal(t, c.want, hpa(3, c.millicores, 120))
		require.Equal(t, c.want, d.Replicas)
		p.Metrics[0].Behavior = scaling.Behavior{}
		exact, _ := scaling.Decide(p, observe(start, 3, valid(c.millicores/1000)), scaling.Memory{})
		rows = append(rows, text(
			fmt.Sprintf("%.0fm at 120m", c.millicores), hpa(3, c.millicores, 120), d.Replicas, rule(&d), exact.Replicas))
	}
	return table("3 replicas, average|HPA|AutoScaler, tolerances 0.1|rule|without tolerance", rows...)
}

func wayUpTable(t *testing.T) string {
	t.Helper()
	one := func(b scaling.Behavior) *loop {
		p := perReplica100(b)
		p.MinReplicas = 1
		return newLoop(p, 1)
	}
	perMinute := scaling.Rate{MaxReplicas: 8, Period: time.Minute}
	loops := []*loop{
		one(scaling.Behavior{UpMaxStep: 4}), one(scaling.Behavior{UpMaxStep: 4, UpRate: perMinute}),
		one(scaling.Behavior{UpStabilization: 30 * time.Second}), one(scaling.Behavior{}),
	}
	var rows [][]string
	builtIn, seen := int32(1), []int32{}
	for at := time.Duration(0); at <= 75*time.Second; at += poll {
		// The HPA adds the larger of 4 and 100 % every 15 s.
		builtIn = min(20, max(builtIn+4, 2*builtIn))
		row := []any{at.Seconds(), builtIn}
		for _, l := range loops {
			row = append(row, l.at(at, valid(2000)).Replicas)
		}
		seen = append(seen, builtIn)
		rows = append(rows, text(row...))
	}
	require.Equal(t, []int32{5, 10, 20, 20, 20, 20}, seen)
	return table("s|HPA|`scaleUpMaxStep: 4`|and `scaleUpRate: {maxReplicas: 8, periodSeconds: 60}`|"+
		"`scaleUpStabilizationSeconds: 30`|no behavior", rows...)
}

func wayDownTable(t *testing.T) string {
	t.Helper()
	loops := []*loop{
		newLoop(perReplica100(scaling.Behavior{DownStabilization: usualWindow}), 10),
		newLoop(perReplica100(scaling.Behavior{DownStabilization: usualWindow, DownMaxStep: 1, DownMinInterval: time.Minute}), 10),
		newLoop(perReplica100(scaling.Behavior{}), 10),
	}
	var rows [][]string
	for at := -10 * time.Minute; at <= 10*time.Minute; at += poll {
		load := valid(300)
		if at <= 0 {
			load = valid(1000)
		}
		var row []any
		for _, l := range loops {
			row = append(row, l.at(at, load).Replicas)
		}
		builtIn := 10
		if at >= usualWindow {
			builtIn = 3
		}
		switch at {
		case 0, poll, usualWindow - poll, usualWindow, usualWindow + poll, usualWindow + time.Minute, usualWindow + 2*time.Minute, 10 * time.Minute:
			rows = append(rows, text(append([]any{at.Seconds(), builtIn}, row...)...))
		}
	}
	return table("s after the last demand for 10|HPA|`scaleDownStabilizationSeconds: 300`|"+
		"and `scaleDownMaxStep: 1`, `scaleDownMinIntervalSeconds: 60`|no window", rows...)
}
