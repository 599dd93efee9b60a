package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// decided is a stored decision for so many replicas, by metrics that are valid.
func decided(result int32, demands ...int32) *v1alpha1.DecisionTrace {
	t := &v1alpha1.DecisionTrace{Result: result}
	for _, n := range demands {
		t.Metrics = append(t.Metrics, v1alpha1.MetricTrace{Validity: "Valid", Bounded: n})
	}
	return t
}

func TestAStoredWindowGoesOnWhereAScaleDownWasPending(t *testing.T) {
	partial := decided(10, 3, 5)
	partial.Metrics[1].Validity = "ScaleUpOnly"
	for name, tc := range map[string]struct {
		decision *v1alpha1.DecisionTrace
		want     bool
	}{
		"all metrics ask for less":                   {decided(10, 3, 9), true},
		"one asks for the count":                     {decided(10, 3, 10), false},
		"one asks for more, and a limit cuts it":     {decided(10, 3, 14), false},
		"one was not fully valid":                    {partial, false},
		"it says nothing of metrics":                 {decided(10), false},
		"nothing is known of what was decided":       {nil, false},
		"the last step down has come to the demand":  {decided(3, 3), false},
		"a step down that has yet to come so far":    {decided(6, 3), true},
		"suspended: nothing is asked of a decision":  {decided(0, 0), false},
		"below minReplicas, where nothing is pended": {decided(2, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewMicroTime(noon)
			a := &v1alpha1.AutoScaler{Status: v1alpha1.AutoScalerStatus{
				LastDecision: tc.decision,
				Memory: &v1alpha1.DecisionMemory{
					TargetUID: "d", ObservedTime: at, LastScaleDownTime: &at,
					Windows: []v1alpha1.WindowMemory{{
						Key: "1", Since: at, Buckets: []v1alpha1.BucketMemory{{Time: at, Replicas: 3}},
					}},
				},
			}}
			m := new(records{}).of(a).memory
			assert.Equal(t, tc.want, m.Windows[0].Down.Since != 0)
			assert.Equal(t, noon.UnixMicro(), m.LastDown, "the interval is not concerned")
		})
	}
}

func TestAWindowThatWasStoredWhileNothingMovedIsNotTrusted(t *testing.T) {
	frozen := decided(10, 3, 9)
	frozen.Freeze = "ScaleDown"
	paused := []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonPaused}}
	for name, tc := range map[string]struct {
		decision   *v1alpha1.DecisionTrace
		conditions []metav1.Condition
		want       bool
	}{
		"it could move": {decided(10, 3, 9), nil, true},
		"paused":        {decided(10, 3, 9), paused, false},
		"frozen":        {frozen, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewMicroTime(noon)
			a := &v1alpha1.AutoScaler{Status: v1alpha1.AutoScalerStatus{
				Conditions: tc.conditions, LastDecision: tc.decision,
				Memory: &v1alpha1.DecisionMemory{TargetUID: "d", ObservedTime: at, Windows: []v1alpha1.WindowMemory{{
					Key: "1", Since: at, Buckets: []v1alpha1.BucketMemory{{Time: at, Replicas: 3}},
				}}},
			}}

			m := new(records{}).of(a).memory

			assert.Equal(t, tc.want, m.Windows[0].Down.Since != 0)
		})
	}
}

func TestAStoredWindowOfTheScaleUpGoesOnForAMetricThatHadOnePending(t *testing.T) {
	for name, tc := range map[string]struct {
		decision      *v1alpha1.DecisionTrace
		first, second bool
	}{
		"it asks for more, and the other for less": {decided(10, 14, 3), true, false},
		"the other way round":                      {decided(10, 3, 14), false, true},
		"both ask for more":                        {decided(10, 11, 14), true, true},
		"it asks for the count":                    {decided(10, 10, 3), false, false},
		"it has failed":                            {decided(10, 0, 14), false, true},
		"one was added since":                      {decided(10, 14), true, false},
		"nothing is known of what was decided":     {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewMicroTime(noon)
			rises := v1alpha1.WindowMemory{UpSince: &at, UpBuckets: []v1alpha1.BucketMemory{{Time: at, Replicas: 3}}}
			first, second := rises, rises
			first.Key, second.Key = "1", "2"
			a := &v1alpha1.AutoScaler{Status: v1alpha1.AutoScalerStatus{
				LastDecision: tc.decision,
				Memory:       &v1alpha1.DecisionMemory{TargetUID: "d", ObservedTime: at, Windows: []v1alpha1.WindowMemory{first, second}},
			}}
			m := new(records{}).of(a).memory
			assert.Equal(t, tc.first, m.Windows[0].Up.Since != 0)
			assert.Equal(t, tc.second, m.Windows[1].Up.Since != 0)
		})
	}
}

