package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/webhook/rules"
)

func update(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }

// platformRule is a set of one rule that denies.
func platformRule(t *testing.T, expression string, defaults v1alpha1.Defaults) *rules.Set {
	t.Helper()
	set, err := rules.New([]rules.Config{
		{Name: "budget", Action: rules.Deny, Field: "spec.maxReplicas", Message: "the namespace may have 25 replicas", Expression: expression},
	}, defaults)
	require.NoError(t, err)
	return set
}

func TestRulesOfThePlatformDenyAndWarnAndTheOthersAreGatheredOnlyForThem(t *testing.T) {
	set, err := rules.New([]rules.Config{
		{Name: "budget", Action: rules.Deny, Field: "spec.maxReplicas", Message: "the namespace may have 25 replicas",
			Expression: "object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() <= 25"},
		{Name: "window", Action: rules.Warn, Message: "a window of 60 s is advised",
			Expression: "object.spec.behavior.scaleDownStabilizationSeconds >= 60"},
	}, v1alpha1.Defaults{})
	require.NoError(t, err)
	other := builders.MakeAutoScaler("ns", "api").UID("api").Target("api").Obj()
	objects := []client.Object{profile(), deployment(2), other}
	live := store(t, objects...)
	v := validator(t, store(t, objects...), live)
	v.Rules = set

	warnings, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "web").UID("new").Obj())
	assert.ErrorContains(t, err, "spec.maxReplicas")
	assert.ErrorContains(t, err, "the namespace may have 25 replicas")
	assert.Len(t, warnings, 1)
	assert.Empty(t, owner(t, live), "what a rule denies claims nothing")

	warnings, err = v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "web").UID("new").Bounds(1, 5).Obj())
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "a window of 60 s is advised")
	assert.Equal(t, "new", owner(t, live))
}

func TestSwitchingADryRunOffDoesNotPassABudget(t *testing.T) {
	other := builders.MakeAutoScaler("ns", "api").UID("api").Target("api").Obj()
	old := shadow("web")
	objects := []client.Object{profile(), other, old}
	live := store(t, objects...)
	v := validator(t, store(t, objects...), live)
	v.Rules = platformRule(t, "object.spec.maxReplicas + others.map(o, o.spec.maxReplicas).sum() <= 25", v1alpha1.Defaults{})
	a := old.DeepCopy()
	a.Spec.DryRun = false

	_, err := v.ValidateUpdate(request(t, update), old, a)

	assert.ErrorContains(t, err, "the namespace may have 25 replicas")
	assert.Empty(t, owner(t, live))
}

func TestARuleAboutWhoAsksStopsNobodyFromPausing(t *testing.T) {
	old := stored("web", 60)
	objects := []client.Object{profile(), deployment(2), old}
	v := validator(t, store(t, objects...), store(t, objects...))
	v.Rules = platformRule(t, "'platform-team' in request.userInfo.groups", v1alpha1.Defaults{})
	paused, larger := old.DeepCopy(), old.DeepCopy()
	paused.Spec.Paused = true
	larger.Spec.MaxReplicas++

	warnings, err := v.ValidateUpdate(request(t, update), old, paused)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "the namespace may have 25 replicas (pausing and dry runs are never refused)")

	_, err = v.ValidateUpdate(request(t, update), old, larger)
	assert.ErrorContains(t, err, "the namespace may have 25 replicas")
}

func TestOthersThatWereStoredBareHaveThePlatformsDefaultsInRules(t *testing.T) {
	other := builders.MakeAutoScaler("ns", "api").UID("api").Target("api").Poll(0).Obj()
	objects := []client.Object{profile(), other}
	v := validator(t, store(t, objects...), store(t, objects...))
	v.Rules = platformRule(t, "object.spec.pollIntervalSeconds >= 15 && others.all(o, o.spec.pollIntervalSeconds >= 15)", v.Defaults)

	_, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "web").UID("new").Poll(0).Obj())

	assert.NoError(t, err)
}

func TestWhatIsWrongMayStayButMakesNoNewClaim(t *testing.T) {
	large := func(a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 5000 }
	for name, tc := range map[string]struct {
		old, now func(*v1alpha1.AutoScaler)
		refused  bool
	}{
		"an edit": {large, func(a *v1alpha1.AutoScaler) { a.Spec.MinReplicas++ }, false},
		"a dry run switched off": {
			func(a *v1alpha1.AutoScaler) { large(a); a.Spec.DryRun = true }, func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = false }, true,
		},
		"a new target": {
			func(a *v1alpha1.AutoScaler) { large(a); a.Spec.TargetRef.Name = "api" }, func(a *v1alpha1.AutoScaler) { a.Spec.TargetRef.Name = "web" }, true,
		},
		"a dry run switched off and mended": {
			func(a *v1alpha1.AutoScaler) { large(a); a.Spec.DryRun = true },
			func(a *v1alpha1.AutoScaler) { a.Spec.DryRun, a.Spec.MaxReplicas = false, 10 }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := store(t, profile())
			v := validator(t, store(t, profile()), live)
			old := stored("web", 60)
			tc.old(old)
			a := old.DeepCopy()
			tc.now(a)

			_, err := v.ValidateUpdate(request(t, update), old, a)

			assert.Equal(t, tc.refused, err != nil, "%v", err)
			if tc.refused {
				assert.ErrorContains(t, err, "spec.maxReplicas")
				assert.Empty(t, owner(t, live))
			}
		})
	}
}
