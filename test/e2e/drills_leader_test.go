//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// losesLeader deletes the leader's pod in the middle of a scale-down window: the next
// leader is not to scale down before its end, and not to begin another one either.
func (w *world) losesLeader(from, poll, window int32, how ...string) {
	w.carries(from)
	w.behaves(poll, window)
	w.settled()
	w.asks(4)
	w.measuresAtMost(float64((from - 1) * perReplica))
	dropped := time.Now()
	w.says(shop, service, v1alpha1.ConditionScalingLimited, v1alpha1.ReasonScaleDownStabilized)
	half := time.Duration(window) * time.Second / 2
	w.throughout("the window holds", half-time.Since(dropped), w.keeps(service, from))

	leader, err := w.leader(w.Context())
	require.NoError(w, err)
	killed := time.Now()
	w.kubectl(append([]string{"--namespace=" + systemNamespace, "delete", "pod", podOf(leader), "--wait=false"}, how...)...)
	w.follows(leader)
	takeover := time.Now()
	w.until("a scale-down", 2*soon, func(context.Context) error {
		if len(w.record.since(shop, service, dropped)) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
	first := w.record.since(shop, service, dropped)[0]
	assert.Less(w, first.to, first.from)
	// The last poll that saw the high load was up to an interval before it dropped; a
	// second is for the doubt of when things are seen here.
	assert.GreaterOrEqual(w, first.seen.Sub(dropped), time.Duration(window-poll-1)*time.Second, "the window is kept")
	assert.Less(w, first.seen.Sub(takeover), time.Duration(window-poll)*time.Second, "it did not begin anew")
	w.behaves(drillPoll, drillWindow)
	w.reaches(shop, service, 4, 2*soon)
	w.settled()
	w.report("- %s, %.0f s into a window of %d s: another one leads after %.1f s; the first scale-down (%d → %d) comes %.0f s after the load had dropped, %.0f s after the change.",
		baseName(w.Name()), killed.Sub(dropped).Seconds(), window, takeover.Sub(killed).Seconds(),
		first.from, first.to, first.seen.Sub(dropped).Seconds(), first.seen.Sub(takeover).Seconds())
}

// cutOff takes the network from pods, until the function that it gives is called. The
// kubelet goes on reaching them.
func (w *world) cutOff(pods ...corev1.Pod) (mend func()) {
	w.Helper()
	rules := func(action string) {
		for i := range pods {
			for _, end := range []string{"--source", "--destination"} {
				command := w.node.Command("iptables", "--wait", action, "FORWARD", end, pods[i].Status.PodIP, "--jump", "DROP")
				w.must(command[0], command[1:]...)
			}
		}
	}
	rules("--insert")
	var once sync.Once
	mend = func() { once.Do(func() { rules("--delete") }) }
	w.Cleanup(mend)
	return mend
}

func (w *world) cutsOffLeader() {
	w.ours("it needs iptables on the node")
	w.carries(4)
	w.settled()
	leader, err := w.leader(w.Context())
	require.NoError(w, err)
	pods := w.operators(release, systemNamespace)
	at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == podOf(leader) })
	require.GreaterOrEqual(w, at, 0)
	begun := time.Now()
	mend := w.cutOff(pods[at])
	stop := w.again(time.Second, w.admits)
	w.asks(8)
	takeover := w.follows(leader)
	w.reaches(shop, service, 8, 2*soon)
	scaled := time.Since(begun)
	w.admitsAgain()
	admitted := stop()
	changes := w.record.since(shop, service, begun)
	require.NotEmpty(w, changes)
	for _, c := range changes {
		assert.Greater(w, c.to, c.from)
	}

	mended := time.Now()
	mend()
	w.settled()
	w.report("- The leader alone is cut off: the other one leads after %.1f s, and the service is at 8 of 4 replicas after %.1f s. "+
		"%d of %d AutoScalers were refused meanwhile, the last one %.0f s after the cut; then, with the replica still cut off, none was. The replica is back %.0f s after the network.",
		takeover.Seconds(), scaled.Seconds(), len(admitted.failures), admitted.done, admitted.lastAfter(begun).Seconds(), time.Since(mended).Seconds())
}

// admitsAgain waits until many AutoScalers in a row are admitted.
func (w *world) admitsAgain() {
	w.Helper()
	const row = 10
	inRow := 0
	w.until("AutoScalers to be admitted", 2*soon, func(ctx context.Context) error {
		if err := w.admits(ctx); err != nil {
			inRow = 0
			return err
		}
		inRow++
		if inRow < row {
			return fmt.Errorf("%d were", inRow)
		}
		return nil
	})
}

func (w *world) cutsOffAll() {
	w.ours("it needs iptables on the node")
	bystander := w.bystander()
	w.carries(8)
	w.settled()
	pods := w.operators(release, systemNamespace)
	require.Len(w, pods, 2)
	since := time.Now()
	mend := w.cutOff(pods...)
	w.asks(4)
	w.refusesScale(service, service)
	w.rolls(bystander)
	w.throughout("nobody decides", aWindow-time.Since(since), w.keeps(service, 8))
	w.refusesScale(service, service)
	w.asks(8)
	w.measuresMore(7 * perReplica)
	away := time.Since(since)

	mended := time.Now()
	mend()
	w.settled()
	took := time.Since(mended)
	w.throughout("nothing is removed", aWindow, w.keeps(service, 8))
	w.untouched(shop, service, since)
	w.carries(10)
	w.report("- Both replicas are cut off for %.0f s while the load falls: nothing is written; the guard refuses a person's scale and names the holder; "+
		"another Deployment rolls out. Both are back %.0f s after the network; nothing is removed, then 8 → 10 with the load.", away.Seconds(), took.Seconds())
}
