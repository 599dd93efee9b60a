package alerts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const dashboardFile = "charts/autoscale-operator/files/dashboard.json"

// board is a Grafana dashboard, as far as it is looked at here.
type board struct {
	ID            *int   `json:"id"`
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Links         []any  `json:"links"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int        `json:"id"`
	Type        string     `json:"type"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Datasource  datasource `json:"datasource"`
	GridPos     position   `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID      string     `json:"refId"`
		Expr       string     `json:"expr"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type position struct{ X, Y, W, H int }

func (p position) overlaps(q position) bool {
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

func dashboard(t *testing.T) *board {
	t.Helper()
	var b board
	require.NoError(t, json.Unmarshal([]byte(read(t, dashboardFile)), &b))
	return &b
}

// substituted is a text with values in the place of Grafana's variables.
func substituted(text string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", "autoscale-operator", "$namespace", "shop|pay", "$autoscaler", "web").Replace(text)
}

func TestTheDashboardCanBeImportedAnywhereAndStaysTheSame(t *testing.T) {
	b := dashboard(t)
	assert.Nil(t, b.ID, "a number is one Grafana's alone")
	assert.Equal(t, "autoscale-operator", b.UID, "links to it rest on this")
	assert.GreaterOrEqual(t, b.SchemaVersion, 39)
	assert.Empty(t, b.Links)
	assert.NotContains(t, read(t, dashboardFile), "://", "nothing leads outside")
	var variables []string
	for _, v := range b.Templating.List {
		variables = append(variables, v.Name)
	}
	assert.Equal(t, []string{"datasource", "job", "namespace", "autoscaler"}, variables)
	assert.Equal(t, "datasource", b.Templating.List[0].Type)
}

func TestEveryPanelIsExplainedHasAUnitAndAPlaceOfItsOwn(t *testing.T) {
	b := dashboard(t)
	ids := map[int]bool{}
	for i, p := range b.Panels {
		where := fmt.Sprintf("panel %q", p.Title)
		assert.False(t, ids[p.ID], "%s: its id is another one's", where)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, where)
		for _, other := range b.Panels[:i] {
			assert.False(t, p.GridPos.overlaps(other.GridPos), "%s lies over %q", where, other.Title)
		}
		if p.Type == "row" {
			continue
		}
		require.NotZero(t, i, "the first is a row")
		assert.Regexp(t, `(?s)^[A-Z].{25,}[.]$`, p.Description, where)
		assert.NotEmpty(t, p.FieldConfig.Defaults.Unit, where)
		assert.NotEmpty(t, p.Targets, where)
		assert.Equal(t, datasource{"prometheus", "${datasource}"}, p.Datasource, where)
		for _, target := range p.Targets {
			assert.Equal(t, p.Datasource, target.Datasource, where)
		}
	}
}

func TestEveryPanelAsksForMetricsThatExist(t *testing.T) {
	c, b := newCatalog(t), dashboard(t)
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			expr := substituted(target.Expr)
			require.NotContains(t, expr, "$", "a variable that the dashboard lacks")
			c.check(t, expr, fmt.Sprintf("panel %q, %s", p.Title, target.RefID))
		}
	}
}

func TestTheVariablesAreTakenFromMetricsThatExist(t *testing.T) {
	c := newCatalog(t)
	for _, v := range dashboard(t).Templating.List[1:] {
		inner := strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")")
		cut := strings.LastIndex(inner, ", ")
		require.Positive(t, cut, v.Name)
		selector, label := substituted(inner[:cut]), inner[cut+2:]
		assert.Equal(t, v.Name, label)
		c.check(t, "group by ("+label+") ("+selector+")", "variable "+v.Name)
	}
}

// What an operator of the operator wants to know; each is a row.
func TestEveryQuestionHasARow(t *testing.T) {
	var rows []string
	for _, p := range dashboard(t).Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
	}
	assert.Equal(t, []string{
		"At a glance",
		"Is the controller backlogged, or does it fail again and again?",
		"Can the metrics be trusted?",
		"Where is it stuck: at the recommendation, the write, or the pods?",
		"Is there another writer, or is a permission missing?",
		"Is a policy too tight, or capacity short?",
		"Does a restart affect safety?",
		"What does it cost: API requests, memory, GC?",
		"Do admissions pass?",
		"What would the dry runs do?",
	}, rows)
}

// Every metric of ours is to be seen somewhere: what nobody looks at need not be kept.
func TestEveryMetricOfOursIsOnTheDashboard(t *testing.T) {
	shown := read(t, dashboardFile)
	for name := range newCatalog(t).labels {
		if strings.HasPrefix(name, "autoscale_") {
			assert.Contains(t, shown, name)
		}
	}
}
