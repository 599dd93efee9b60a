package audit

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
)

func someEntries() []Entry {
	return []Entry{
		judge(&facts{
			deployment: aDeployment(wrote("=cmd|' /C calc'!A0", time.Hour)), binding: aBinding(v1alpha1.PhaseHeld),
			managers: []*binding.ManagerError{aManager("HorizontalPodAutoscaler", "web", "")},
		}),
		judge(&facts{deployment: aDeployment()}),
	}
}

func printed(t *testing.T, format string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, formats[format](&out, someEntries(), noon, true))
	return out.String()
}

func TestTheTable(t *testing.T) {
	text := printed(t, "")

	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, []string{"NAMESPACE", "DEPLOYMENT", "REPLICAS", "STATE", "OWNER", "EPOCH", "GUARD", "LAST FOREIGN WRITE", "WHY"}, cells(lines[0]))
	assert.Equal(t, []string{"production", "web", "4", "unowned", "-", "-", "-", "-", "-"}, cells(lines[2]))
	assert.Contains(t, lines[1], "60m ago")
	assert.Contains(t, printed(t, "wide"), "CLAIMED BY")
	assert.Contains(t, printed(t, "wide"), "alice")
}

func cells(line string) []string {
	var found []string
	for cell := range strings.SplitSeq(line, "   ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			found = append(found, cell)
		}
	}
	return found
}

func TestTheCSVIsReadByItsColumnsAndIsNoFormula(t *testing.T) {
	lines, err := csv.NewReader(strings.NewReader(printed(t, "csv"))).ReadAll()

	require.NoError(t, err)
	require.Len(t, lines, 3)
	row := map[string]string{}
	for i, name := range lines[0] {
		row[name] = lines[1][i]
	}
	assert.Equal(t, "contested", row["state"])
	assert.Equal(t, "3", row["epoch"])
	assert.Equal(t, "'=cmd|' /C calc'!A0", row["last_foreign_writer"])
	assert.Equal(t, "2026-11-30T11:00:00Z", row["last_foreign_write"])
	assert.NotContains(t, lines[2], "-", "nobody is empty, as everything else that is not there")
}

func TestTheJSON(t *testing.T) {
	var got struct{ Deployments []Entry }
	require.NoError(t, json.Unmarshal([]byte(printed(t, "json")), &got))
	assert.Equal(t, someEntries(), got.Deployments)

	var out bytes.Buffer
	require.NoError(t, toJSON(&out, nil))
	assert.JSONEq(t, `{"deployments": []}`, out.String())
}

func TestAWriteWithoutATimeHasNone(t *testing.T) {
	scaled := wrote("kube-controller-manager", 0)
	scaled.Time, scaled.Subresource = nil, "scale"
	entries := []Entry{judge(&facts{deployment: aDeployment(scaled)})}
	var out bytes.Buffer

	require.NoError(t, toJSON(&out, entries))
	assert.NotContains(t, out.String(), "0001")
	assert.Contains(t, out.String(), `"manager": "kube-controller-manager"`)
	out.Reset()
	require.NoError(t, toCSV(&out, entries, false))
	assert.Equal(t, "production,web,4,0,unowned,,,,,,,,kube-controller-manager,kube-controller-manager,,\n", out.String())
}

func TestNoTextMovesTheCursorOrBreaksALine(t *testing.T) {
	entries := []Entry{judge(&facts{
		deployment: aDeployment(wrote("a\x1b[2J\nb\tc", time.Hour)), binding: aBinding(v1alpha1.PhaseHeld),
		autoscalers: []*v1alpha1.AutoScaler{anAutoScaler("web", "a", func(a *v1alpha1.AutoScaler) {
			a.Status.Contention = &v1alpha1.Contention{Manager: "x\x1b[2J\ny", Time: metav1.NewTime(noon)}
		})},
	})}
	entries[0].Binding.ClaimedBy = "c\x1b\n"
	for _, format := range []string{"", "wide", "csv"} {
		var out bytes.Buffer
		require.NoError(t, formats[format](&out, entries, noon, false))
		assert.Equal(t, 1, strings.Count(out.String(), "\n"), format)
		assert.NotContains(t, out.String(), "\x1b", format)
		assert.Contains(t, out.String(), `x\x1b[2J\ny`, format)
	}
}

func TestWithoutHeaders(t *testing.T) {
	for format, lines := range map[string]int{"": 2, "wide": 2, "csv": 2} {
		var out bytes.Buffer
		require.NoError(t, formats[format](&out, someEntries(), noon, false))
		assert.Equal(t, lines, strings.Count(out.String(), "\n"), format)
		assert.NotContains(t, strings.ToUpper(out.String()), "NAMESPACE")
	}
}

func TestCompletionOffersTheStatesThatAreNotGivenYet(t *testing.T) {
	offers, _ := completeStates(nil, nil, "contested,un")
	assert.Equal(t, []string{"contested,unowned", "contested,unknown", "contested,pending", "contested,managed", "contested,held"}, offers)
}

func TestTheSummary(t *testing.T) {
	assert.Equal(t, "2 Deployments: 1 contested, 1 unowned", summary(someEntries(), cli.Color{}))
	assert.Equal(t, "1 Deployment: 1 unowned", summary(someEntries()[1:], cli.Color{}))
	assert.Equal(t, "no Deployments", summary(nil, cli.Color{}))
}
