package binding

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/expr"
)

// program compiles a targets expression, or that of a default by its kind.
func program(tb testing.TB, source string) *expr.Program {
	tb.Helper()
	for _, m := range DefaultManagers() {
		if m.Kind == source {
			source = m.Targets
		}
	}
	p, err := compileTargets(source)
	require.NoError(tb, err)
	return p
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return u
}

func TestTheDeploymentsThatAManagerScales(t *testing.T) {
	const scaledObject, wpa = "ScaledObject", "WatermarkPodAutoscaler"
	web := []string{"web"}
	for name, tc := range map[string]struct {
		kind, spec string
		want       []string
	}{
		"a ScaledObject scales a Deployment unless it says otherwise": {scaledObject, "{scaleTargetRef: {name: web}}", web},
		"a ScaledObject with empty strings is as one without them":    {scaledObject, "{scaleTargetRef: {name: web, kind: '', apiVersion: ''}}", web},
		"a ScaledObject of a Deployment by its full name":             {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: apps/v1}}", web},
		"the version does not matter":                                 {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: apps/v1beta2}}", web},
		"extensions is an old group of Deployments":                   {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: extensions/v1beta1}}", web},
		"an empty group is an old group of Deployments":               {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: v1}}", web},
		"a Deployment of another group is another kind":               {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: example.com/v1}}", nil},
		"a group is compared as a whole":                              {scaledObject, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: my.apps/v1}}", nil},
		"a StatefulSet is no Deployment":                              {scaledObject, "{scaleTargetRef: {name: web, kind: StatefulSet}}", nil},
		"a kind is compared with its case":                            {scaledObject, "{scaleTargetRef: {name: web, kind: deployment}}", nil},
		"a WatermarkPodAutoscaler of a Deployment":                    {wpa, "{scaleTargetRef: {name: web, kind: Deployment, apiVersion: apps/v1}}", web},
		"a WatermarkPodAutoscaler without an apiVersion":              {wpa, "{scaleTargetRef: {name: web, kind: Deployment}}", web},
		"a WatermarkPodAutoscaler that says it is no dry run":         {wpa, "{scaleTargetRef: {name: web, kind: Deployment}, dryRun: false}", web},
		"a WatermarkPodAutoscaler with dryRun writes nothing":         {wpa, "{scaleTargetRef: {name: web, kind: Deployment}, dryRun: true}", nil},
		"a WatermarkPodAutoscaler of a Rollout":                       {wpa, "{scaleTargetRef: {name: web, kind: Rollout, apiVersion: argoproj.io/v1alpha1}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deploymentsOf(t.Context(), program(t, tc.kind), object(t, "spec: "+tc.spec))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestAPausedScaledObjectStillIsAManager(t *testing.T) {
	for _, annotation := range []string{`autoscaling.keda.sh/paused: "true"`, `autoscaling.keda.sh/paused-replicas: "3"`} {
		obj := object(t, "metadata: {annotations: {"+annotation+"}}\nspec: {scaleTargetRef: {name: web}}")
		got, err := deploymentsOf(t.Context(), program(t, "ScaledObject"), obj)
		require.NoError(t, err)
		assert.Equal(t, []string{"web"}, got, annotation)
	}
}

func TestAManagerThatIsBeingDeletedScalesNothing(t *testing.T) {
	obj := object(t, `{metadata: {deletionTimestamp: "2026-11-30T10:00:00Z"}, spec: {scaleTargetRef: {name: web}}}`)
	got, err := deploymentsOf(t.Context(), program(t, "ScaledObject"), obj)
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestAManagerOfSeveralDeployments(t *testing.T) {
	p := program(t, "object.spec.targets")
	got, err := deploymentsOf(t.Context(), p, object(t, `{spec: {targets: [
		{group: apps, kind: Deployment, name: worker}, {kind: Deployment, name: web}, {group: apps, kind: StatefulSet, name: db},
		{apiVersion: apps/v1, kind: Deployment, name: web}, {group: example.com, apiVersion: apps/v1, kind: Deployment, name: other}]}}`))
	require.NoError(t, err)
	assert.Equal(t, []string{"web", "worker"}, got, "sorted, each once; a group counts before an apiVersion")
}

func TestWhatAHostileObjectSaysIsLeftOut(t *testing.T) {
	million := make([]any, 1_000_000)
	for i := range million {
		million[i] = "x"
	}
	for name, tc := range map[string]struct {
		targets string
		obj     map[string]any
		want    []string
		message string
	}{
		"no spec":                         {"ScaledObject", map[string]any{}, nil, "no such key: spec"},
		"a spec that is a string":         {"ScaledObject", map[string]any{"spec": "none"}, nil, "scaleTargetRef"},
		"a target without a name":         {"ScaledObject", targetRef(map[string]any{}), nil, "no such key: name"},
		"a name that is a number":         {"ScaledObject", targetRef(map[string]any{"name": int64(5)}), nil, "targets[0]: its name is a int64 and must be a string"},
		"a name that is null":             {"ScaledObject", targetRef(map[string]any{"name": nil}), nil, "must be a string"},
		"an empty name":                   {"ScaledObject", targetRef(map[string]any{"name": ""}), nil, "must have a kind and a name"},
		"a name longer than any":          {"ScaledObject", targetRef(map[string]any{"name": strings.Repeat("a", 254)}), nil, "longer than any"},
		"a name of 1 MiB":                 {"ScaledObject", targetRef(map[string]any{"name": strings.Repeat("a", 1<<20)}), nil, "bytes"},
		"a name that is not UTF-8":        {"ScaledObject", targetRef(map[string]any{"name": "web\xff"}), nil, "UTF-8"},
		"an apiVersion of three parts":    {"ScaledObject", targetRef(map[string]any{"name": "web", "apiVersion": "a/b/c"}), nil, "group/version"},
		"a kind that is a list":           {"ScaledObject", targetRef(map[string]any{"name": "web", "kind": []any{}}), nil, "kind"},
		"a million targets":               {"object.list", map[string]any{"list": million}, nil, "more than"},
		"a million targets to go through": {`object.list.filter(x, x == "y").map(x, {"kind": "Deployment", "name": string(x)})`, map[string]any{"list": million}, nil, "was stopped"},
		"targets that are no list":        {"object.list", map[string]any{"list": "web"}, nil, "must give a list"},
		"a target that is no map":         {"object.list", map[string]any{"list": []any{"web"}}, nil, "targets[0]: it is a string and must be a map"},
		"one bad target among good ones": {"object.list", map[string]any{"list": []any{
			map[string]any{"kind": "Deployment"}, map[string]any{"kind": "Deployment", "name": "web"}, int64(7),
		}}, []string{"web"}, "targets[0]: it must have a kind and a name"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deploymentsOf(t.Context(), program(t, tc.targets), &unstructured.Unstructured{Object: tc.obj})
			require.ErrorContains(t, err, tc.message)
			assert.Equal(t, tc.want, got)
			assert.Less(t, len(err.Error()), 2000, "no hostile text in the log")
		})
	}
}

