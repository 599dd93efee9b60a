package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

func owns(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestTheManagerOfReplicasIsWhoOwnsTheField(t *testing.T) {
	const replicas = `{"f:spec":{"f:replicas":{}}}`
	for _, tt := range []struct {
		name    string
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{"a write through scale names the subresource", []metav1.ManagedFieldsEntry{
			owns("kubectl-client-side-apply", "", `{"f:spec":{"f:template":{}}}`), owns("autoscale-operator", "scale", replicas),
		}, "autoscale-operator/scale"},
		{"the status' replicas are another field", []metav1.ManagedFieldsEntry{
			owns("kubectl", "", replicas), owns("kube-controller-manager", "status", `{"f:status":{"f:replicas":{}}}`),
		}, "kubectl"},
		{"two owners are both named, in order", []metav1.ManagedFieldsEntry{
			owns("z", "", replicas), owns("a", "", replicas),
		}, "a+z"},
		{"nobody may own it", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := replicasManager(tt.entries)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func deployment(replicas *int32, manager string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{owns(manager, "scale", `{"f:spec":{"f:replicas":{}}}`)}},
		Spec:       appsv1.DeploymentSpec{Replicas: replicas},
	}
}

func TestTheRecordKeepsEachChangeOnce(t *testing.T) {
	r := &recorder{}
	two, six := int32(2), int32(6)
	for _, d := range []*appsv1.Deployment{
		deployment(nil, "a"), deployment(&two, "a"), deployment(&two, "a"), deployment(&six, "a"), deployment(&six, "b"),
	} {
		require.NoError(t, r.noteDeployment(d))
	}

	assert.Equal(t, "1 → 2 → 6", arrows(counts(r.changesSince(mark{}))), "who owns the count last did not change it")
	assert.Equal(t, "6", arrows(counts(r.changesSince(mark{changes: 2}))))
	assert.Equal(t, "no change", arrows(counts(r.changesSince(r.mark()))))
}

func TestTheRecordRefusesWhatItDoesNotFollow(t *testing.T) {
	r := &recorder{}

	assert.ErrorContains(t, r.noteDeployment(&v1alpha1.AutoScaler{}), "AutoScaler")
	assert.ErrorContains(t, r.noteAutoScaler(&appsv1.Deployment{}), "Deployment")
}

// at gives a status of one that has written, whose memory has a scale-down at a
// second, and a window with a demand at another.
func at(down, high int64, replicas int32) v1alpha1.AutoScalerStatus {
	m := &v1alpha1.DecisionMemory{Windows: []v1alpha1.WindowMemory{{Buckets: []v1alpha1.BucketMemory{
		{Time: metav1.NewMicroTime(time.Unix(high, 0)), Replicas: replicas},
	}}}}
	if down != 0 {
		t := metav1.NewMicroTime(time.Unix(down, 0))
		m.LastScaleDownTime = &t
	}
	return v1alpha1.AutoScalerStatus{Memory: m, AppliedReplicas: new(int32(2))}
}

func lastDown(m *v1alpha1.DecisionMemory) *metav1.MicroTime { return m.LastScaleDownTime }

func TestTheLeastGapIsBetweenDifferentTimesThatFollowEachOther(t *testing.T) {
	least, err := leastGap([]v1alpha1.AutoScalerStatus{{}, at(0, 1, 2), at(100, 1, 2), at(100, 1, 2), at(107, 1, 2), at(112, 1, 2), at(120, 1, 2)}, lastDown)

	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, least)
}

func TestAStepThatADryRunWouldHaveMadeIsNone(t *testing.T) {
	simulated := at(99, 1, 2)
	simulated.AppliedReplicas = nil
	least, err := leastGap([]v1alpha1.AutoScalerStatus{simulated, at(100, 1, 2), at(107, 1, 2)}, lastDown)

	require.NoError(t, err)
	assert.Equal(t, 7*time.Second, least)
}

func TestOneStepAloneHasNoGap(t *testing.T) {
	_, err := leastGap([]v1alpha1.AutoScalerStatus{at(100, 1, 2), at(100, 1, 2)}, lastDown)

	assert.ErrorContains(t, err, "it remembers 1")
}

func TestTheLastHighDemandAndTheFirstScaleDownAreFound(t *testing.T) {
	last, down, err := lastHighAndFirstDown([]v1alpha1.AutoScalerStatus{
		{}, at(0, 50, 100), at(0, 55, 20), at(0, 60, 19), at(80, 60, 0), at(85, 60, 0),
	})

	require.NoError(t, err)
	assert.Equal(t, int64(55), last.Unix())
	assert.Equal(t, int64(80), down.Unix())
}

func TestAScaleDownWithoutAHighDemandBeforeItIsAFailure(t *testing.T) {
	_, _, err := lastHighAndFirstDown([]v1alpha1.AutoScalerStatus{at(80, 60, 19)})

	var failed *failure
	assert.ErrorAs(t, err, &failed)
}

func newDemo() *demo {
	return &demo{env: &environment{}, tell: &narrator{out: discard{}, now: time.Now}, record: &recorder{}}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestASequenceFailsAtTheFirstWrongCount(t *testing.T) {
	d := newDemo()
	d.record.changes = []change{{replicas: 2}, {replicas: 6}, {replicas: 10}}

	err := d.awaitReplicas(t.Context(), initial, time.Minute, 6, 9)

	var failed *failure
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "6 → 10", failed.seen)
}

func TestASequenceFailsAtACountTooMany(t *testing.T) {
	d := newDemo()
	d.record.changes = []change{{replicas: 2}, {replicas: 6}, {replicas: 9}, {replicas: 6}}

	assert.ErrorContains(t, d.awaitReplicas(t.Context(), initial, time.Minute, 6, 9), "6 → 9 → 6")
}

func TestAClaimThatDoesNotComeTrueFailsWithWhatWasSeenLast(t *testing.T) {
	_, err := newDemo().await(t.Context(), time.Millisecond, "a miracle", func(context.Context) error { return errors.New("nothing") })

	var failed *failure
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, failure{expected: "a miracle, within 1ms", seen: "nothing"}, *failed)
}

