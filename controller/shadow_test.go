package controller

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// dryRun gives an evaluation of a dry run whose Deployment "d" has 9 replicas.
func dryRun() *evaluation {
	e := evaluationAt(time.Minute)
	e.autoscaler.Spec.DryRun = true
	e.target.uid, e.target.replicas = "d", 9
	e.policy = scaling.Policy{PollInterval: quarter}
	return e
}

func TestADryRunBeginsWithTheRealCountAndGoesOnFromItsOwn(t *testing.T) {
	e := dryRun()
	assert.Equal(t, int32(9), e.current())
	e.decision.Replicas = 7
	e.simulate()
	assert.Equal(t, int32(7), e.current())
	assert.Equal(t, &v1alpha1.Shadow{TargetUID: "d", Replicas: 7, Divergence: -2, Time: metav1.NewTime(noon)}, e.autoscaler.Status.Shadow)
	assert.Equal(t, noon.UnixMicro(), e.record.memory.LastDown, "recorded as a write would be")

	e.now = noon.Add(time.Hour)
	e.simulate()
	assert.Equal(t, metav1.NewTime(noon), e.autoscaler.Status.Shadow.Time, "nothing changed since")
}

func TestADryRunBeginsAnew(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		want   int32
	}{
		"with another Deployment":         {func(e *evaluation) { e.target.uid = "new" }, 9},
		"with one that was suspended":     {func(e *evaluation) { e.target.replicas = 0; e.current(); e.target.replicas = 3 }, 3},
		"not with another count of its":   {func(e *evaluation) { e.target.replicas = 20 }, 7},
		"and is suspended with its own":   {func(e *evaluation) { e.target.replicas = 0 }, 0},
		"and not, whatever it would be":   {func(e *evaluation) { e.decision.Replicas = 1; e.paused = true; e.simulate() }, 7},
		"but not after it has been ended": {func(e *evaluation) { e.autoscaler.Spec.DryRun = false }, 9},
	} {
		t.Run(name, func(t *testing.T) {
			e := dryRun()
			e.record.shadow = &count{target: "d", replicas: 7, at: noon}
			tc.change(e)
			assert.Equal(t, tc.want, e.current())
		})
	}
}

func TestADryRunThatEndsLeavesOnlyWhatWasReallyWritten(t *testing.T) {
	at := func(minutes int) int64 { return noon.Add(time.Duration(minutes) * time.Minute).UnixMicro() }
	simulated := scaling.Memory{
		Target: "d", LastDown: at(30), Up: scaling.Step{At: at(31), Base: 4}, Down: scaling.Step{At: at(30), Base: 9},
		Ups: [scaling.MaxUps]scaling.Up{{At: at(5), Added: 2}, {At: at(31), Added: 3}},
	}
	simulated.Windows[0] = scaling.Window{Key: 7, Down: scaling.History{Since: at(1)}}
	for name, tc := range map[string]struct {
		last time.Time
		want scaling.Memory
	}{
		"nothing was ever written": {time.Time{}, scaling.Memory{
			Target: "d", Windows: simulated.Windows, Down: scaling.Step{Base: math.MaxInt32},
		}},
		"written before it": {noon.Add(10 * time.Minute), scaling.Memory{
			Target: "d", Windows: simulated.Windows, LastDown: at(10), Up: scaling.Step{At: at(10)},
			Down: scaling.Step{At: at(10), Base: math.MaxInt32}, Ups: [scaling.MaxUps]scaling.Up{{At: at(5), Added: 2}},
		}},
		"all of it was written": {noon.Add(time.Hour), simulated},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, written(simulated, tc.last)) })
	}
}

func TestTheLastRealWriteIsKnownFromTheProcessOrElseFromTheStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(e *evaluation)
		want   time.Time
	}{
		"never": {func(*evaluation) {}, time.Time{}},
		"by the status, which has whole seconds": {func(e *evaluation) {
			e.before.Status.TargetUID, e.before.Status.LastSuccessfulScaleTime = "d", new(metav1.NewTime(noon))
		}, noon.Add(time.Second)},
		"of another Deployment": {func(e *evaluation) {
			e.before.Status.TargetUID, e.before.Status.LastSuccessfulScaleTime = "old", new(metav1.NewTime(noon))
		}, time.Time{}},
		"by this process": {func(e *evaluation) {
			e.record.applied = &count{target: "d", at: noon.Add(time.Millisecond)}
		}, noon.Add(time.Millisecond)},
	} {
		t.Run(name, func(t *testing.T) {
			e := dryRun()
			tc.change(e)
			assert.Equal(t, tc.want, e.record.lastWrite(e))
		})
	}
}
