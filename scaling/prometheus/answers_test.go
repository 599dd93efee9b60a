package prometheus_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/fixture"
)

var update = flag.Bool("update", false, "write docs/metric-answers.md")

const answersDoc = "../../docs/metric-answers.md"

// response is one row of docs/metric-answers.md.
type response struct {
	name string
	set  func(*fixture.MetricServer)
	want string // the reason; "" is a valid sample
	// query is how the query is counted, where that is not by want.
	query   string
	measure func(*prometheus.Measure)
	client  func(*prometheus.Endpoint)
}

type section struct {
	title, text string
	responses   []response
}

// TestMetricAnswers runs every kind of response against the real client, over
// HTTP, and compares what comes of it with docs/metric-answers.md.
func TestMetricAnswers(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(answersHead)
	for _, s := range answerSections() {
		fmt.Fprintf(&doc, "\n## %s\n\n", s.title)
		if s.text != "" {
			doc.WriteString(s.text + "\n\n")
		}
		doc.WriteString("| response | scale-up | scale-down | sample's reason | query's reason |\n|---|---|---|---|---|\n")
		for _, r := range s.responses {
			t.Run(s.title+"/"+r.name, func(t *testing.T) { doc.WriteString(r.run(t)) })
		}
	}
	if t.Failed() {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(answersDoc, []byte(doc.String()), 0o644))
	}
	written, err := os.ReadFile(answersDoc)
	require.NoError(t, err)
	assert.Equal(t, string(written), doc.String(), "run this test with -update")
}

func TestEachReasonIsInTheTable(t *testing.T) {
	source, err := os.ReadFile("reasons.go")
	require.NoError(t, err)
	doc, err := os.ReadFile(answersDoc)
	require.NoError(t, err)
	reasons := regexp.MustCompile(`(?m)^\tReason\w+ = "(\w+)"$`).FindAllSubmatch(source, -1)
	assert.Greater(t, len(reasons), 25)
	for _, reason := range reasons {
		assert.Contains(t, string(doc), "`"+string(reason[1])+"`")
	}
}

// run asks once for the sample, and once through a sampler for how the query is
// counted, and returns the row.
func (r *response) run(t *testing.T) string {
	t.Helper()
	server := newServer(t)
	r.set(server)
	var changes []func(*prometheus.Endpoint)
	if r.client != nil {
		changes = append(changes, r.client)
	}
	client := newClient(t, server.URL(), changes...)
	m := prometheus.Measure{Load: question("load"), Namespace: "shop", Target: "web", MaxAge: 45 * time.Second}
	if r.measure != nil {
		r.measure(&m)
	}
	got := client.Measure(t.Context(), m)
	assert.Equal(t, r.want, got.Reason, "%s", got.Message)
	counted := countedAs(t, client, m.Load)
	if r.query == "" {
		r.query = "Answered"
	}
	assert.Equal(t, r.query, counted)

	verdict := map[scaling.Validity]string{
		scaling.Valid: "yes | yes", scaling.ScaleUpOnly: "yes | no", scaling.Invalid: "no | no",
	}[got.Validity]
	reason := "`Valid`"
	if got.Reason != "" {
		reason = "`" + got.Reason + "`"
	}
	return fmt.Sprintf("| %s | %s | %s | %#q |\n", r.name, verdict, reason, counted)
}

// countedAs is the reason that the sampler's observer is told.
func countedAs(t *testing.T, client *prometheus.Client, q prometheus.Question) string {
	t.Helper()
	told := &lastReason{told: make(chan string, 1)}
	sampler := prometheus.NewSampler(client, prometheus.SamplerOptions{
		Clock: realClock{}, Jitter: func() float64 { return 0 }, Observer: told,
	})
	running := make(chan error)
	ctx, stop := context.WithCancel(t.Context())
	go func() { running <- sampler.Run(ctx) }()
	sampler.Subscribe("a", time.Hour, []prometheus.Measure{{Load: q}})
	defer func() {
		stop()
		assert.NoError(t, <-running)
	}()
	select {
	case reason := <-told.told:
		if reason == "" {
			return "Answered"
		}
		return reason
	case <-time.After(patience):
		require.FailNow(t, "the query was not counted")
		return ""
	}
}

type lastReason struct {
	once sync.Once
	told chan string
}

func (l *lastReason) Asked(_, _, reason string, _ time.Duration) {
	l.once.Do(func() { l.told <- reason })
}
func (*lastReason) Delayed(_, _ string) {}
func (*lastReason) Forgotten(string)    {}

type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() }
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
