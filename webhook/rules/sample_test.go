package rules

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func TestTheSampleHasEveryFieldOfASpec(t *testing.T) {
	var look func(path string, v reflect.Value)
	look = func(path string, v reflect.Value) {
		if !assert.False(t, v.IsZero(), "%s is not set", path) {
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			look(path, v.Elem())
		case reflect.Slice:
			look(path+"[0]", v.Index(0))
		case reflect.Map:
			look(path+"[]", v.MapIndex(v.MapKeys()[0]))
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[metav1.Time]() {
				return // its fields are nobody's
			}
			for i := range v.NumField() {
				look(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	look("spec", reflect.ValueOf(sample("web").Spec))
	assert.Empty(t, v1alpha1.ValidateAutoScaler(sample("web"), v1alpha1.DefaultLimits))
}

func TestAFieldThatNoAutoScalerHasStopsTheStart(t *testing.T) {
	for name, tc := range map[string]struct{ expression, want string }{
		"misspelled":                       {"object.spec.maxReplica <= 10", `at 1:12: object.spec has no field "maxReplica"; it has behavior, claimPolicy, dryRun, fallback, maxReplicas,`},
		"where the sample does not get to": {"object.spec.minReplicas > 0 || object.spec.maxReplica <= 10", `at 1:43: object.spec has no field "maxReplica"`},
		"read by has()":                    {"!has(object.spec.pause)", `object.spec has no field "pause"`},
		"read as optional":                 {"!object.spec.?pause.orValue(false)", `object.spec has no field "pause"`},
		"read by its name in quotes":       {"object.spec['pause']", `object.spec has no field "pause"`},
		"of a metric":                      {"object.spec.metrics.all(m, m.maxAge < 60)", `object.spec.metrics[] has no field "maxAge"; it has behavior, maxAgeSeconds,`},
		"of one metric":                    {"object.spec.metrics[0].maxAge < 60", `object.spec.metrics[] has no field "maxAge"`},
		"of a metric's behavior":           {"object.spec.metrics.exists(m, has(m.behavior) && m.behavior.window > 3)", `object.spec.metrics[].behavior has no field "window"`},
		"by index and value":               {"object.spec.metrics.all(i, m, i >= 0 && m.maxAge < 60)", `object.spec.metrics[] has no field "maxAge"`},
		"of a schedule":                    {"object.spec.schedules.all(s, s.cron != '')", `object.spec.schedules[] has no field "cron"; it has durationSeconds,`},
		"of the fallback":                  {"object.spec.fallback.replicas > 1", `object.spec.fallback has no field "replicas"; it has afterSeconds, floorReplicas`},
		"of the stored object":             {"oldObject == null || oldObject.spec.max > 1", `oldObject.spec has no field "max"`},
		"of the others":                    {"others.map(o, o.spec.max).sum() < 10", `others[].spec has no field "max"`},
		"of the others in a loop":          {"others.all(a, others.all(b, a.spec.maxReplicas + b.spec.max < 10))", `others[].spec has no field "max"`},
		"of the object, outside its spec":  {"object.specs.maxReplicas < 10", `object has no field "specs"; it has apiVersion, kind, metadata, spec`},
		"of the status":                    {"object.status.targetReplicas < 10", `object has no field "status"`},
		"of the request":                   {"request.userinfo.username == 'jane'", `request has no field "userinfo"`},
		"on the second line":               {"true &&\n object.spec.max > 1", `at 2:13: object.spec has no field "max"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New([]Config{
				{Name: "fine", Action: Warn, Expression: "true", Message: "m"},
				{Name: "wrong", Action: Warn, Expression: tc.expression, Message: "m"},
				{Name: "said", Action: Deny, Expression: "true", MessageExpression: "string(" + tc.expression + ")"},
			}, v1alpha1.Defaults{})
			require.Error(t, err)
			assert.ErrorContains(t, err, `rules[1] "wrong": expression: at `)
			assert.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, `rules[2] "said": message_expression: at `)
		})
	}
}

func TestAResultOfAnotherTypeStopsTheStart(t *testing.T) {
	for _, tc := range []struct{ expression, want string }{
		{"object.spec", "must give a bool, but it gave a map"},
		{"oldObject == null ? dyn(true) : dyn(1)", "must give a bool, but it gave a int"},
		{"oldObject != null ? dyn(true) : dyn(1)", "must give a bool, but it gave a int"},
	} {
		_, err := New([]Config{{Name: "wrong", Action: Deny, Expression: tc.expression, Message: "m"}}, v1alpha1.Defaults{})
		assert.ErrorContains(t, err, tc.want, tc.expression)
		assert.ErrorContains(t, err, `rules[0] "wrong": expression: `, tc.expression)
	}
	_, err := New([]Config{{Name: "wrong", Action: Deny, Expression: "true", MessageExpression: "object.spec.maxReplicas"}}, v1alpha1.Defaults{})
	assert.ErrorContains(t, err, "message_expression: the expression must give a string, but it gave a int")
}

func TestWhatOnlyTheSampleLacksIsNoMistake(t *testing.T) {
	for _, expression := range []string{
		"int(namespaceObject.metadata.annotations['example.com/replica-budget']) > 1",
		"namespaceObject.metadata.labels.tier == 'gold' && object.metadata.labels['team'] != ''",
		"{'gold': 10}[namespaceObject.metadata.labels['tier']] > object.spec.maxReplicas",
		"{'web': 10}[object.metadata.name] > 1",
		"object.metadata.ownerReferences.exists(o, o.kind == 'App')",
		"object.metadata.name.split('-')[1] == 'a'",
		"has(oldObject.spec.paused)",
		"object.spec.metrics.all(m, m.parameters.queue_name != '')",
		"object.spec.metrics[0].parameters['queue_name'] == 'orders'",
		"others.map(object, {'object': object, 'name': dyn('x')}).all(o, o.name == 'x')",
		"object.spec.metrics.map(m, {'m': m}).all(x, x.m.name != '')",
		"1 / (object.spec.maxReplicas - 20) > 0",
	} {
		_, err := New([]Config{{Name: "r", Action: Deny, Expression: expression, Message: "m"}}, v1alpha1.Defaults{})
		assert.NoError(t, err, expression)
	}
}

func TestAllRulesTogetherHaveOneDeadline(t *testing.T) {
	set, err := New([]Config{
		{Name: "a", Action: Deny, Expression: "true", Message: "m"},
		{Name: "b", Action: Warn, Expression: "true", Message: "m"},
	}, v1alpha1.Defaults{})
	require.NoError(t, err)
	in := Input{Object: sample("web"), Request: Request{Operation: "CREATE"}}
	errs, warnings := set.Check(t.Context(), in)
	require.Empty(t, errs)
	require.Empty(t, warnings)

	set.timeout = -1 // it is over before the first rule
	errs, warnings = set.Check(t.Context(), in)
	const late = "was not evaluated in time, so it does not allow this: all rules together have 3s; try again"
	require.Len(t, errs, 1)
	assert.Contains(t, errs[0].Detail, `platform rule "a" `+late)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], `platform rule "b" `+late)
	assert.NotContains(t, errs[0].Detail, "repair")
}
