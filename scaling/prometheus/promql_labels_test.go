package prometheus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var perTarget = QueryLimits{MaxRange: time.Hour, Series: SeriesLabels{Namespace: "namespace", Target: "deployment"}}

func TestAnAnswerForManyTargetsMayCarryBothLabels(t *testing.T) {
	for name, query := range map[string]string{
		"grouped":                         `sum by (namespace, deployment) (rate(requests_total[1m]))`,
		"grouped in the other order":      `sum by (deployment, namespace, zone) (rate(requests_total[1m]))`,
		"grouped by leaving out others":   `sum without (pod, instance) (rate(requests_total[1m]))`,
		"a recording rule as it is":       `namespace_deployment:requests:rate1m`,
		"a part of it":                    `topk(100, sum by (namespace, deployment) (up))`,
		"an average of two":               `sum by (namespace, deployment) (a) / sum by (namespace, deployment) (b)`,
		"matched on both":                 `sum by (namespace, deployment, x) (a) / on (namespace, deployment) b`,
		"matched ignoring another":        `sum by (namespace, deployment, x) (a) / ignoring (x) b`,
		"the many side's":                 `sum by (namespace, deployment, x) (a) * on (x) group_left () b`,
		"one label from the one side":     `sum by (namespace, x) (a) * on (namespace, x) group_left (deployment) b`,
		"the many side on the right":      `b * on (x) group_right () sum by (namespace, deployment, x) (a)`,
		"times a number":                  `60 * sum by (namespace, deployment) (a) > 0`,
		"a label made from another":       `label_replace(sum by (namespace, pod) (a), "deployment", "$1", "pod", "(.*)-[^-]+")`,
		"a label joined from others":      `label_join(sum by (namespace, app, tier) (a), "deployment", "-", "app", "tier")`,
		"a value as the label":            `count_values by (namespace) ("deployment", a)`,
		"what others have in common":      `sum by (namespace, deployment) (a) and on () (vector(1) == 1)`,
		"or what another has":             `sum by (namespace, deployment) (a) or vector(0)`,
		"labels from an info metric":      `info(sum by (namespace, job) (a))`,
		"of a quantile":                   `histogram_quantile(0.9, sum by (namespace, deployment, le) (rate(a[5m])))`,
		"of a subquery":                   `max_over_time(sum by (namespace, deployment) (rate(a[1m]))[10m:1m])`,
		"the absence of one":              `absent(up{namespace="a", deployment="b"})`,
		"negated and in parentheses":      `-(sum by (namespace, deployment) (a))`,
		"of a time that does not move":    `sum by (namespace, deployment) (a @ end())`,
		"sorted by a label":               `sort_by_label(sum by (namespace, deployment) (a), "namespace")`,
		"with time() beside":              `time() - max by (namespace, deployment) (timestamp(a))`,
		"unless there is something":       `sum by (namespace, deployment) (a) unless on (namespace) b`,
		"a label dropped and made anew":   `label_replace(sum by (namespace) (a), "deployment", "web", "", "")`,
		"compared with a scalar function": `sum by (namespace, deployment) (a) > bool scalar(b)`,
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, CheckQuery(query, perTarget))
		})
	}
}

func TestAnAnswerForManyTargetsThatCannotCarryALabelIsRefused(t *testing.T) {
	const deployment, namespace = `"deployment"`, `"namespace"`
	for name, tc := range map[string]struct {
		query string
		lacks []string
	}{
		"one number":                       {`sum(rate(a[1m]))`, []string{namespace, deployment}},
		"a scalar":                         {`scalar(a)`, []string{namespace, deployment}},
		"a constant":                       {`vector(1)`, []string{namespace, deployment}},
		"a literal":                        {`42`, []string{namespace, deployment}},
		"grouped by one":                   {`sum by (namespace) (a)`, []string{deployment}},
		"grouped by another":               {`sum by (namespace, pod) (a)`, []string{deployment}},
		"left out":                         {`sum without (deployment) (a)`, []string{deployment}},
		"lost on the inside":               {`sum by (namespace, deployment) (sum by (namespace) (a))`, []string{deployment}},
		"chosen of what lacks it":          {`topk(3, sum by (deployment) (a))`, []string{namespace}},
		"matched on one":                   {`a / on (namespace) b`, []string{deployment}},
		"matched ignoring it":              {`a / ignoring (deployment) b`, []string{deployment}},
		"the many side lacks it":           {`sum by (namespace) (a) * on (namespace) group_left () b`, []string{deployment}},
		"neither has the one to take over": {`sum by (namespace) (a) * on (namespace) group_left (deployment) sum by (namespace) (b)`, []string{deployment}},
		"the many side on the right":       {`b * on (namespace) group_right () sum by (namespace) (a)`, []string{deployment}},
		"the other side does not count":    {`sum by (namespace) (a) and on (namespace) sum by (namespace, deployment) (b)`, []string{deployment}},
		"neither of two":                   {`sum by (namespace) (a) or sum by (namespace, pod) (b)`, []string{deployment}},
		"another label is made":            {`label_replace(sum by (namespace) (a), "workload", "$1", "pod", "(.*)")`, []string{deployment}},
		"of a subquery":                    {`max_over_time(sum by (namespace) (rate(a[1m]))[10m:1m])`, []string{deployment}},
		"values under another name":        {`count_values by (namespace) ("size", a)`, []string{deployment}},
		"a number times what lacks it":     {`2 * sum by (namespace) (a)`, []string{deployment}},
		"what lacks it over a number":      {`-(sum by (namespace) (a)) / 2`, []string{deployment}},
	} {
		t.Run(name, func(t *testing.T) {
			got := texts(t, CheckQuery(tc.query, perTarget))
			require.Len(t, got, len(tc.lacks), "%v", got)
			for i, label := range tc.lacks {
				assert.Equal(t, "position 1: the result has no label "+label+", which says whom a series is for; group by it, as in sum by (namespace, deployment) (…)", got[i])
			}
		})
	}
}

func TestAQueryForManyTargetsHasNoPlaceholder(t *testing.T) {
	got := texts(t, CheckQuery(`sum by (namespace, deployment) (rate(a{namespace=$namespace}[1m]))`, perTarget))
	require.Len(t, got, 1)
	assert.Equal(t, "position 50: a query whose answer has a series per target is asked once for all of them, so $namespace has no value in it; select all and group by the two labels", got[0])

	limits := perTarget
	limits.Parameters = []string{"queue"}
	got = texts(t, CheckQuery(`sum by (namespace, deployment) (a{q=$queue})`, limits))
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "so $queue has no value in it")
}

func TestTheLabelsAreThoseOfTheProfile(t *testing.T) {
	limits := QueryLimits{Series: SeriesLabels{Namespace: "kube_namespace", Target: "workload"}}
	assert.Empty(t, CheckQuery(`sum by (kube_namespace, workload) (a)`, limits))
	assert.Len(t, CheckQuery(`sum by (namespace, deployment) (a)`, limits), 2)
}
