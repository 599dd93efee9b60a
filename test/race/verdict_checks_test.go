package race

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

var (
	web = types.NamespacedName{Namespace: "race", Name: "web"}
	// uidA and uidB are contenders, deployed the Deployment.
	uidA, uidB, deployed = types.UID("a-uid"), types.UID("b-uid"), types.UID("web-uid")
)

// aThenB is a sound record: "a" holds the Deployment and scales it to 3, then "b"
// does and scales it to 5.
func aThenB() *target {
	return &target{
		contenders: []*contender{{label: "a", name: "a", uid: uidA, counts: []int32{3}}, {label: "b", name: "b", uid: uidB, counts: []int32{5}}},
		ops: []clientOp{
			{span{10, 40}, op{verb: stored}, "a"}, {span{100, 110}, op{verb: gone}, "a"},
			{span{120, 150}, op{verb: stored}, "b"}, {span{200, 210}, op{verb: gone}, "b"},
		},
		binds: []bindWrite{
			{span{20, 30}, uidA, "a", 1}, {span{50, 55}, uidA, "a", 1}, {span{130, 140}, uidB, "b", 2}, {span{160, 165}, uidB, "b", 2}, {span{220, 225}, "", "", 3},
		},
		looks: map[int][]look{0: {{span{60, 65}, uidA, 1}, {span{170, 175}, uidB, 2}}},
		scales: []scaleWrite{
			{span{70, 75}, 0, 3, 5}, {span{180, 185}, 0, 5, 8},
		},
		bindings: []bindingAt{
			{revision: 3, owner: uidA, name: "a", epoch: 1, pending: true},
			{revision: 4, owner: uidA, name: "a", epoch: 1, targetUID: deployed, confirmed: true},
			{revision: 6, owner: uidB, name: "b", epoch: 2, pending: true},
			{revision: 7, owner: uidB, name: "b", epoch: 2, targetUID: deployed, confirmed: true},
			{revision: 9, epoch: 3},
		},
		deployments: []deploymentAt{
			{revision: 2, uid: deployed, replicas: 1, created: true}, {revision: 5, uid: deployed, replicas: 3},
			{revision: 8, uid: deployed, replicas: 5}, {revision: 10, uid: deployed, replicas: 5, deleted: true},
		},
	}
}

// looksForHPAs answers that the HPAs were listed before either confirmation.
func looksForHPAs(_ string, by int64) (span, bool) {
	if by > 165 {
		return span{156, 158}, true
	}
	return span{46, 48}, true
}

func TestASoundRecordHasNoProblems(t *testing.T) {
	v := judge(web, aThenB(), looksForHPAs)
	v.settled(aThenB())
	assert.Empty(t, v.problems)
	assert.Empty(t, v.late)
	assert.Equal(t, 2, v.writes)
	assert.Contains(t, narrate(v.history), "write b@2")
	result, _, _ := linearizable(v.history)
	assert.Equal(t, porcupine.Ok, result)
}

func TestEachKindOfProblemIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*target)
		want  string
	}{
		"two owners of one epoch": {func(t *target) {
			t.bindings[2].epoch, t.bindings[3].epoch, t.bindings[4].epoch = 1, 1, 2
		}, "epoch 1 has two owners"},
		"an epoch that falls":             {func(t *target) { t.bindings[4].epoch = 1 }, "fell from 2 to 1"},
		"an epoch that is skipped":        {func(t *target) { t.bindings[4].epoch = 4 }, "went from 2 to 4"},
		"a binding that is deleted":       {func(t *target) { t.bindings[4].deleted = true }, "was deleted"},
		"a binding that nobody wrote":     {func(t *target) { t.binds = t.binds[2:] }, "no operator wrote the binding of epoch 1"},
		"a binding that is never let go":  {func(t *target) { t.bindings = t.bindings[:4] }, `still names "b"`},
		"a write that went past us":       {func(t *target) { t.scales = t.scales[:1] }, "revision 8: a count of 5 that no operator wrote"},
		"a count that nobody wants":       {func(t *target) { t.contenders[1].counts[0] = 7 }, "a count of 5 that nobody wants"},
		"a write without a look":          {func(t *target) { t.looks[0] = t.looks[0][:1] }, "without a look at its binding"},
		"a write by who never held":       {func(t *target) { t.contenders[0].counts, t.contenders[1].counts = []int32{5}, []int32{3} }, `revision 5: "b" was written for without a look`},
		"a write after the next is there": {func(t *target) { t.deployments[1].revision, t.scales[0].revision = 7, 7; t.bindings[3].revision = 6 }, `after "b" was confirmed in epoch 2`},
		"a write of an old epoch after one of a new": {func(t *target) {
			t.deployments[1], t.deployments[2] = t.deployments[2], t.deployments[1]
		}, "a write of epoch 1 (a) after one of epoch 2"},
		"a write before it is confirmed":                        {func(t *target) { t.bindings[1].confirmed = false }, "not confirmed in epoch 1"},
		"a write for another Deployment of the name":            {func(t *target) { t.bindings[1].targetUID = "old" }, "not confirmed in epoch 1 for this Deployment"},
		"a write in quiet times":                                {func(t *target) { t.quiet = []span{{60, 90}} }, "it had said that it holds"},
		"a write long after an HPA is there":                    {hpaLongBefore, "after the HPA was stored"},
		"a first write, and nobody looked for HPAs before that": {func(*target) {}, "without a live look for HPAs"},
	} {
		t.Run(name, func(t *testing.T) {
			record := aThenB()
			tc.spoil(record)
			looked := looksForHPAs
			if strings.Contains(tc.want, "live look") {
				looked = func(string, int64) (span, bool) { return span{}, false }
			}
			v := judge(web, record, looked)
			v.settled(record)
			require.NotEmpty(t, v.problems)
			assert.Contains(t, strings.Join(v.problems, "\n"), tc.want)
		})
	}
}

// hpaLongBefore puts an HPA beside the last write, which is made long after.
func hpaLongBefore(t *target) {
	late := hpaSeenWithin.Nanoseconds()
	t.ops = append(t.ops, clientOp{span{155, 168}, op{verb: hpaStored}, ""})
	t.looks[0][1].span = span{late + 200, late + 210}
	t.scales[1].span = span{late + 220, late + 230}
}

func TestAWriteThatWasUnderWayAtATakeOverIsTold(t *testing.T) {
	record := aThenB()
	record.bindings[2].revision = 4
	record.bindings[1].revision = 3
	record.bindings[0].revision = 2
	record.bindings[3].revision = 6
	v := judge(web, record, looksForHPAs)
	assert.Empty(t, v.problems)
	require.Len(t, v.late, 1)
	assert.Contains(t, v.late[0], `for "a" of epoch 1`)
}

func TestFaultsDependOnTheSeedAlone(t *testing.T) {
	one, other, third := newFaults(7), newFaults(7), newFaults(8)
	_ = other.of("something else", anyRequest...)
	same, differs := true, false
	kinds := map[faultKind]int{}
	for range 2000 {
		a, b, c := one.of("a request", anyRequest...), other.of("a request", anyRequest...), third.of("a request", anyRequest...)
		same = same && a == b
		differs = differs || a != c
		kinds[a.kind]++
	}
	assert.True(t, same, "the same seed, whatever else is asked")
	assert.True(t, differs, "another seed")
	for _, s := range anyRequest {
		assert.InDelta(t, 2*s.thousand, kinds[s.kind], float64(s.thousand)+10, "%s in 2000 requests", s.kind)
	}
}
