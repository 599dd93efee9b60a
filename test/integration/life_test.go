//go:build integration

package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

// whileScaling lets something happen before the nth call of an evaluation that scales
// from 12 to 16, for each n.
func whileScaling(t *testing.T, happens func(w *world), check func(w *world, calls []call, n int)) {
	t.Helper()
	begin := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t, byFour, 8, loadFrom{0, 1200}, loadFrom{2 * w15, 2000})
		w.until(2 * w15)
		require.Equal(t, int32(12), w.replicas())
		return w
	}
	calls := begin(t).nextCalls(t)
	for n, c := range calls {
		t.Run(fmt.Sprintf("before call %d, %s", n, c.name), func(t *testing.T) {
			w := begin(t)
			w.faults.disturb = func() { happens(w) }
			_, err := w.evaluate(n, disturbed)
			require.NoError(t, err, "a lost race is not an error of the operator")
			check(w, calls, n)
		})
	}
}

// nth is the number of the nth call of a name, which must be there.
func nth(t *testing.T, calls []call, name string, times int) int {
	t.Helper()
	for n, c := range calls {
		if c.name == name {
			times--
			if times == 0 {
				return n
			}
		}
	}
	require.Fail(t, "no such call", "%q in %v", name, calls)
	return 0
}

func TestAPauseAtAnyMomentOfAnEvaluation_HoldsFromTheLastLookOn(t *testing.T) {
	whileScaling(t, func(w *world) {
		w.edit(func(a *v1alpha1.AutoScaler) { a.Spec.Paused = true })
	}, func(w *world, calls []call, n int) {
		look := nth(w.T, calls, "get *v1alpha1.AutoScaler", 2)
		want := int32(16)
		if n <= look {
			want = 12
		}
		assert.Equal(w, want, w.replicas(), "nothing is written that a look before the write could keep back")
		w.advance(time.Second)
		w.until(w.elapsed() + time.Minute)
		assert.Equal(w, want, w.replicas(), "and nothing after")
	})
}

func TestADeploymentThatIsReplacedAtAnyMomentOfAnEvaluation_GetsNoCountOfTheOldOne(t *testing.T) {
	whileScaling(t, func(w *world) {
		d := builders.Deployment(w.namespace, "web", 12)
		require.NoError(w, w.client.Delete(w.ctx, d))
		require.NoError(w, w.client.Create(w.ctx, d))
	}, func(w *world, calls []call, n int) {
		// Before the first look at the Deployment it is the new one that is decided on.
		if n > nth(w.T, calls, "get *v1.Deployment", 1) {
			assert.Equal(w, int32(12), w.replicas())
		}
		w.advance(time.Second)
		w.until(w.elapsed() + time.Minute)
		assert.Equal(w, int32(20), w.replicas(), "what is decided for it is done")
	})
}

func TestADecisionOfAnEarlierGenerationIsDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(h *harness, a *v1alpha1.AutoScaler)
		want   int32
	}{
		"a lower cap":   {func(_ *harness, a *v1alpha1.AutoScaler) { a.Spec.MaxReplicas = 5 }, 5},
		"another load":  {func(_ *harness, a *v1alpha1.AutoScaler) { a.Spec.Metrics[0].TargetPerReplica = "300" }, 3},
		"a pause":       {func(_ *harness, a *v1alpha1.AutoScaler) { a.Spec.Paused = true }, 2},
		"a dry run":     {func(_ *harness, a *v1alpha1.AutoScaler) { a.Spec.DryRun = true }, 2},
		"a pause until": {func(h *harness, a *v1alpha1.AutoScaler) { pauseFor(h, a, time.Hour) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := bound(t)
			h.metrics.Value(900)
			h.advance(15 * time.Second)
			// Between the last look of the evaluation's own and that of the write.
			h.afterSample = func() { h.edit(func(a *v1alpha1.AutoScaler) { tc.change(h, a) }) }
			_, err := h.reconcile("web")
			require.NoError(t, err)
			assert.Zero(t, h.scaleWrites.Load())
			assert.Equal(t, int32(2), h.replicas(), "what was decided for an earlier spec is not done")

			h.advance(time.Second)
			h.poll()
			assert.Equal(t, tc.want, h.replicas(), "what the present one decides is")
		})
	}
}

func pauseFor(h *harness, a *v1alpha1.AutoScaler, d time.Duration) {
	a.Spec.Paused = true
	a.Spec.PausedUntil = new(metav1.NewTime(h.clock.Now().Add(d)))
}

func TestAnAnswerToTheScaleWriteThatIsLost_IsNotWrittenAgainAndCountsOnce(t *testing.T) {
	for name, err := range map[string]error{
		"a time-out":       errAnswerLost,
		"an inner error":   apierrors.NewInternalError(errors.New("etcd is slow")),
		"no answer":        errors.New("connection reset by peer"),
		"a false conflict": apierrors.NewConflict(schemaResource, "web", errors.New("its own write")),
	} {
		t.Run(name, func(t *testing.T) {
			h := aboutToScaleUp(t)
			_ = h.loseTheAnswer(6, err)

			a := h.poll()
			assert.Equal(t, int32(6), h.replicas(), "the step of this interval is used up")
			assert.Equal(t, int32(6), *a.Status.AppliedReplicas)
			assert.Nil(t, a.Status.Contention, "nobody else wrote")
			h.advance(15 * time.Second)
			h.poll()
			assert.Equal(t, int32(10), h.replicas())
		})
	}
}
