package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files")

var begin = time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)

// run gives what a command line prints, its warnings, and its exit status.
func run(t *testing.T, stdin string, args ...string) (out, err string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(stdin), Out: &stdout, Err: &stderr}
	c := Command(streams)
	c.SilenceUsage, c.SilenceErrors = true, true
	code = cli.Execute(t.Context(), c, streams, args)
	return stdout.String(), stderr.String(), code
}

func succeed(t *testing.T, args ...string) string {
	t.Helper()
	out, err, code := run(t, "", args...)
	require.Equal(t, cli.ExitOK, code, "%v: %s", args, err)
	return out
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestAShippedTraceGivesWhatItGave(t *testing.T) {
	for trace, more := range map[string][]string{
		"peaks.csv": {"--compare", "hpa"}, "spike.json": {"--compare", "hpa", "--compare", "testdata/hpa.yaml"}, "lying.csv": nil,
	} {
		t.Run(trace, func(t *testing.T) {
			got := succeed(t, append([]string{"-f", "testdata/order-service.yaml", "--load", "testdata/" + trace}, more...)...)
			golden := filepath.Join("testdata", strings.TrimSuffix(trace, filepath.Ext(trace))+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// document is what -o json prints.
type document struct {
	Polls []struct {
		Autoscaler, Rule        string
		Time                    time.Time
		Before, Replicas, Ready int32
		Desired, Min, Max       int32
		Recommended, Needed     *int32
		Seconds                 float64
		UnderProvisionedSeconds float64
		LoadUnknownSeconds      float64
		Load                    map[string]*float64
		Invalid                 map[string]string
		Schedules               []string
	}
	Summaries []struct {
		ReplicaHours, UnderProvisionedSeconds, LoadUnknownSeconds, PlayedSeconds float64
		Ups, Downs, Flaps                                                        int
		WorstShortfall                                                           *struct {
			Time          time.Time
			Needed, Ready int32
		}
		LimitedBySeconds map[string]float64
	}
}

func decisions(t *testing.T, args ...string) document {
	t.Helper()
	var d document
	require.NoError(t, json.Unmarshal([]byte(succeed(t, append(args, "-o", "json")...)), &d))
	return d
}

func TestInvalidSamplesAreNamedAndNothingIsRemovedMeanwhile(t *testing.T) {
	d := decisions(t, "-f", "testdata/order-service.yaml", "--load", "testdata/lying.csv")
	reasons := map[string]int{}
	for _, p := range d.Polls {
		if reason := p.Invalid["request-rate"]; reason != "" {
			reasons[reason]++
			assert.GreaterOrEqual(t, p.Replicas, p.Before, "at %s", p.Time)
			assert.Nil(t, p.Needed, "nobody can say what was needed")
		}
	}
	// 12 NaN, 4 negative and 3 infinite values; a silence of 31 polls less the one that
	// the last value stands for, and 6 empty cells.
	assert.Equal(t, map[string]int{"InvalidValue": 19, "NoData": 36}, reasons)
	assert.InDelta(t, 55*15, d.Summaries[0].LoadUnknownSeconds, 0)
}

func TestPodsThatBecomeReadyLaterAreMissingUntilThen(t *testing.T) {
	load := file(t, "load.csv", "0,200\n15,800\n30,800\n45,800\n60,800\n75,800\n90,800\n")
	atOnce := decisions(t, "-f", "testdata/order-service.yaml", "--load", load, "--ready-after", "0s")
	assert.InDelta(t, 15, atOnce.Summaries[0].UnderProvisionedSeconds, 0, "the step of 4 is in the way once")
	later := decisions(t, "-f", "testdata/order-service.yaml", "--load", load, "--ready-after", "30s")
	// At 15 s 4 are asked for, at 30 s 2 more, which are ready at 60 s.
	assert.InDelta(t, 45, later.Summaries[0].UnderProvisionedSeconds, 0)
	var ready []int32
	for _, p := range later.Polls {
		ready = append(ready, p.Ready)
	}
	assert.Equal(t, []int32{2, 2, 2, 6, 8, 8, 8}, ready)
}

// slow is the AutoScaler with a poll interval of a minute.
func slow(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/order-service.yaml")
	require.NoError(t, err)
	return file(t, "slow.yaml", strings.Replace(string(text), "pollIntervalSeconds: 15", "pollIntervalSeconds: 60", 1))
}

func TestAShortageBetweenTwoPollsIsCounted(t *testing.T) {
	var load strings.Builder
	for s := 0; s < 3600; s += 15 {
		fmt.Fprintf(&load, "%d,%d\n", s, []int{280, 280, 1000, 1000}[s/15%4])
	}
	path := file(t, "load.csv", load.String())
	for name, compare := range map[string][]string{"alone": nil, "beside one that looks more often": {"--compare", "hpa"}} {
		t.Run(name, func(t *testing.T) {
			d := decisions(t, append([]string{"-f", slow(t), "--load", path}, compare...)...)
			s := d.Summaries[0]
			// 3 replicas bear each first half minute, in the first of which they have yet to
			// become ready.
			assert.InDelta(t, 30+1800, s.UnderProvisionedSeconds, 0)
			assert.Equal(t, int32(10), s.WorstShortfall.Needed)
			assert.Equal(t, time.Unix(30, 0).UTC(), s.WorstShortfall.Time)
			var under, played float64
			for _, p := range d.Polls {
				if p.Autoscaler == "order-service" {
					under, played = under+p.UnderProvisionedSeconds, played+p.Seconds
				}
			}
			assert.InDelta(t, s.UnderProvisionedSeconds, under, 0, "the polls sum up to it")
			assert.InDelta(t, 3600, played, 0)
		})
	}
}

func TestPodsThatBecomeReadyBetweenTwoPollsCountFromThen(t *testing.T) {
	d := decisions(t, "-f", slow(t), "--load", file(t, "load.csv", "0,300\n60,300\n"), "--ready-after", "7s")
	assert.InDelta(t, 7, d.Summaries[0].UnderProvisionedSeconds, 0)
}

func TestALoadThatIsUnknownBetweenTwoPollsIsCounted(t *testing.T) {
	d := decisions(t, "-f", slow(t), "--load", file(t, "load.csv", "0,100\n15,NaN\n30,100\n45,100\n60,100\n"))
	assert.InDelta(t, 15, d.Summaries[0].LoadUnknownSeconds, 0)
	assert.InDelta(t, 75, d.Summaries[0].PlayedSeconds, 0, "and nothing is played after the recording's end")
}

func TestWhereNothingIsKnownNothingIsRecommended(t *testing.T) {
	args := []string{"-f", "testdata/order-service.yaml", "--load", file(t, "load.csv", "0,0\n15,NaN\n"), "--compare", "hpa"}
	for _, p := range decisions(t, args...).Polls {
		if p.Time.Unix() == 0 {
			assert.Equal(t, new(int32(0)), p.Recommended, "of a load of 0")
		} else {
			assert.Nil(t, p.Recommended)
		}
	}
	lines := strings.Split(succeed(t, append(args, "-o", "csv")...), "\n")
	assert.Contains(t, lines[3], "1970-01-01T00:00:15Z,order-service,15,2,2,2,,2,,0,15,2,20,AllMetricsInvalid")
	for _, form := range []string{"svg", "png", "html"} {
		succeed(t, "-f", "testdata/order-service.yaml", "--load", file(t, "load.csv", "0,NaN\n15,NaN\n"), "-o", form)
	}
}

func TestAReplayOfAQueueSaysOnceWhatItCannotKnow(t *testing.T) {
	load := file(t, "all.csv", "time,requests,queue,queue:arrivals\n0,900,3000,10\n15,900,3000,10\n")
	_, warnings, code := run(t, "", "-f", "testdata/two-metrics.yaml", "--load", load)
	require.Equal(t, cli.ExitOK, code, warnings)
	assert.Equal(t, 1, strings.Count(warnings, "warning: queue: the queue is played as long as it was that day"), warnings)
	_, warnings, _ = run(t, "", "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json")
	assert.NotContains(t, warnings, "queue")
}

func TestASchedulesFloorIsPlayed(t *testing.T) {
	d := decisions(t, "-f", "testdata/order-service.yaml", "--load", "testdata/peaks.csv")
	for _, p := range d.Polls {
		inForce := !p.Time.Before(begin.Add(17*time.Hour+30*time.Minute)) && p.Time.Before(begin.Add(20*time.Hour+30*time.Minute))
		require.Equal(t, inForce, len(p.Schedules) == 1, "at %s", p.Time)
		if inForce {
			require.Equal(t, int32(8), p.Min, "at %s", p.Time)
		}
	}
}

func TestAnAverageIsPlayedFromTheTotal(t *testing.T) {
	text, err := os.ReadFile("testdata/order-service.yaml")
	require.NoError(t, err)
	average := file(t, "average.yaml", strings.Replace(string(text), "semantics: Total", "semantics: PerReplicaAverage", 1))
	total := succeed(t, "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json")
	assert.Equal(t, total, succeed(t, "-f", average, "--load", "testdata/spike.json"), "ready * (total / ready) is the total")
}

func TestSeveralMetricsComeFromSeveralFilesOrFromOne(t *testing.T) {
	manifest := "testdata/two-metrics.yaml"
	requests, queue := file(t, "r.csv", "0,900\n15,900\n"), file(t, "q.csv", "0,3000\n15,NaN\n")
	arrivals := file(t, "a.csv", "0,10\n15,10\n")
	one := file(t, "all.csv", "time,queue:arrivals,queue,other,requests\n0,10,3000,7,900\n15,10,NaN,7,900\n")
	plain := file(t, "plain.csv", "0,900,3000,10\n15,900,NaN,10\n")
	want := succeed(t, "-f", manifest, "--load", "requests="+requests, "--load", "queue="+queue, "--load", "queue:arrivals="+arrivals)
	assert.Contains(t, want, "900, 3000+10/s")
	assert.Equal(t, want, succeed(t, "-f", manifest, "--load", one))
	assert.Equal(t, want, succeed(t, "-f", manifest, "--load", plain))
	assert.Equal(t, want, succeed(t, "-f", manifest, "--load", "requests="+requests, "--load", one))
}

func TestAnotherPolicyIsPlayedBesideIt(t *testing.T) {
	d := decisions(t, "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json", "--compare", "testdata/patient.yaml", "--compare", "hpa")
	require.Len(t, d.Summaries, 3)
	seen := map[string]int{}
	for _, p := range d.Polls {
		seen[p.Autoscaler]++
	}
	assert.Equal(t, map[string]int{"order-service": 240, "patient": 60, "hpa": 240}, seen, "each decides in its own interval")
	for i, s := range d.Summaries {
		assert.InDelta(t, 3600, s.PlayedSeconds, 0, "%d", i)
	}
	assert.Greater(t, d.Summaries[1].UnderProvisionedSeconds, d.Summaries[0].UnderProvisionedSeconds, "who looks once a minute is late")
}

func TestEveryFormIsWhatItSays(t *testing.T) {
	args := []string{"-f", "testdata/order-service.yaml", "--load", "testdata/lying.csv", "--compare", "hpa", "-o"}
	picture, err := png.Decode(strings.NewReader(succeed(t, append(args, "png")...)))
	require.NoError(t, err)
	colors := map[string]bool{}
	for x := 0; x < picture.Bounds().Dx(); x += 3 {
		for y := 0; y < picture.Bounds().Dy(); y += 3 {
			colors[fmt.Sprint(picture.At(x, y))] = true
		}
	}
	assert.Greater(t, len(colors), 20, "lines, bands and text are there")
	svg := succeed(t, append(args, "svg")...)
	assert.Contains(t, svg, "<svg")
	assert.Contains(t, svg, "sample not valid")
	page := succeed(t, append(args, "html")...)
	assert.Contains(t, page, "default-src 'none'", "the page may load nothing")
	assert.NotContains(t, page, "src=\"http")
	assert.Contains(t, page, "ScaleDownStabilization")
	csv := strings.Split(strings.TrimSpace(succeed(t, append(args, "csv")...)), "\n")
	assert.Len(t, csv, 1+2*360)
}

func TestWhatIsWrongIsSaidWithItsPlaceAndTheWayOut(t *testing.T) {
	good, day := "testdata/order-service.yaml", "testdata/peaks.csv"
	text, err := os.ReadFile(good)
	require.NoError(t, err)
	edited := func(old, with string) string {
		return file(t, "edited.yaml", strings.Replace(string(text), old, with, 1))
	}
	hpa, err := os.ReadFile("testdata/hpa.yaml")
	require.NoError(t, err)
	rival := func(old, with string) string {
		require.Contains(t, string(hpa), old)
		return file(t, "rival.yaml", strings.Replace(string(hpa), old, with, 1))
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no load":                     {[]string{"-f", good}, "give the load: by --load FILE, or by --prometheus URL"},
		"both loads":                  {[]string{"-f", good, "--load", day, "--prometheus", "http://x"}, "and not by both"},
		"an output that is none":      {[]string{"-f", good, "--load", day, "-o", "pdf"}, "it must be one of csv, html"},
		"no file":                     {[]string{"-f", good, "--load", "testdata/none.csv"}, "no such file"},
		"no manifest":                 {[]string{"-f", "testdata/none.yaml", "--load", day}, "testdata/none.yaml: no such file"},
		"an unknown field":            {[]string{"-f", edited("minReplicas: 2", "minReplica: 2"), "--load", day}, `edited.yaml:9:3: unknown field spec.minReplica`},
		"a wrong bound":               {[]string{"-f", edited("maxReplicas: 20", "maxReplicas: 1"), "--load", day}, "edited.yaml:10:3: spec.maxReplicas"},
		"a wrong query":               {[]string{"-f", edited("sum(rate", "sum(rat"), "--load", day}, ": spec.query"},
		"a key twice":                 {[]string{"-f", edited("  maxReplicas: 20", "  maxReplicas: 20\n  maxReplicas: 30"), "--load", day}, "spec.maxReplicas stands there twice"},
		"a number for a text":         {[]string{"-f", edited(`targetPerReplica: "100"`, "targetPerReplica: 100"), "--load", day}, "spec.metrics[0].targetPerReplica: text in quotes is expected, and not a number"},
		"a fraction of a replica":     {[]string{"-f", edited("minReplicas: 2", "minReplicas: 2.5"), "--load", day}, "edited.yaml:9:3: spec.minReplicas: a whole number is expected, and not 2.5"},
		"a text for a map":            {[]string{"-f", edited("  targetRef:\n", "  targetRef: web\n  x:\n"), "--load", day}, "spec.targetRef: a map of fields is expected, and not text"},
		"a name that is none":         {[]string{"-f", edited("name: order-service", "name: Not A Name"), "--load", day}, `edited.yaml:4:3: metadata.name: "Not A Name": a lowercase RFC 1123`},
		"a name for a spreadsheet":    {[]string{"-f", edited("name: order-service", `name: "=cmd|x"`), "--load", day}, `metadata.name: "=cmd|x": a lowercase`},
		"a name that is a truth":      {[]string{"-f", edited("namespace: production", "namespace: n"), "--load", day}, "edited.yaml:5:3: metadata.namespace: text in quotes is expected, and not true or false"},
		"no name":                     {[]string{"-f", edited("name: order-service", `name: ""`), "--load", day}, `metadata.name: "": a lowercase`},
		"a namespace that is none":    {[]string{"-f", edited("namespace: production", `namespace: "a\e[2J"`), "--load", day}, `metadata.namespace: "a\x1b[2J": a lowercase`},
		"FC-13 an endless quantity":   {[]string{"-f", good, "--load", day, "--compare", rival(`averageValue: "100"`, `averageValue: "1e-2147483648"`)}, "spec.metrics[0].external.target.averageValue: is no quantity that means anything"},
		"FC-13 a huge one":            {[]string{"-f", good, "--load", day, "--compare", rival(`averageValue: "100"`, `averageValue: 2E6024865272343`)}, "rival.yaml:"},
		"an HPA of nothing":           {[]string{"-f", good, "--load", day, "--compare", rival("    kind: Deployment\n", "")}, "rival.yaml:7:3: spec.scaleTargetRef.kind: Required value"},
		"no quantity":                 {[]string{"-f", good, "--load", day, "--compare", rival(`averageValue: "100"`, `averageValue: "many"`)}, "rival.yaml:20:9: spec.metrics[0].external.target.averageValue: is no quantity, as 100 or 500m"},
		"an HPA's name that is none":  {[]string{"-f", good, "--load", day, "--compare", rival("  name:", "  name: A\n  labels:\n    a:")}, `metadata.name: "A": a lowercase`},
		"an HPA that nobody takes":    {[]string{"-f", good, "--load", day, "--compare", rival("type: AverageValue", "type: Value")}, "spec.metrics[0].external.target.type: Invalid value: \"Value\""},
		"another name":                {[]string{"web", "-f", good, "--load", day}, `has no AutoScaler "web"; it has order-service`},
		"no AutoScaler":               {[]string{"-f", "testdata/hpa.yaml", "--load", day}, "has no AutoScaler"},
		"nothing in the range":        {[]string{"-f", good, "--load", day, "--from", "2027-01-01T00:00:00Z"}, "no value lies in the range"},
		"all before the range":        {[]string{"-f", good, "--load", day, "--from", "2027-01-01T00:00:00Z"}, "from 2027-01-01T00:00:00Z; the recording is from 2026-11-26T00:00:00Z to 2026-11-26T23:59:00Z"},
		"all after the range":         {[]string{"-f", good, "--load", day, "--from", "2025-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z"}, "from 2025-01-01T00:00:00Z to 2026-01-01T00:00:00Z; the recording is from 2026-11-26T00:00:00Z on"},
		"no metric of that name":      {[]string{"-f", good, "--load", "request-rat=" + day}, "there is no metric request-rat; there are request-rate"},
		"an end before the begin":     {[]string{"-f", good, "--load", day, "--from", "2027-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z"}, "is not before --to"},
		"a time that is none":         {[]string{"-f", good, "--load", day, "--from", "yesterday"}, `--from "yesterday": write a time as`},
		"pods that are never ready":   {[]string{"-f", good, "--load", day, "--ready-after", "48h"}, "from 0s to 24h"},
		"a comparison with nothing":   {[]string{"-f", good, "--load", day, "--compare", file(t, "profile.yaml", strings.Split(string(text), "---\n")[1])}, "it has 0 AutoScalers and 0 Horizontal"},
		"a query without its profile": {[]string{"-f", file(t, "alone.yaml", strings.Split(string(text), "---")[0]), "--prometheus", "http://x", "--from", "1h"}, "is not in the files; give it by -f"},
		"an average of another time":  {[]string{"-f", edited("semantics: Total", "semantics: PerReplicaAverage"), "--prometheus", "http://x", "--from", "1h"}, "record the total"},
		"an address that is none":     {[]string{"-f", good, "--prometheus", "localhost:9090", "--from", "1h"}, "http://localhost:9090 is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			_, message, code := run(t, "", tc.args...)
			assert.Equal(t, cli.ExitTrouble, code)
			assert.Contains(t, message, tc.want)
			assert.NotContains(t, message, "goroutine")
		})
	}
}

func TestAPrometheusIsAskedInPieces(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		assert.Equal(t, `sum(rate(http_requests_total{namespace="production", deployment="order-service"}[1m]))`, r.FormValue("query"))
		from, _ := strconv.ParseFloat(r.FormValue("start"), 64)
		to, _ := strconv.ParseFloat(r.FormValue("end"), 64)
		step, _ := strconv.ParseFloat(r.FormValue("step"), 64)
		assert.LessOrEqual(t, (to-from)/step, 11000.0, "Prometheus gives no more points")
		var points []string
		for i := range int(math.Floor((to-from)/step)) + 1 {
			points = append(points, fmt.Sprintf(`[%.3f,"500"]`, from+float64(i)*step))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[%s]}]},"warnings":["one store is gone"]}`, strings.Join(points, ","))
	}))
	defer server.Close()
	out, warnings, code := run(t, "", "-f", "testdata/order-service.yaml", "--prometheus", server.URL, "--from", "2026-11-20T00:00:00Z", "--to", "2026-11-23T00:00:00Z")
	require.Equal(t, cli.ExitOK, code, warnings)
	assert.Equal(t, 2, asked, "17,280 points are more than one answer holds")
	assert.Contains(t, out, "72h0m0s")
	assert.Equal(t, 1, strings.Count(warnings, "one store is gone"), "once, however often the server says it")
}

func TestAPrometheusWithoutAValueInTheRangeIsSaidWithTheRange(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	}))
	defer server.Close()
	_, message, code := run(t, "", "-f", "testdata/order-service.yaml", "--prometheus", server.URL, "--from", "2026-11-20T00:00:00Z", "--to", "2026-11-21T00:00:00Z")
	assert.Equal(t, cli.ExitTrouble, code)
	assert.Contains(t, message, "no value lies in the range that is to be played, from 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z")
}

func TestASingleValueIsPlayed(t *testing.T) {
	d := decisions(t, "-f", "testdata/order-service.yaml", "--load", file(t, "load.csv", "0,100\n"))
	assert.InDelta(t, 15, d.Summaries[0].PlayedSeconds, 0)
}

func TestStandardInputIsRead(t *testing.T) {
	load, err := os.ReadFile("testdata/spike.json")
	require.NoError(t, err)
	out, _, code := run(t, string(load), "-f", "testdata/order-service.yaml", "--load", "-")
	require.Equal(t, cli.ExitOK, code)
	assert.Equal(t, succeed(t, "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json"), out)
}

func TestWhatIsNotPlayedIsNotRead(t *testing.T) {
	text, err := os.ReadFile("testdata/hpa.yaml")
	require.NoError(t, err)
	endless := file(t, "hpa.yaml", strings.Replace(string(text), `averageValue: "100"`, `averageValue: "1e-2147483648"`, 1))
	other := file(t, "other.yaml", "apiVersion: autoscale.example.com/v1alpha1\nkind: AutoScaler\nmetadata: {name: other}\nspec: {minReplicas: many}\n")
	want := succeed(t, "-f", "testdata/order-service.yaml", "--load", "testdata/spike.json")
	assert.Equal(t, want, succeed(t, "order-service", "-f", "testdata/order-service.yaml,"+endless+","+other, "--load", "testdata/spike.json"))
}

func TestAnInterruptEndsARecordingOfCenturies(t *testing.T) {
	var load strings.Builder
	for year := range int64(250) {
		fmt.Fprintf(&load, "%d,100\n", year*365*24*3600)
	}
	path := file(t, "load.csv", load.String())
	_, message, code := run(t, "", "-f", "testdata/order-service.yaml", "--load", path)
	assert.Equal(t, cli.ExitTrouble, code)
	assert.Contains(t, message, path+": its values are 8760h0m0s apart; say by --step")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var stderr bytes.Buffer
	streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &stderr}
	c := Command(streams)
	c.SilenceUsage, c.SilenceErrors = true, true
	assert.Equal(t, cli.ExitTrouble, cli.Execute(ctx, c, streams, []string{"-f", "testdata/order-service.yaml", "--load", path, "--step", "15s"}))
	assert.Contains(t, stderr.String(), "interrupted")
}