func targetRef(ref map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"scaleTargetRef": ref}}
}

// What deploymentsOf gives is, for any list of targets, what reading the list one by
// one gives.
func TestTargetsAreReadOneByOne(t *testing.T) {
	p := program(t, "object.list")
	text := rapid.SampledFrom([]string{"", "web", "apps", "extensions", "apps/v1", "v1", "a/b/c", "Deployment", "Job"})
	value := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any { return text.Draw(t, "text") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Int64().Draw(t, "number") }),
	)
	target := rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for _, key := range []string{"apiVersion", "group", "kind", "name"} {
			if rapid.Bool().Draw(t, "has "+key) {
				m[key] = value.Draw(t, key)
			}
		}
		if rapid.IntRange(0, 2).Draw(t, "usual") > 0 {
			m["kind"] = "Deployment"
		}
		return m
	})
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(target, 0, 20).Draw(rt, "targets")
		got, err := deploymentsOf(t.Context(), p, &unstructured.Unstructured{Object: map[string]any{"list": list}})
		var want []string
		bad := false
		for _, entry := range list {
			m := entry.(map[string]any)
			valid := true
			for _, value := range m {
				_, isText := value.(string)
				valid = valid && isText
			}
			kind, _ := m["kind"].(string)
			name, _ := m["name"].(string)
			group, grouped := m["group"].(string)
			if version, _ := m["apiVersion"].(string); !grouped {
				valid = valid && strings.Count(version, "/") < 2
				group, _, grouped = strings.Cut(version, "/")
				if !grouped {
					group = ""
				}
			}
			valid = valid && kind != "" && name != ""
			bad = bad || !valid
			if valid && kind == "Deployment" && slices.Contains([]string{"", "apps", "extensions"}, group) {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		assert.Equal(rt, slices.Compact(want), got)
		assert.Equal(rt, bad, err != nil)
	})
}

func FuzzAnyObjectHasTargetsOrAnError(f *testing.F) {
	for _, seed := range []string{`{}`, `{"spec":{"scaleTargetRef":{"name":"web"}}}`, `{"spec":{"dryRun":"yes"}}`, `{"metadata":{"deletionTimestamp":5}}`} {
		f.Add(seed)
	}
	programs := []*expr.Program{program(f, "ScaledObject"), program(f, "WatermarkPodAutoscaler")}
	f.Fuzz(func(t *testing.T, content string) {
		obj := map[string]any{}
		if json.Unmarshal([]byte(content), &obj) != nil {
			t.Skip()
		}
		for _, p := range programs {
			names, err := deploymentsOf(t.Context(), p, &unstructured.Unstructured{Object: obj})
			if err != nil {
				assert.Empty(t, names, "each of these has one target at most")
			}
			for _, name := range names {
				assert.NotEmpty(t, name)
				assert.LessOrEqual(t, len(name), 253)
			}
		}
	})
}

func TestTheDeploymentThatAnHPAScales(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		ref     autoscalingv2.CrossVersionObjectReference
		deleted *metav1.Time
		want    []string
	}{
		"apps":                 {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, nil, []string{"web"}},
		"an old version":       {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "web"}, nil, []string{"web"}},
		"extensions":           {autoscalingv2.CrossVersionObjectReference{APIVersion: "extensions/v1beta1", Kind: "Deployment", Name: "web"}, nil, []string{"web"}},
		"no group":             {autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: "Deployment", Name: "web"}, nil, []string{"web"}},
		"no apiVersion":        {autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}, nil, []string{"web"}},
		"another group":        {autoscalingv2.CrossVersionObjectReference{APIVersion: "example.com/v1", Kind: "Deployment", Name: "web"}, nil, nil},
		"a broken apiVersion":  {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1/x", Kind: "Deployment", Name: "web"}, nil, nil},
		"a StatefulSet":        {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}, nil, nil},
		"one that is deleted":  {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, &now, nil},
		"a name with a prefix": {autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "my-web"}, nil, []string{"my-web"}},
	} {
		t.Run(name, func(t *testing.T) {
			hpa := &autoscalingv2.HorizontalPodAutoscaler{}
			hpa.Spec.ScaleTargetRef, hpa.DeletionTimestamp = tc.ref, tc.deleted
			assert.Equal(t, tc.want, IndexHPA(hpa))
		})
	}
}
