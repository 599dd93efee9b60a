package rules_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/webhook/rules"
)

// deny gives a rule that denies on spec.maxReplicas.
func deny(expression string) rules.Config {
	return rules.Config{Name: "r", Action: rules.Deny, Expression: expression, Message: "ask the platform team", Field: "spec.maxReplicas"}
}

func newSet(t *testing.T, configs ...rules.Config) *rules.Set {
	t.Helper()
	set, err := rules.New(configs, v1alpha1.Defaults{})
	require.NoError(t, err)
	return set
}

// allowed says whether a rule allows an input.
func allowed(t *testing.T, expression string, in rules.Input) bool {
	t.Helper()
	errs, warnings := newSet(t, deny(expression)).Check(t.Context(), in)
	assert.Empty(t, warnings)
	for _, err := range errs {
		assert.NotContains(t, err.Error(), "could not be evaluated")
	}
	return len(errs) == 0
}

func input() rules.Input {
	object := builders.MakeAutoScaler("shop", "web").Bounds(2, 20).Obj()
	object.Labels = map[string]string{"team": "a"}
	object.Status.TargetUID = "some"
	object.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	return rules.Input{
		Object:    object,
		Namespace: &rules.Namespace{Name: "shop", Labels: map[string]string{"tier": "gold"}},
		Request:   rules.Request{Operation: "CREATE", Username: "jane", Groups: []string{"devs", "shop"}, DryRun: true},
		Others: []v1alpha1.AutoScaler{
			*builders.MakeAutoScaler("shop", "api").Bounds(1, 5).Obj(),
			*builders.MakeAutoScaler("shop", "queue").Bounds(1, 7).Paused().Obj(),
		},
	}
}

func TestWhatARuleReads(t *testing.T) {
	for name, expression := range map[string]string{
		"the object's spec":                   "object.spec.maxReplicas == 20 && object.spec.targetRef.name == 'web'",
		"the object's labels":                 "object.metadata.labels['team'] == 'a' && object.metadata.name == 'web'",
		"its kind":                            "object.apiVersion == 'autoscale.example.com/v1alpha1' && object.kind == 'AutoScaler'",
		"no field that is not set":            "!has(object.spec.paused) && !has(object.spec.behavior.scaleUpMaxStep) && !has(object.metadata.annotations)",
		"no status":                           "!('status' in object) && !('status' in others[0])",
		"no managed fields":                   "!has(object.metadata.managedFields)",
		"no old object on create":             "oldObject == null",
		"the Namespace's name and labels":     "namespaceObject.metadata.name == 'shop' && namespaceObject.metadata.labels.tier == 'gold'",
		"no annotations of a Namespace bare":  "!has(namespaceObject.metadata.annotations)",
		"who asks":                            "request.userInfo.username == 'jane' && 'devs' in request.userInfo.groups",
		"what for":                            "request.operation == 'CREATE' && request.dryRun && request.name == 'web' && request.namespace == 'shop'",
		"the other AutoScalers":               "others.map(o, o.metadata.name) == ['api', 'queue']",
		"their sum":                           "others.map(o, o.spec.maxReplicas).sum() == 12",
		"numbers as numbers":                  "object.spec.maxReplicas * 2 == 40 && object.spec.metrics[0].maxAgeSeconds < 45.5",
		"the API server's functions as needs": "object.metadata.name.matches('^w') && quantity('20').isGreaterThan(quantity('1'))",
	} {
		t.Run("a rule reads "+name, func(t *testing.T) {
			assert.True(t, allowed(t, expression, input()))
			assert.False(t, allowed(t, "!("+expression+")", input()))
		})
	}
}

func TestOthersAreTheOtherEnabledAutoScalersOfTheNamespace(t *testing.T) {
	in := input()
	deleted := builders.MakeAutoScaler("shop", "deleted").Obj()
	deleted.DeletionTimestamp = &metav1.Time{}
	unreadable := builders.MakeAutoScaler("shop", "unreadable").Obj()
	unreadable.DecodeError = "spec.maxReplicas: not a number"
	in.Others = append(in.Others,
		*builders.MakeAutoScaler("shop", "shadow").DryRun().Obj(),
		*builders.MakeAutoScaler("shop", "web").Obj(),
		*builders.MakeAutoScaler("elsewhere", "other").Obj(),
		*deleted, *unreadable)
	assert.True(t, allowed(t, "others.map(o, o.metadata.name) == ['api', 'queue']", in))
}

