package rules_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v2"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/webhook/rules"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```")

// documented gives the rules that docs/platform-rules.md prints, by name.
func documented(t *testing.T) map[string]rules.Config {
	t.Helper()
	text, err := os.ReadFile("../../docs/platform-rules.md")
	require.NoError(t, err)
	found := map[string]rules.Config{}
	for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
		var c struct {
			Rules []rules.Config `yaml:"rules"`
		}
		require.NoError(t, yaml.UnmarshalStrict([]byte(block[1]), &c), block[1])
		for _, rule := range c.Rules {
			found[rule.Name] = rule
		}
	}
	require.Len(t, found, 3)
	return found
}

type documentedCase struct {
	change func(*rules.Input)
	want   string // part of the denial; empty: allowed
}

// max sets the object's maxReplicas.
func maximum(n int32) func(*rules.Input) {
	return func(in *rules.Input) { in.Object.Spec.MaxReplicas = n }
}

func checkDocumented(t *testing.T, name string, base func() rules.Input, cases map[string]documentedCase) {
	t.Helper()
	config, ok := documented(t)[name]
	require.True(t, ok, name)
	set := newSet(t, config)
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			in := base()
			tc.change(&in)
			errs, warnings := set.Check(t.Context(), in)
			assert.Empty(t, warnings)
			if tc.want == "" {
				assert.Empty(t, errs)
				return
			}
			require.Len(t, errs, 1)
			assert.Equal(t, config.Field, errs[0].Field)
			assert.Contains(t, errs[0].Detail, `platform rule "`+name+`"`)
			assert.Contains(t, errs[0].Detail, tc.want)
		})
	}
}

func TestTheDocumentedReplicaBudget(t *testing.T) {
	base := func() rules.Input {
		in := input()
		in.Others = []v1alpha1.AutoScaler{
			*builders.MakeAutoScaler("shop", "api").Bounds(1, 30).Obj(),
			*builders.MakeAutoScaler("shop", "queue").Bounds(1, 20).Obj(),
		}
		in.Namespace.Annotations = map[string]string{"example.com/replica-budget": "100"}
		return in
	}
	update := func(old, now int32) func(*rules.Input) {
		return func(in *rules.Input) {
			in.OldObject = in.Object.DeepCopy()
			in.OldObject.Spec.MaxReplicas, in.Object.Spec.MaxReplicas = old, now
		}
	}
	checkDocumented(t, "replica-budget", base, map[string]documentedCase{
		"just within the budget": {maximum(50), ""},
		"past the budget": {maximum(51),
			"maxReplicas 51 and the 50 of the namespace's other AutoScalers exceed its budget of 100 replicas; lower one, or ask the platform team"},
		"alone past the budget":            {func(in *rules.Input) { in.Others = nil; maximum(101)(in) }, "maxReplicas 101 and the 0 of"},
		"alone within the budget":          {func(in *rules.Input) { in.Others = nil; maximum(100)(in) }, ""},
		"a shadow takes no replicas":       {func(in *rules.Input) { in.Object.Spec.DryRun = true; maximum(500)(in) }, ""},
		"a namespace without a budget":     {func(in *rules.Input) { in.Namespace.Annotations = map[string]string{"a": "b"}; maximum(500)(in) }, ""},
		"a namespace with no annotations":  {func(in *rules.Input) { in.Namespace.Annotations = nil; maximum(500)(in) }, ""},
		"lowered, but still past it":       {update(90, 80), ""},
		"left as it is, past it":           {update(90, 90), ""},
		"raised where it is past it":       {update(90, 91), "exceed its budget"},
		"a shadow that becomes real":       {func(in *rules.Input) { update(90, 90)(in); in.OldObject.Spec.DryRun = true }, "exceed its budget"},
		"a budget that is no number":       {func(in *rules.Input) { in.Namespace.Annotations["example.com/replica-budget"] = "many" }, "could not be evaluated"},
		"a budget in a unit":               {func(in *rules.Input) { in.Namespace.Annotations["example.com/replica-budget"] = "1k" }, "could not be evaluated"},
		"an update within, from within it": {update(20, 30), ""},
	})
}

func TestTheDocumentedApprovalAboveASize(t *testing.T) {
	approved := func(n string, m int32) func(*rules.Input) {
		return func(in *rules.Input) {
			in.Object.Annotations = map[string]string{"example.com/approved-max-replicas": n}
			in.Object.Spec.MaxReplicas = m
		}
	}
	checkDocumented(t, "large-needs-approval", input, map[string]documentedCase{
		"small":                        {maximum(100), ""},
		"large":                        {maximum(101), "more than 100 replicas need an approval"},
		"large with another mark":      {func(in *rules.Input) { in.Object.Annotations = map[string]string{"a": "b"}; maximum(101)(in) }, "need an approval"},
		"large and approved":           {approved("150", 150), ""},
		"larger than was approved":     {approved("150", 151), "need an approval"},
		"approved by what's no number": {approved("yes", 101), "could not be evaluated"},
		"small with a bad approval":    {approved("yes", 100), ""},
	})
}

func TestTheDocumentedScaleDownProtection(t *testing.T) {
	base := func() rules.Input {
		in := input()
		in.Object = builders.MakeAutoScaler("shop", "web").Steps(5, 2).Window(300).Obj()
		return in
	}
	step := int32(2)
	own := func(b v1alpha1.Behavior) func(*rules.Input) {
		return func(in *rules.Input) { in.Object.Spec.Metrics[0].Behavior = &b }
	}
	const want = "set scaleDownStabilizationSeconds to 300 or more, and scaleDownMaxStep"
	checkDocumented(t, "scale-down-protection", base, map[string]documentedCase{
		"window and step":                    {func(*rules.Input) {}, ""},
		"no step":                            {func(in *rules.Input) { in.Object.Spec.Behavior.ScaleDownMaxStep = nil }, want},
		"a short window":                     {func(in *rules.Input) { *in.Object.Spec.Behavior.ScaleDownStabilizationSeconds = 299 }, want},
		"no window":                          {func(in *rules.Input) { *in.Object.Spec.Behavior.ScaleDownStabilizationSeconds = 0 }, want},
		"the built-in window":                {func(in *rules.Input) { in.Object.Spec.Behavior.ScaleDownStabilizationSeconds = nil }, ""},
		"no behavior":                        {func(in *rules.Input) { in.Object.Spec.Behavior = nil }, want},
		"a metric's own without a step":      {own(v1alpha1.Behavior{}), want},
		"a metric's own with a step":         {own(v1alpha1.Behavior{ScaleDownMaxStep: &step}), ""},
		"one metric of two is not protected": {func(in *rules.Input) { twoMetrics(in) }, want},
		"every metric's own makes up for all": {func(in *rules.Input) {
			own(v1alpha1.Behavior{ScaleDownMaxStep: &step})(in)
			in.Object.Spec.Behavior = nil
		}, ""},
	})
}

func twoMetrics(in *rules.Input) {
	second := in.Object.Spec.Metrics[0]
	second.Name, second.Behavior = "second", &v1alpha1.Behavior{}
	in.Object.Spec.Metrics = append(in.Object.Spec.Metrics, second)
}

func TestTheDocumentedMistakesAreWhatIsSaid(t *testing.T) {
	text, err := os.ReadFile("../../docs/platform-rules.md")
	require.NoError(t, err)
	for _, expression := range []string{"object.spec.maxReplicas <= limit", "object.spec.maxReplica <= 10"} {
		c := deny(expression)
		c.Name = "large"
		_, err := rules.New([]rules.Config{c}, v1alpha1.Defaults{})
		require.Error(t, err)
		said, _, _ := strings.Cut(err.Error(), ", dryRun")
		assert.Contains(t, string(text), said)
	}
}
