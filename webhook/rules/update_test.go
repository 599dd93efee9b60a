package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/webhook/rules"
)

func TestAnUpdateIsDeniedOnlyForWhatItChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		expression string
		change     func(*v1alpha1.AutoScaler)
		denied     bool
	}{
		"a change of one that is too large":        {"object.spec.maxReplicas <= 10", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, false},
		"enlarging one that is too large":          {"object.spec.maxReplicas <= 10", func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas++ }, true},
		"changing a field of a list that is read":  {"object.spec.metrics.all(m, has(m.behavior))", func(a *v1alpha1.AutoScaler) { a.Spec.Metrics[0].MaxAgeSeconds++ }, true},
		"changing a label that is read":            {"object.metadata.?labels[?'team'].orValue('') == ''", func(a *v1alpha1.AutoScaler) { a.Labels["team"] = "b" }, true},
		"removing a label that is read":            {"object.metadata.?labels[?'team'].orValue('a') == ''", func(a *v1alpha1.AutoScaler) { a.Labels = nil }, true},
		"changing another label":                   {"object.metadata.?labels[?'team'].orValue('') == ''", func(a *v1alpha1.AutoScaler) { a.Labels["tier"] = "b"; a.Spec.MinReplicas++ }, false},
		"setting a field whose presence is read":   {"!has(object.spec.claimPolicy) && false", func(a *v1alpha1.AutoScaler) { a.Spec.ClaimPolicy = "Wait" }, true},
		"one that reads the whole object":          {"object == null", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, true},
		"one about the others":                     {"others.size() < 1", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, false},
		"one about the change":                     {"object.spec.maxReplicas <= 10 && oldObject == null", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, true},
		"one about who asks":                       {"'admins' in request.userInfo.groups", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, true},
		"one that errs on what is not changed":     {"object.spec.behavior.scaleUpMaxStep < 10", func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, false},
		"one that errs on what is changed as well": {"object.spec.maxReplicas / 0 == 1", func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas++ }, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.OldObject = in.Object.DeepCopy()
			in.Request.Operation = "UPDATE"
			tc.change(in.Object)
			errs, warnings := newSet(t, deny(tc.expression)).Check(t.Context(), in)
			if tc.denied {
				assert.Len(t, errs, 1)
				assert.Empty(t, warnings)
				return
			}
			assert.Empty(t, errs)
			require.Len(t, warnings, 1)
			assert.Contains(t, warnings[0], "it was so before")
		})
	}
}

func TestWhatAnUpdateIsForgivenWasWrongBefore(t *testing.T) {
	expressions := []string{
		"object.spec.maxReplicas <= 10",
		"object.spec.maxReplicas - object.spec.minReplicas < 5 && !has(object.spec.paused)",
		"object.spec.metrics.all(m, m.maxAgeSeconds < 60)",
		"object.spec.?behavior.?scaleDownMaxStep.orValue(100) < 10",
		"object.metadata.?labels[?'team'].orValue('x') == 'a' || has(object.spec.claimPolicy)",
		"object.spec.behavior.scaleDownMaxStep > 1",
		"object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() < 30",
	}
	autoscaler := rapid.Custom(func(r *rapid.T) *v1alpha1.AutoScaler {
		b := builders.MakeAutoScaler("shop", "web").Bounds(rapid.Int32Range(1, 10).Draw(r, "min"), rapid.SampledFrom([]int32{10, 11, 20}).Draw(r, "max"))
		if rapid.Bool().Draw(r, "steps") {
			b.Steps(1, rapid.Int32Range(1, 20).Draw(r, "down"))
		}
		a := b.Obj()
		a.Spec.Metrics[0].MaxAgeSeconds = rapid.SampledFrom([]int32{30, 60}).Draw(r, "age")
		a.Spec.Paused = rapid.Bool().Draw(r, "paused")
		a.Spec.ClaimPolicy = rapid.SampledFrom([]v1alpha1.ClaimPolicy{"", "Wait"}).Draw(r, "policy")
		if team := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "team"); team != "" {
			a.Labels = map[string]string{"team": team}
		}
		return a
	})
	sets := map[string]*rules.Set{}
	for _, e := range expressions {
		sets[e] = newSet(t, deny(e))
	}
	rapid.Check(t, func(r *rapid.T) {
		in := input()
		set := sets[rapid.SampledFrom(expressions).Draw(r, "rule")]
		in.OldObject, in.Object = autoscaler.Draw(r, "old"), autoscaler.Draw(r, "new")
		errs, forgiven := set.Check(t.Context(), in)
		before := in
		before.Object, before.OldObject = in.OldObject, nil
		wrongBefore, _ := set.Check(t.Context(), before)
		after := in
		after.OldObject = nil
		wrongAfter, _ := set.Check(t.Context(), after)
		assert.Equal(r, len(wrongAfter), len(errs)+len(forgiven), "what is wrong is told either way")
		if len(forgiven) > 0 {
			assert.NotEmpty(r, wrongBefore)
		}
	})
}

// updated is the input of an update that makes new of old.
func updated(old, now func(*v1alpha1.AutoScaler)) rules.Input {
	in := input()
	old(in.Object)
	in.OldObject = in.Object.DeepCopy()
	now(in.Object)
	in.Request.Operation = "UPDATE"
	return in
}

