package webhook

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

func TestAFirstClaimIsOneWriteAndNoRead(t *testing.T) {
	for name, policy := range map[string]v1alpha1.ClaimPolicy{"rejecting": v1alpha1.ClaimReject, "waiting": v1alpha1.ClaimWait} {
		t.Run(name, func(t *testing.T) {
			var n calls
			known := []client.Object{profile(), builders.Deployment("ns", "web", 2)}
			live := counted(store(t, known...), &n)
			v := validator(t, store(t, known...), live)

			_, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "web").UID("new").ClaimPolicy(policy).Obj())

			require.NoError(t, err)
			assert.Equal(t, calls{writes: 1}, n)
			assert.Equal(t, "new", owner(t, live))
		})
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	var n calls
	live := counted(store(t, profile()), &n)
	v := validator(t, store(t, profile()), live)

	_, err := v.ValidateCreate(request(t, dryRun), builders.MakeAutoScaler("ns", "web").UID("new").Obj())

	require.NoError(t, err)
	assert.Zero(t, n.writes)
}

// contender is a conflict over the Deployment "web".
type contender struct {
	stored []client.Object
	// refusal and hint are what a rejecting, and a waiting AutoScaler is told.
	refusal, hint string
}

func contenders() map[string]contender {
	return map[string]contender{
		"a holder": {
			[]client.Object{stored("first", 60), bindingOf("first")},
			`held by AutoScaler "first"`, `AutoScaler "first" holds the replica count; this one stands by`,
		},
		"one that is first in line for a free binding": {
			[]client.Object{stored("second", 50), stored("first", 60), freeBinding("gone")},
			`AutoScaler "first" was created earlier`, `AutoScaler "first" takes the replica count next; this one stands by`,
		},
		"one that is first in line for what a dead owner left": {
			[]client.Object{stored("first", 60), bindingOf("gone")},
			`AutoScaler "first" was created earlier`, `AutoScaler "first" takes the replica count next; this one stands by`,
		},
		"one that is first in line where there is no binding": {
			[]client.Object{stored("first", 60)},
			`AutoScaler "first" was created earlier`, `AutoScaler "first" takes the replica count next; this one stands by`,
		},
		"a holder with others in line": {
			[]client.Object{stored("second", 60), stored("first", 50), bindingOf("first")},
			`held by AutoScaler "first"`, `AutoScaler "first" holds the replica count`,
		},
		"an HPA": {
			[]client.Object{builders.HPA("ns", "old", "web")},
			`HorizontalPodAutoscaler "old" already scales Deployment "web"; delete it first (kubectl -n ns delete hpa old), or set dryRun to compare beside it, or set claimPolicy: Wait here to take over when it is gone`,
			`HorizontalPodAutoscaler "old" scales the Deployment; this AutoScaler stands by`,
		},
	}
}

func TestAConflictRefusesOneThatRejectsAndLetsOneThatWaitsStandBy(t *testing.T) {
	for name, c := range contenders() {
		t.Run(name, func(t *testing.T) {
			objects := with(c.stored, profile(), builders.Deployment("ns", "web", 2))
			for _, when := range []struct {
				name    string
				request []func(*admissionv1.AdmissionRequest)
			}{{"a create", nil}, {"a dry run", []func(*admissionv1.AdmissionRequest){dryRun}}} {
				var n calls
				live := counted(store(t, objects...), &n)
				v := validator(t, store(t, objects...), live)
				a := builders.MakeAutoScaler("ns", "new").UID("new").Obj()
				a.CreationTimestamp = metav1.NewTime(now)

				warnings, err := v.ValidateCreate(request(t, when.request...), a)
				require.True(t, apierrors.IsInvalid(err), "%s: %v", when.name, err)
				assert.ErrorContains(t, err, "spec.targetRef.name")
				assert.ErrorContains(t, err, c.refusal)
				assert.Empty(t, warnings)

				v.Defaults.ClaimPolicy = v1alpha1.ClaimWait
				warnings, err = v.ValidateCreate(request(t, when.request...), a)
				require.NoError(t, err)
				require.NotEmpty(t, warnings)
				assert.Contains(t, warnings[0], c.hint)
				assert.Zero(t, n.writes, "who stands by claims nothing")
			}
		})
	}
}

