package alerts

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/monitoring.md")

const monitoringPage = "docs/monitoring.md"

// The tables of docs/monitoring.md are what the alerts and the dashboard say. After a
// change:
//
//	go test ./test/alerts -run TestTheMonitoringPage -update
func TestTheMonitoringPageListsTheAlertsAndTheRows(t *testing.T) {
	text := read(t, monitoringPage)
	for name, table := range map[string]string{"alerts": alertsTable(t), "rows": rowsTable(t)} {
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
		require.NoError(t, os.WriteFile(root+monitoringPage, []byte(text), 0o600))
	}
}

var template = regexp.MustCompile(`\{\{[^}]*\}\}`)

func alertsTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| alert | severity | after | what follows |\n|---|---|---|---|\n")
	for _, a := range alerts(t) {
		description := strings.TrimSpace(template.ReplaceAllString(a.Annotations["description"], "…"))
		fmt.Fprintf(&b, "| [%s](runbooks/%s.md) | %s | %s | %s |\n", a.Name, a.Name, a.Labels["severity"], a.For, description)
	}
	return b.String()
}

func rowsTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| row | panels |\n|---|---|\n")
	var row string
	var panels []string
	end := func() {
		if row != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", row, strings.Join(panels, "; "))
		}
	}
	for _, p := range dashboard(t).Panels {
		if p.Type == "row" {
			end()
			row, panels = p.Title, nil
			continue
		}
		panels = append(panels, strings.TrimPrefix(p.Title, "$autoscaler: "))
	}
	end()
	return b.String()
}