func TestAnUpdateThatAsksForADeploymentAnewIsForgivenNothing(t *testing.T) {
	nothing := func(*v1alpha1.AutoScaler) {}
	dryRun := func(on bool) func(*v1alpha1.AutoScaler) {
		return func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = on }
	}
	moved := func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "api" }
	for name, tc := range map[string]struct {
		old, now func(*v1alpha1.AutoScaler)
		denied   bool
	}{
		"a dry run that is switched off":           {dryRun(true), dryRun(false), true},
		"a new target":                             {nothing, moved, true},
		"a new target of one that is paused":       {func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }, moved, true},
		"a new target of a dry run":                {dryRun(true), moved, false},
		"an edit of one that is live":              {nothing, func(a *v1alpha1.AutoScaler) { a.Spec.PollIntervalSeconds++ }, false},
		"an edit of a dry run":                     {dryRun(true), func(a *v1alpha1.AutoScaler) { a.Spec.PollIntervalSeconds++ }, false},
		"one that is switched off and moved":       {nothing, func(a *v1alpha1.AutoScaler) { moved(a); a.Spec.DryRun = true }, false},
		"one that is no longer paused, as it was":  {func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }, func(a *v1alpha1.AutoScaler) { a.Spec.Paused = false }, false},
		"a dry run that is switched off and moved": {dryRun(true), func(a *v1alpha1.AutoScaler) { moved(a); a.Spec.DryRun = false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := updated(tc.old, tc.now)
			for _, expression := range []string{
				"object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() <= 25",
				"object.spec.maxReplicas <= 10",
			} {
				errs, warnings := newSet(t, deny(expression)).Check(t.Context(), in)
				assert.Equal(t, tc.denied, len(errs) > 0, "%s: %v", expression, errs)
				assert.Equal(t, !tc.denied, len(warnings) > 0, "%s: %v", expression, warnings)
			}
		})
	}
}

func TestWhoOnlyPausesOrMakesADryRunIsNeverDenied(t *testing.T) {
	pause := func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true }
	shadow := func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }
	until := func(hour int) func(*v1alpha1.AutoScaler) {
		return func(a *v1alpha1.AutoScaler) {
			pause(a)
			a.Spec.PausedUntil = &metav1.Time{Time: time.Date(2026, 11, 30, hour, 0, 0, 0, time.UTC)}
		}
	}
	expressions := map[string]string{
		"about who asks":           "'platform-team' in request.userInfo.groups",
		"about the change":         "oldObject == null || object.spec == oldObject.spec",
		"about the whole object":   "object == null",
		"about pausing itself":     "!has(object.spec.paused) && !has(object.spec.dryRun)",
		"that cannot be evaluated": "object.metadata.labels['nobody'] == ''",
	}
	for name, tc := range map[string]struct {
		old, now func(*v1alpha1.AutoScaler)
		passes   bool
	}{
		"pausing":                           {func(*v1alpha1.AutoScaler) {}, pause, true},
		"a dry run":                         {func(*v1alpha1.AutoScaler) {}, shadow, true},
		"both at once":                      {func(*v1alpha1.AutoScaler) {}, func(a *v1alpha1.AutoScaler) { pause(a); shadow(a) }, true},
		"pausing with other metadata":       {func(*v1alpha1.AutoScaler) {}, func(a *v1alpha1.AutoScaler) { pause(a); a.Labels = nil }, true},
		"pausing what was stored bare":      {func(a *v1alpha1.AutoScaler) { a.Spec.PollIntervalSeconds = 0 }, func(a *v1alpha1.AutoScaler) { pause(a); a.Spec.PollIntervalSeconds = 15 }, true},
		"pausing for a time and a reason":   {func(*v1alpha1.AutoScaler) {}, func(a *v1alpha1.AutoScaler) { until(12)(a); a.Spec.PauseReason = "a migration" }, true},
		"pausing longer":                    {until(12), until(13), true},
		"pausing without an end":            {until(12), func(a *v1alpha1.AutoScaler) { a.Spec.PausedUntil = nil }, true},
		"pausing shorter":                   {until(12), until(11), false},
		"an end of a pause without one":     {pause, until(12), false},
		"another reason for a pause":        {pause, func(a *v1alpha1.AutoScaler) { a.Spec.PauseReason = "a migration" }, false},
		"an end where nothing is paused":    {func(*v1alpha1.AutoScaler) {}, func(a *v1alpha1.AutoScaler) { until(12)(a); a.Spec.Paused = false }, false},
		"pausing and one more change":       {func(*v1alpha1.AutoScaler) {}, func(a *v1alpha1.AutoScaler) { pause(a); a.Spec.MaxReplicas++ }, false},
		"pausing what was a dry run":        {shadow, func(a *v1alpha1.AutoScaler) { pause(a); a.Spec.DryRun = false }, false},
		"resuming, and a dry run":           {pause, func(a *v1alpha1.AutoScaler) { shadow(a); a.Spec.Paused = false }, false},
		"another change of one that paused": {pause, func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas++ }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if !tc.passes {
				errs, _ := newSet(t, deny("request.operation != 'UPDATE'")).Check(t.Context(), updated(tc.old, tc.now))
				assert.Len(t, errs, 1)
				return
			}
			for what, expression := range expressions {
				errs, warnings := newSet(t, deny(expression)).Check(t.Context(), updated(tc.old, tc.now))
				assert.Empty(t, errs, what)
				require.Len(t, warnings, 1, what)
				assert.Contains(t, warnings[0], "pausing and dry runs are never refused", what)
			}
		})
	}
}

func TestWhoIsCreatedPausedIsDeniedAsAnyOther(t *testing.T) {
	in := input()
	in.Object.Spec.Paused = true
	assert.False(t, allowed(t, "object.spec.maxReplicas <= 10", in))
}