func TestTheAPIServerIsAskedOnlyForWhoMayBeAheadInLine(t *testing.T) {
	reads := func(more ...client.Object) int {
		objects := with(more, profile(), builders.Deployment("ns", "web", 2), bindingOf("first"), stored("first", 60))
		var n calls
		v := validator(t, store(t, objects...), counted(store(t, objects...), &n))
		a := builders.MakeAutoScaler("ns", "new").UID("new").Obj()
		a.CreationTimestamp = metav1.NewTime(now)
		_, err := v.ValidateCreate(request(t), a)
		require.ErrorContains(t, err, `held by AutoScaler "first"`)
		return n.reads
	}
	alone := reads()
	var crowd []client.Object
	for i := range 50 {
		crowd = append(crowd, shadow(fmt.Sprintf("shadow-%d", i)), stored(fmt.Sprintf("waiter-%d", i), 30))
	}
	assert.Equal(t, alone, reads(crowd...), "neither dry runs nor those behind the first one")
}

func TestTheLineIsAskedUntilSomebodyIsFoundInIt(t *testing.T) {
	cached := []client.Object{profile(), stored("gone", 60), stored("shadow", 50), stored("second", 40), stored("third", 30)}
	live := store(t, profile(), shadow("shadow"), stored("second", 40), stored("third", 30))
	v := validator(t, store(t, cached...), live)
	a := builders.MakeAutoScaler("ns", "new").UID("new").Obj()
	a.CreationTimestamp = metav1.NewTime(now)

	_, err := v.ValidateCreate(request(t), a)

	assert.ErrorContains(t, err, `AutoScaler "second" was created earlier`)
}

func TestWhoDoesNotAskIsNotAheadInLine(t *testing.T) {
	going, invalid, elsewhere := stored("going", 60), stored("invalid", 60), stored("elsewhere", 60)
	going.Finalizers = []string{"example.com/wait"}
	going.DeletionTimestamp = &metav1.Time{Time: now}
	invalid.Spec.MaxReplicas = 5000
	elsewhere.Spec.TargetRef.Name = "api"
	objects := []client.Object{profile(), going, invalid, elsewhere, shadow("shadow")}
	live := store(t, objects...)
	v := validator(t, store(t, objects...), live)

	_, err := v.ValidateCreate(request(t), builders.MakeAutoScaler("ns", "new").UID("new").Obj())

	require.NoError(t, err)
	assert.Equal(t, "new", owner(t, live))
}

func TestAnUpdateClaimsOnlyWhatItDidNotAskForBefore(t *testing.T) {
	held := []client.Object{profile(), stored("first", 60), bindingOf("first"), builders.HPA("ns", "old", "web")}
	for name, tc := range map[string]struct {
		change func(old, a *v1alpha1.AutoScaler)
		want   []string
	}{
		"an edit of one that lost": {func(_, a *v1alpha1.AutoScaler) { a.Spec.MinReplicas = 3 }, nil},
		"a dry run switched off": {
			func(old, _ *v1alpha1.AutoScaler) { old.Spec.DryRun = true }, []string{`HorizontalPodAutoscaler "old"`, `held by AutoScaler "first"`},
		},
		"a new target": {
			func(old, _ *v1alpha1.AutoScaler) { old.Spec.TargetRef.Name = "api" }, []string{`HorizontalPodAutoscaler "old"`, `held by AutoScaler "first"`},
		},
		"a dry run of one that lost": {func(_, a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var n calls
			v := validator(t, store(t, held...), counted(store(t, held...), &n))
			old := stored("second", 30)
			a := old.DeepCopy()
			tc.change(old, a)

			_, err := v.ValidateUpdate(request(t), old, a)

			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.Equal(t, len(tc.want) == 0, err == nil, "%v", err)
			assert.Zero(t, n.writes)
		})
	}
}

func TestAllErrorsComeInOneOrder(t *testing.T) {
	objects := []client.Object{builders.HPA("ns", "old", "web"), stored("first", 60), bindingOf("first")}
	a := builders.MakeAutoScaler("ns", "new").UID("new").Bounds(2, 5000).Metric("load", "missing", "0").Obj()
	var first string
	for range 20 {
		v := validator(t, store(t, objects...), store(t, objects...))
		_, err := v.ValidateCreate(request(t), a)
		var status apierrors.APIStatus
		require.ErrorAs(t, err, &status)
		var fields []string
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
		require.Equal(t, []string{
			"spec.maxReplicas", "spec.metrics[0].targetPerReplica", "spec.metrics[0].metricProfileRef",
			"spec.targetRef.name", "spec.targetRef.name",
		}, fields)
		if first == "" {
			first = err.Error()
		}
		require.Equal(t, first, err.Error())
	}
}
