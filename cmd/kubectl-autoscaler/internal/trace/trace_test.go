package trace_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/trace"
)

const second = int64(time.Second / time.Microsecond)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// read gives all rows of a text as lines, and the error that ends them.
func read(t *testing.T, text string) (rows []string, err error) {
	t.Helper()
	f, err := trace.Open(write(t, "load", text), trace.Options{Warn: func(string) {}})
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, f.Close()) }()
	for row, err := range f.Rows() {
		if err != nil {
			return rows, err
		}
		line := fmt.Sprint(float64(row.At) / float64(second))
		for _, c := range row.Cells {
			if line += fmt.Sprint(" ", c.Value); c.Absent {
				line += "?"
			}
		}
		rows = append(rows, line)
	}
	return rows, nil
}

func TestRecordingsAreRead(t *testing.T) {
	points := `[[10,"1"],[25.5,"NaN"],[40,"+Inf"],[55,"1e3"]]`
	series := `{"metric":{"a":"b"},"values":` + points + `}`
	data := `{"resultType":"matrix","result":[` + series + `]}`
	want := []string{"10 1", "25.5 NaN", "40 +Inf", "55 1000"}
	for name, text := range map[string]string{
		"an answer":            `{"status":"success","data":` + data + `}`,
		"its data":             data,
		"its result":           `[` + series + `]`,
		"with what is unknown": `{"x":[{"y":[1,{"z":null}]}],"status":"success","isPartial":false,"data":` + data + `,"infos":["i"]}`,
		"spread over lines":    strings.ReplaceAll(`{"status":"success","data":`+data+`}`, ",", " ,\n\t"),
		"with a mark":          "\xef\xbb\xbf" + data,
		"CSV":                  "10,1\n25.5,NaN\n40,+Inf\n55,1e3\n",
		"CSV with names":       "time,load\n10,1\n25.5,NaN\n40,+Inf\n55,1e3\n",
		"CSV of Windows":       "\xef\xbb\xbftime,load\r\n10,1\r\n25.5,NaN\r\n40,+Inf\r\n55,1e3\r\n",
		"CSV with comments":    "# a day\n10, 1\n\n25.5, NaN\n40, +Inf\n55, 1e3",
		"CSV with other times": "1970-01-01T00:00:10Z,1\n1970-01-01T01:00:25.5+01:00,NaN\n40,+Inf\n55,1e3",
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := read(t, text)
			require.NoError(t, err)
			assert.Equal(t, want, rows)
		})
	}
}

func TestAnEmptyCellIsNoValue(t *testing.T) {
	rows, err := read(t, "10,1,2\n20,,3\n30,4,\n")
	require.NoError(t, err)
	assert.Equal(t, []string{"10 1 2", "20 0? 3", "30 4 0?"}, rows)
}