func TestAWaitEndsWhenTheRecordHasAGap(t *testing.T) {
	d := newDemo()
	d.record.fail(errors.New("a gap"))

	_, err := d.await(t.Context(), time.Minute, "a miracle", func(context.Context) error { return errors.New("nothing") })

	assert.ErrorContains(t, err, "a gap")
}

func TestAHoldFailsAtOnceWhenItIsBroken(t *testing.T) {
	_, err := newDemo().hold(t.Context(), time.Minute, "peace",
		func() error { return errors.New("a change") }, func(context.Context) error { return nil })

	var failed *failure
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, failure{expected: "peace", seen: "a change"}, *failed)
}

func changesBy(managers ...string) []change {
	var list []change
	for _, m := range managers {
		list = append(list, change{manager: m})
	}
	return list
}

func TestEveryChangeButThoseByHandMustBeTheOperators(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []change
		byHand  int
		wantErr bool
	}{
		{"the first count is the creator's", changesBy("kubectl", operatorWrites), 0, false},
		{"as many changes by hand as were made", changesBy("kubectl", operatorWrites, "kubectl/scale", operatorWrites), 1, false},
		{"one more by somebody else", changesBy("kubectl", "kube-controller-manager/scale", "kubectl/scale"), 1, true},
		{"one fewer: the operator wrote while a person should have", changesBy("kubectl", operatorWrites), 1, true},
		{"our write without a first count is no record", changesBy(operatorWrites), 0, true},
		{"nothing was recorded", nil, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDemo()
			d.record.changes, d.byHand = tt.changes, tt.byHand

			err := d.onlyOursWrote()

			assert.Equal(t, tt.wantErr, err != nil, "%v", err)
		})
	}
}

func TestTheTailOfATextIsItsLastLines(t *testing.T) {
	assert.Equal(t, "b\nc", tail("a\nb\nc\n", 2))
	assert.Equal(t, "a", tail("a", 2))
}

func TestSamplesAreCountedByTheirReason(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(`
# TYPE autoscale_metric_samples_total counter
autoscale_metric_samples_total{profile="a",reason="Unreachable"} 3
autoscale_metric_samples_total{profile="b",reason="Unreachable"} 2
autoscale_metric_samples_total{profile="a",reason="Valid"} 40
`))
	require.NoError(t, err)

	assert.Equal(t, 5, countReason(families[samplesMetric], "Unreachable"))
	assert.Equal(t, 40, countReason(families[samplesMetric], "Valid"))
	assert.Zero(t, countReason(families[samplesMetric], "NoData"))
	assert.Zero(t, countReason(families["another"], "Valid"), "before the first sample there is no such metric")
}
