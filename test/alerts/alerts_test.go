// Package alerts holds the alerts and the dashboard, and what is written about them, to
// the metrics that there are.
package alerts

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../../"
	rulesFile = "charts/autoscale-operator/files/alerts.yaml"
	// runbookURL is what the chart replaces.
	runbookURL = "RUNBOOK_URL/"
)

// ruleFile is a Prometheus rules file.
type ruleFile struct {
	Groups []struct {
		Name  string  `json:"name"`
		Rules []alert `json:"rules"`
	} `json:"groups"`
}

type alert struct {
	Name        string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file ruleFile
	require.NoError(t, yaml.UnmarshalStrict([]byte(read(t, rulesFile)), &file))
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

func TestEveryAlertSaysWhatIsWrongHowBadlyAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		t.Run(a.Name, func(t *testing.T) {
			assert.False(t, seen[a.Name], "another alert has this name")
			seen[a.Name] = true
			assert.True(t, strings.HasPrefix(a.Name, "Autoscale"), "whose alert it is")
			pending, err := model.ParseDuration(a.For)
			require.NoError(t, err)
			assert.Positive(t, pending, "a single bad scrape is no alert")
			require.Len(t, a.Labels, 1)
			assert.Contains(t, []string{"critical", "warning", "info"}, a.Labels["severity"])
			require.Len(t, a.Annotations, 3)
			assert.Regexp(t, `\{\{ .*\$labels\..*\}\}.*\.$`, a.Annotations["summary"], "a sentence that says which")
			assert.Regexp(t, `(?s)^[A-Z].{60,}\.$`, a.Annotations["description"], "what follows from it")
			assert.Equal(t, runbookURL+a.Name+".md", a.Annotations["runbook_url"])
		})
	}
}

func TestEveryAlertAsksForMetricsThatExist(t *testing.T) {
	c := newCatalog(t)
	for _, a := range alerts(t) {
		c.check(t, a.Expr, a.Name)
	}
}

// sections of a runbook, in order.
var sections = []string{"## What it means", "## What it does", "## Look", "## Mend"}

func TestEachAlertHasARunbookAndEachRunbookAnAlert(t *testing.T) {
	files, err := filepath.Glob(root + "docs/runbooks/*.md")
	require.NoError(t, err)
	books := map[string]bool{}
	for _, f := range files {
		books[strings.TrimSuffix(filepath.Base(f), ".md")] = true
	}
	for _, a := range alerts(t) {
		if !assert.True(t, books[a.Name], "%s has no runbook", a.Name) {
			continue
		}
		delete(books, a.Name)
		text := read(t, "docs/runbooks/"+a.Name+".md")
		assert.True(t, strings.HasPrefix(text, "# "+a.Name+"\n"), a.Name)
		for _, s := range sections {
			_, after, found := strings.Cut(text, "\n"+s+"\n")
			require.True(t, found, "%s lacks the section %q, or its order", a.Name, s)
			body, _, _ := strings.Cut(after, "\n## ")
			assert.NotEmpty(t, strings.TrimSpace(body), "%s, %s", a.Name, s)
			text = after
		}
	}
	assert.Empty(t, books, "runbooks without an alert")
}

// ruleTest is a file of promtool's, as far as it is looked at here.
type ruleTest struct {
	Tests []struct {
		Name   string `json:"name"`
		Alerts []struct {
			At       string `json:"eval_time"`
			Name     string `json:"alertname"`
			Expected []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// Promtool runs the tests (with the integration tag); none may be missing.
func TestEveryAlertIsTestedToFireAndToKeepSilent(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	fires, silent, known := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, a := range alerts(t) {
		known[a.Name] = true
	}
	for _, f := range files {
		var file ruleTest
		require.NoError(t, yaml.Unmarshal([]byte(read(t, "test/alerts/"+f)), &file), f)
		for _, test := range file.Tests {
			assert.NotEmpty(t, test.Alerts, "%s: %s", f, test.Name)
			for _, at := range test.Alerts {
				assert.True(t, known[at.Name], "%s: %s: there is no alert %s", f, test.Name, at.Name)
				if len(at.Expected) > 0 {
					fires[at.Name] = true
				} else {
					silent[at.Name] = true
				}
			}
		}
	}
	for name := range known {
		assert.True(t, fires[name], "no test fires %s", name)
		assert.True(t, silent[name], "no test keeps %s silent", name)
	}
}

var asked = regexp.MustCompile("(?m)^```promql\n([^`]+)```$")

func TestTheExpressionsOfTheRunbooksAskForMetricsThatExist(t *testing.T) {
	c, n := newCatalog(t), 0
	for _, a := range alerts(t) {
		for _, m := range asked.FindAllStringSubmatch(read(t, "docs/runbooks/"+a.Name+".md"), -1) {
			n++
			c.check(t, m[1], a.Name+".md")
		}
	}
	assert.Greater(t, n, 5)
}