func TestWhatCannotBeReadIsSaidWithItsPlace(t *testing.T) {
	answer := func(result string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":` + result + `}}`
	}
	long := strings.Repeat("9", 3<<20)
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                 {"", ": is empty"},
		"binary":                  {"\x7fELF\x00\x01", "is no text"},
		"one column":              {"10\n20\n", ":1:1: has no comma"},
		"tabs":                    {"10\t1\n", ":1:1: has no comma"},
		"semicolons":              {"10;1\n", ":1:1: has no comma"},
		"a value that is none":    {"10,1\n20,many\n", `:2:4: has the value "many", which is no number`},
		"a time that is none":     {"10,1\n2026-13-01,1\n", `:2:1: has the time "2026-13-01"`},
		"milliseconds":            {"1790000000000,1\n", "has the time 1790000000000, which is not in seconds since 1970"},
		"another unit later":      {"10,1\n1790000000,1\n", ":2:1: the time 2026-"},
		"another unit much later": {"10,1\n60480010,1\n", "is 700 days after the one before"},
		"a time twice":            {"10,1\n10,2\n", ":2:1: the time 1970-01-01T00:00:10Z is not after the one before"},
		"going back":              {answer(`[{"metric":{},"values":[[20,"1"],[10,"1"]]}]`), ":1:101: the time"},
		"a field less":            {"10,1,2\n20,1\n", ":2:1: has 2 fields where the first line has 3"},
		"a quote":                 {"10,1\n20,\"1\n", ":2:7: extraneous or missing"},
		"a quote without end":     {"10,1\n20,\"" + strings.Repeat("x\n", 1<<20), "is longer than 1 MiB"},
		"a line without end":      {"10," + long, "is longer than 1 MiB"},
		"too many columns":        {"10" + strings.Repeat(",1", 100), "has 101 columns"},
		"a failed query":          {`{"status":"error","errorType":"bad_data","error":"parse error\u0007"}`, `:1:69: is the answer to a query that failed: parse error\a`},
		"an instant answer":       {`{"status":"success","data":{"resultType":"vector","result":[]}}`, `a result of type "vector"; ask /api/v1/query_range`},
		"no series":               {answer(`[]`), "has no series"},
		"two series":              {answer(`[{"metric":{},"values":[[1,"1"]]},{"metric":{},"values":[[1,"1"]]}]`), "aggregate them into one, for example with sum()"},
		"histograms":              {answer(`[{"metric":{},"histograms":[]}]`), "reduce them to a number"},
		"a number without quotes": {answer(`[{"metric":{},"values":[[1,1]]}]`), "not a time and a value"},
		"null":                    {answer(`[{"metric":{},"values":[[1,null]]}]`), "not a time and a value"},
		"a cut file":              {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"],`, ":1:92: ends in the middle"},
		"no JSON":                 {"{\n  \"data\": x\n}", ":2:"},
		"other JSON":              {`{"data":[1,2]}`, "is not the answer of a range query"},
		"more behind it":          {answer(`[{"metric":{},"values":[[1,"1"]]}]`) + "{}", "something after"},
		"deep nesting":            {`{"x":` + strings.Repeat("[", 1<<20), "is nested more than 32 deep"},
		"a long text":             {`{"status":"` + long + `"}`, "is longer than 1 MiB"},
		"a long value":            {answer(`[{"metric":{},"values":[[1,"` + long + `"]]}]`), "is longer than 1 MiB"},
		"endless labels":          {answer(`[{"metric":{"a":"` + long + `"}}]`), "is longer than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, tc.text)
			require.Error(t, err)
			assert.Contains(t, err.Error(), tc.want)
			assert.Less(t, len(err.Error()), 500, "the error does not repeat the file")
		})
	}
}

func TestOneOfSeveralSeriesIsPickedByItsLabels(t *testing.T) {
	text := `[{"metric":{"deployment":"a"},"values":[[1,"1"]]},{"metric":{"deployment":"b"},"values":[[1,"2"]]}]`
	for row, err := range trace.ReadJSON(strings.NewReader(text), trace.Labels{"deployment": "b"}, nil) {
		require.NoError(t, err)
		assert.InDelta(t, 2, row.Cells[0].Value, 0)
	}
	for _, err := range trace.ReadJSON(strings.NewReader(text), trace.Labels{"deployment": "c"}, nil) {
		require.ErrorContains(t, err, "has 2 series, and none with the labels map[deployment:c]")
	}
}

// endless is a recording without an end.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n++
	if e.n == 1 {
		return copy(p, `[{"metric":{},"values":[[0,"1"]`), nil
	}
	return copy(p, fmt.Sprintf(`,[%d,"1"]`, e.n)), nil
}

func TestOnlyWhatIsWantedIsRead(t *testing.T) {
	source := &endless{}
	read := 0
	for _, err := range trace.ReadJSON(source, nil, nil) {
		require.NoError(t, err)
		read++
		if read == 1000 {
			break
		}
	}
	assert.Less(t, source.n, 100_000)
}

func cursor(t *testing.T, text string, step time.Duration) *trace.Cursor {
	t.Helper()
	f, err := trace.Open(write(t, "load.csv", text), trace.Options{})
	require.NoError(t, err)
	c, err := trace.NewCursor(f.Rows(), step)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		assert.NoError(t, f.Close())
	})
	return c
}

