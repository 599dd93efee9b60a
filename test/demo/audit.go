package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// awaitTold waits until the AutoScaler's status tells of the operator's write of a
// count, which it does a moment after the write, and gives the statuses since a mark.
func (d *demo) awaitTold(ctx context.Context, since mark, applied int32) ([]v1alpha1.AutoScalerStatus, error) {
	var told []v1alpha1.AutoScalerStatus
	_, err := d.await(ctx, soon, fmt.Sprintf("the status to tell that %d was written", applied), func(context.Context) error {
		told = d.record.statusesSince(since)
		for i := range told {
			if a := told[i].AppliedReplicas; a != nil && *a == applied {
				return nil
			}
		}
		return fmt.Errorf("none of %d versions of the status does", len(told))
	})
	return told, err
}

// oneStepPerPoll verifies, from the operator's memory in the statuses since a
// mark, that a poll interval lay between the decisions of any two steps on the
// way up to a count.
func (d *demo) oneStepPerPoll(ctx context.Context, since mark, applied int32) error {
	told, err := d.awaitTold(ctx, since, applied)
	if err != nil {
		return err
	}
	least, err := leastGap(told, func(m *v1alpha1.DecisionMemory) *metav1.MicroTime {
		if m.StepUp == nil {
			return nil
		}
		return &m.StepUp.Time
	})
	if err != nil {
		return err
	}
	if least < poll {
		return &failure{expected: fmt.Sprintf("one step per poll interval of %s", poll), seen: fmt.Sprintf("two steps within %s", least)}
	}
	d.tell.verified("at least %.1f s lay between two steps (a poll interval is %s)", least.Seconds(), poll)
	return nil
}

// leastGap is the shortest time between two values that a remembered time took,
// one after the other.
func leastGap(statuses []v1alpha1.AutoScalerStatus, of func(*v1alpha1.DecisionMemory) *metav1.MicroTime) (time.Duration, error) {
	var times []time.Time
	for i := range statuses {
		m := statuses[i].Memory
		// A dry run's memory holds the steps that it would have made.
		if m == nil || statuses[i].AppliedReplicas == nil {
			continue
		}
		if t := of(m); t != nil && (len(times) == 0 || !times[len(times)-1].Equal(t.Time)) {
			times = append(times, t.Time)
		}
	}
	if len(times) < 2 {
		return 0, &failure{expected: "the status remembers each step", seen: fmt.Sprintf("it remembers %d", len(times))}
	}
	least := times[1].Sub(times[0])
	for i := 2; i < len(times); i++ {
		least = min(least, times[i].Sub(times[i-1]))
	}
	return least, nil
}

// onlyOursWrote verifies that, but for the first count and the changes by hand,
// every change of the replica count was the operator's own, through /scale.
func (d *demo) onlyOursWrote() error {
	changes := d.record.changesSince(mark{})
	byHand, byUs := 0, 0
	for i, c := range changes {
		switch {
		case c.manager == operatorWrites:
			byUs++
		case i > 0:
			byHand++
		}
		d.tell.say(fmt.Sprintf("  %3d replicas   %s   by %s", c.replicas, c.seen.Format(time.TimeOnly), c.manager))
	}
	if byHand != d.byHand || len(changes) == 0 || changes[0].manager == operatorWrites {
		return &failure{
			expected: fmt.Sprintf("%d change of spec.replicas by hand, all others by %s", d.byHand, operatorWrites),
			seen:     fmt.Sprintf("%d of others, %d by the operator", byHand, byUs),
		}
	}
	d.tell.verified("%d changes by the operator, through deployments/scale; %d by hand, while it was paused", byUs, byHand)
	return nil
}
