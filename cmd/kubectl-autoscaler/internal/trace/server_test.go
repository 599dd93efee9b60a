package trace_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/trace"
)

// asked are the rows that a server answers for the 100 s from 1,000 s on, each 10 s.
func asked(t *testing.T, address string) (rows int, err error) {
	t.Helper()
	server, err := trace.NewServer(address)
	require.NoError(t, err)
	q := trace.Query{Expr: "up", From: time.Unix(1000, 0), To: time.Unix(1100, 0), Step: 10 * time.Second}
	for _, err := range server.Range(t.Context(), q, func(string) {}) {
		if err != nil {
			return rows, err
		}
		rows++
	}
	return rows, nil
}

// values answers with so many values from a time on.
func values(from, step float64, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		points := make([]string, n)
		for i := range points {
			points[i] = fmt.Sprintf(`[%.3f,"1"]`, from+float64(i)*step)
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[%s]}]}}`, strings.Join(points, ","))
	}
}

func TestAServerGivesWhatItWasAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"all":        {values(1000, 10, 10), ""},
		"too early":  {values(999.999, 10, 5), "has a value at 1970-01-01T00:16:39.999Z, where it was asked for those from 1970-01-01T00:16:40Z to"},
		"too late":   {values(1050, 10, 6), "has a value at 1970-01-01T00:18:20Z, where it was asked for"},
		"too many":   {values(1000, 1, 20), "than one each 10s, which it was asked for"},
		"an endless": {values(1000, 0.001, 50_000), "than one each 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			rows, err := asked(t, strings.Replace(server.URL, "://", "://me:secret@", 1))
			if tc.want == "" {
				require.NoError(t, err)
				assert.Equal(t, 10, rows)
				return
			}
			require.ErrorContains(t, err, tc.want)
			assert.Contains(t, err.Error(), "the answer of "+server.URL+":")
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

func TestARedirectIsFollowedOnlyToTheSameServer(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	answer := values(1000, 10, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch to {
		case "prometheus":
			answer(w, r)
		case "moved":
			http.Redirect(w, r, "/prometheus/api", http.StatusPermanentRedirect)
		case "dropped":
			http.Redirect(w, r, "/prometheus/api", http.StatusFound)
		case "round":
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		case "tls":
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusPermanentRedirect)
		default:
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		}
	}))
	defer server.Close()
	rows, err := asked(t, server.URL+"/moved")
	require.NoError(t, err)
	assert.Equal(t, 10, rows)
	for path, want := range map[string]string{
		"elsewhere": "it sends us on to " + other.URL, "tls": "it sends us on to https://", "dropped": "drops the query", "round": "more than 5 times",
	} {
		_, err := asked(t, server.URL+"/"+path)
		require.ErrorContains(t, err, want, path)
	}
	assert.False(t, reached, "the query and its password go nowhere else")
}