func TestThatNoScaleUpIsPendingAnyMoreIsWrittenAtOnceWhereItHasAWindow(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is *v1alpha1.DecisionTrace
		window  time.Duration
		want    bool
	}{
		"it pends no more":            {decided(4, 9, 4), decided(4, 4, 4), time.Minute, true},
		"another pends in its place":  {decided(4, 9, 4), decided(4, 4, 9), time.Minute, true},
		"it begins to pend":           {decided(4, 4, 4), decided(4, 9, 4), time.Minute, false},
		"it pends all the same":       {decided(4, 9, 4), decided(4, 8, 4), time.Minute, false},
		"there is no window to store": {decided(4, 9, 4), decided(4, 4, 4), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(15 * time.Second)
			e.policy.Metrics = []scaling.Metric{{Behavior: scaling.Behavior{UpStabilization: tc.window}}, {}}
			tc.was.Time = e.before.Status.LastDecision.Time
			tc.is.Time = metav1.NewTime(e.now)
			e.before.Status.LastDecision, e.autoscaler.Status.LastDecision = tc.was, tc.is
			assert.Equal(t, tc.want, e.worthWriting())
		})
	}
}

func TestThatNoScaleDownIsPendingAnyMoreIsWrittenAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		was, is *v1alpha1.DecisionTrace
		want    bool
	}{
		"it pends no more":      {decided(10, 3), decided(10, 10), true},
		"it begins to pend":     {decided(10, 10), decided(10, 3), false},
		"it pends all the same": {decided(10, 3), decided(10, 4), false},
	} {
		t.Run(name, func(t *testing.T) {
			e := evaluationAt(15 * time.Second)
			tc.was.Time = e.before.Status.LastDecision.Time
			tc.is.Time = metav1.NewTime(e.now)
			e.before.Status.LastDecision, e.autoscaler.Status.LastDecision = tc.was, tc.is
			assert.Equal(t, tc.want, e.worthWriting())
		})
	}
}

func TestAnAverageIsOverTheReplicasThatWereReadyWithIt(t *testing.T) {
	var rec record
	of := func(at time.Time) prometheus.Arrival { return prometheus.Arrival{Newest: at, Used: at} }
	see := func(uid types.UID, ready int32, at time.Time) int32 {
		return rec.sawReady(0, target{uid: uid, ready: ready}, of(at))
	}
	assert.EqualValues(t, 3, see("d", 3, noon))
	assert.EqualValues(t, 3, see("d", 5, noon), "woken by a pod that became Ready")
	assert.EqualValues(t, 7, rec.sawReady(1, target{uid: "d", ready: 7}, of(noon.Add(time.Second))), "another metric's answer")
	assert.EqualValues(t, 3, see("d", 7, noon))
	assert.EqualValues(t, 5, see("d", 5, noon.Add(time.Second)), "the next answer")
	assert.EqualValues(t, 1, see("another", 1, noon.Add(time.Second)))
}

func TestAnAverageThatIsUsedAgainIsOverTheReplicasOfItsOwnTime(t *testing.T) {
	var rec record
	see := func(ready int32, newest, used time.Time) int32 {
		return rec.sawReady(0, target{uid: "d", ready: ready}, prometheus.Arrival{Newest: newest, Used: used})
	}
	next := noon.Add(quarter)
	assert.EqualValues(t, 10, see(10, noon, noon))
	assert.EqualValues(t, 10, see(15, next, noon), "15 bring the average down, and that is not believed yet")
	assert.EqualValues(t, 15, see(20, next, next), "it is believed now: of 15")
}