func TestAChangedOtherIsNotMistakenForItsFormerSelf(t *testing.T) {
	set := newSet(t, deny("others[0].spec.maxReplicas < 10"))
	in := input()
	other := &in.Others[0]
	for _, tc := range []struct {
		resourceVersion string
		max             int32
		denied          bool
	}{{"1", 5, false}, {"2", 50, true}, {"3", 6, false}, {"", 60, true}, {"", 7, false}} {
		other.UID, other.ResourceVersion, other.Spec.MaxReplicas = "u", tc.resourceVersion, tc.max
		errs, _ := set.Check(t.Context(), in)
		assert.Equal(t, tc.denied, len(errs) > 0, "%+v", tc)
	}
}

func TestARuleSeesThePlatformsDefaults(t *testing.T) {
	set, err := rules.New([]rules.Config{deny("[object, oldObject, others[0], others[1]].all(a, " +
		"a.spec.pollIntervalSeconds == 30 && a.spec.claimPolicy == 'Wait' && a.spec.metrics[0].maxAgeSeconds == 90 && a.spec.behavior.scaleDownMaxStep == 2)")},
		v1alpha1.Defaults{PollIntervalSeconds: 30, MaxAgeSeconds: 90, ClaimPolicy: v1alpha1.ClaimWait, Behavior: v1alpha1.Behavior{ScaleDownMaxStep: new(int32(2))}})
	require.NoError(t, err)
	in := input()
	in.OldObject = in.Object.DeepCopy()
	in.Others[1].UID, in.Others[1].ResourceVersion = "u", "1" // the one that is remembered
	in.Object.Spec.MinReplicas++
	bare := []*v1alpha1.AutoScaler{in.Object, in.OldObject, &in.Others[0], &in.Others[1]}
	for _, a := range bare {
		a.Spec.PollIntervalSeconds, a.Spec.ClaimPolicy, a.Spec.Behavior, a.Spec.Metrics[0].MaxAgeSeconds = 0, "", nil, 0
	}
	for range 2 {
		errs, _ := set.Check(t.Context(), in)
		assert.Empty(t, errs)
	}
	for _, a := range bare {
		assert.Zero(t, a.Spec.Metrics[0].MaxAgeSeconds, "the input is left as it is")
		assert.Nil(t, a.Spec.Behavior)
	}
}

func TestADenialNamesFieldRuleAndMessage(t *testing.T) {
	in := input()
	for name, tc := range map[string]struct {
		change func(*rules.Config)
		want   string
	}{
		"with the rule's field": {func(*rules.Config) {},
			`spec.maxReplicas: Forbidden: platform rule "r": ask the platform team`},
		"with the whole spec where no field is given": {func(c *rules.Config) { c.Field = "" },
			`spec: Forbidden: platform rule "r": ask the platform team`},
		"with an expression's message": {func(c *rules.Config) { c.MessageExpression = "'at most 10,\\n not ' + string(object.spec.maxReplicas)" },
			`spec.maxReplicas: Forbidden: platform rule "r": at most 10, not 20`},
		"with the fixed message where the expression fails": {func(c *rules.Config) { c.MessageExpression = "object.metadata.labels['nope']" },
			`spec.maxReplicas: Forbidden: platform rule "r": ask the platform team`},
		"with the fixed message where the expression gives nothing": {func(c *rules.Config) { c.MessageExpression = "' '" },
			`spec.maxReplicas: Forbidden: platform rule "r": ask the platform team`},
		"with the reason where nothing else is left": {func(c *rules.Config) { c.MessageExpression, c.Message = "object.metadata.labels.nope", "" },
			`spec.maxReplicas: Forbidden: platform rule "r": does not allow this (its message_expression failed: at 1:23: no such key: nope)`},
	} {
		t.Run(name, func(t *testing.T) {
			c := deny("false")
			tc.change(&c)
			errs, warnings := newSet(t, c).Check(t.Context(), in)
			require.Len(t, errs, 1)
			assert.Equal(t, tc.want, errs[0].Error())
			assert.Equal(t, field.ErrorTypeForbidden, errs[0].Type)
			assert.Empty(t, warnings)
		})
	}
}

func TestARuleThatWarnsDeniesNothing(t *testing.T) {
	c := deny("false")
	c.Action = rules.Warn
	errs, warnings := newSet(t, c).Check(t.Context(), input())
	assert.Empty(t, errs)
	assert.Equal(t, []string{`spec.maxReplicas: platform rule "r": ask the platform team`}, warnings)
}