func TestAValueStandsUntilTheNextOneIsDue(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		step time.Duration
		at   map[int64]float64 // NaN: nothing is known
		over int64
	}{
		"on a grid":                  {"0,1\n15,2\n30,3\n", 0, map[int64]float64{0: 1, 14: 1, 15: 2, 30: 3, 44: 3}, 45},
		"one is missing on the grid": {"0,1\n15,2\n30,3\n60,5\n", 0, map[int64]float64{30: 3, 44: 3, 45: math.NaN(), 59: math.NaN(), 60: 5}, 75},
		"times that vary":            {"0,1\n15,2\n31,3\n44,4\n60,5\n75,6\n90,7\n", 0, map[int64]float64{29: 2, 30: 2, 31: 3, 43: 3, 112: 7}, 113},
		"a step that is given":       {"0,1\n60,2\n", 10 * time.Second, map[int64]float64{9: 1, 10: math.NaN(), 60: 2, 69: 2}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			c := cursor(t, tc.text, tc.step)
			for s := range tc.over {
				cells, ok, over, err := c.At(s * second)
				require.NoError(t, err)
				require.False(t, over, "at %d", s)
				if want, asked := tc.at[s]; asked && !math.IsNaN(want) {
					require.True(t, ok, "at %d", s)
					assert.InDelta(t, want, cells[0].Value, 0, "at %d", s)
				} else if asked {
					assert.False(t, ok, "at %d", s)
				}
			}
			_, _, over, err := c.At(tc.over * second)
			require.NoError(t, err)
			assert.True(t, over)
		})
	}
}

func TestAStepThatIsFoundIsAtMostAnHour(t *testing.T) {
	assert.Equal(t, time.Hour, cursor(t, "0,1\n3600,1\n7200,1\n", 0).Step())
	f, err := trace.Open(write(t, "load.csv", "0,1\n31449600,9\n"), trace.Options{})
	require.NoError(t, err)
	defer f.Close()
	_, err = trace.NewCursor(f.Rows(), 0)
	require.ErrorContains(t, err, "its values are 8736h0m0s apart; say by --step")
	assert.Equal(t, 24*time.Hour, cursor(t, "0,1\n86400,9\n", 24*time.Hour).Step())
}

func TestACursorTellsWhenItsValueChanges(t *testing.T) {
	c := cursor(t, "0,1\n15,2\n30,3\n60,5\n", 0)
	changes := []int64{0}
	for {
		at := changes[len(changes)-1]
		_, _, over, err := c.At(at)
		require.NoError(t, err)
		next, ok := c.Next(at)
		if !ok {
			assert.True(t, over)
			break
		}
		changes = append(changes, next)
	}
	assert.Equal(t, []int64{0, 15 * second, 30 * second, 45 * second, 60 * second, 75 * second}, changes)
}

func TestAnErrorInTheMiddleEndsTheCursor(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "%d,1\n", i*15)
	}
	c := cursor(t, text.String()+"1500,x\n", 0)
	var err error
	for s := int64(0); err == nil && s < 2000; s += 15 {
		_, _, _, err = c.At(s * second)
	}
	require.ErrorContains(t, err, ":101:6: has the value")
}

// FuzzRead: whatever a file holds, reading it ends, with rows in order or an error.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"time,load\n10,1\n20,NaN\n", "10;1", "\xef\xbb\xbf10,\"1\n", `{"data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"],[2,"2"]]}]}}`,
		`[{"values":[[1e300,"0x1p-2"]]}]`, `{"status":"error","error":"x"}`, "{", "[[[[", "\x00", "9e18,1\n", "1,1\n-1,1\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := trace.Open(trace.Stdin, trace.Options{Stdin: io.NopCloser(bytes.NewReader(text)), Warn: func(string) {}})
		if err != nil {
			return
		}
		last, rows := int64(-1), 0
		for row, err := range file.Rows() {
			if err != nil {
				break
			}
			require.Greater(t, row.At, last)
			require.NotEmpty(t, row.Cells)
			last = row.At
			rows++
		}
		require.LessOrEqual(t, rows, len(text))
	})
}