func TestARuleThatCannotBeEvaluatedCountsAsViolated(t *testing.T) {
	for name, tc := range map[string]struct{ expression, want string }{
		"an absent field":      {"object.spec.paused == false", "at 1:12: no such key: paused"},
		"no number":            {"int(object.metadata.name) > 1", "at 1:4"},
		"sometimes not a bool": {"has(object.metadata.labels) ? dyn(object.spec) : dyn(true)", "must give a bool"},
	} {
		t.Run(name, func(t *testing.T) {
			c := deny(tc.expression)
			errs, _ := newSet(t, c).Check(t.Context(), input())
			require.Len(t, errs, 1)
			for _, want := range []string{`platform rule "r" could not be evaluated`, tc.want, "administrator"} {
				assert.ErrorContains(t, errs[0], want)
			}
			c.Action = rules.Warn
			errs, warnings := newSet(t, c).Check(t.Context(), input())
			assert.Empty(t, errs)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], tc.want)
		})
	}
}

func TestARequestThatIsGivenUpIsNotAdmitted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs, _ := newSet(t, deny("true")).Check(ctx, input())
	require.Len(t, errs, 1)
	assert.ErrorContains(t, errs[0], "the request was given up before")
	assert.NotContains(t, errs[0].Error(), "repair")
}

func TestRulesAreAnsweredInTheOrderOfTheConfiguration(t *testing.T) {
	var configs []rules.Config
	var want []string
	for _, name := range []string{"z", "b", "m", "a"} {
		c := deny("false")
		c.Name = name
		configs = append(configs, c)
		want = append(want, `spec.maxReplicas: Forbidden: platform rule "`+name+`": ask the platform team`)
	}
	set := newSet(t, configs...)
	for range 5 {
		errs, _ := set.Check(t.Context(), input())
		var got []string
		for _, err := range errs {
			got = append(got, err.Error())
		}
		assert.Equal(t, want, got)
	}
}

func TestASetWithoutRulesAllowsEverything(t *testing.T) {
	for _, set := range []*rules.Set{nil, newSet(t)} {
		errs, warnings := set.Check(t.Context(), input())
		assert.Empty(t, errs)
		assert.Empty(t, warnings)
		assert.False(t, set.Uses(rules.VariableOthers))
	}
}

func TestUsesSaysWhatHasToBeGathered(t *testing.T) {
	c := deny("object.spec.maxReplicas < 10")
	assert.False(t, newSet(t, c).Uses(rules.VariableOthers))
	assert.True(t, newSet(t, c, rules.Config{Name: "o", Action: rules.Warn, Expression: "others.size() < 3", Message: "m"}).Uses(rules.VariableOthers))
	c.MessageExpression = "'in ' + namespaceObject.metadata.name"
	assert.True(t, newSet(t, c).Uses(rules.VariableNamespace), "a message reads it")
}

func TestAConfigurationWithMistakesTellsThemAll(t *testing.T) {
	_, err := rules.New([]rules.Config{
		deny("true"),
		{Name: "r", Action: "Refuse", Expression: "object.spec ==", Field: "status.x", Message: "m"},
		{Name: "Bad Name", Action: rules.Warn, Expression: "objct.spec.max > 1", MessageExpression: "1 + 1"},
		{Name: "", Action: "", Expression: ""},
		{Name: "long", Action: rules.Deny, Expression: "'text'", Message: strings.Repeat("x", 1025)},
	}, v1alpha1.Defaults{})
	require.Error(t, err)
	for _, want := range []string{
		`rules[1] "r": name: rules[0] has this name too`,
		`action: is "Refuse"; it must be Deny or Warn`,
		`field: is "status.x"; it must be a path below spec or metadata`,
		"expression: at 1:15: Syntax error",
		`rules[2] "Bad Name": name: a lowercase RFC 1123 label`,
		"expression: at 1:1: undeclared reference to 'objct'",
		"message_expression: the expression must give a string, but it gives a int",
		`rules[3] "": name:`,
		`action: is ""`,
		"message: give a message or a message_expression",
		"expression: the expression is empty",
		`rules[4] "long": message: has 1025 bytes`,
		"the expression must give a bool, but it gives a string",
	} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "rules[0] \"r\":")
}

func TestTheNumberOfRulesIsBounded(t *testing.T) {
	_, err := rules.New(make([]rules.Config, 51), v1alpha1.Defaults{})
	assert.ErrorContains(t, err, "51 rules; at most 50")
}

func TestAFieldIsAPathOfTheObject(t *testing.T) {
	for path, valid := range map[string]bool{
		"spec": true, "spec.maxReplicas": true, "metadata.annotations[example.com/approved]": true, "spec.metrics[0].behavior": true,
		"specs": false, "spec.": false, "spec..a": false, "spec.a b": false, "status": false, "spec\n": false, "spec[]": false,
	} {
		c := deny("true")
		c.Field = path
		_, err := rules.New([]rules.Config{c}, v1alpha1.Defaults{})
		assert.Equal(t, valid, err == nil, path)
	}
}
