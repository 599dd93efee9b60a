package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/scaling"
)

// operatorWrites is the manager of spec.replicas after a write of the operator.
const operatorWrites = controller.FieldManager + "/scale"

// shrink lets the load end and follows the way down.
func (d *demo) shrink(ctx context.Context) error {
	d.tell.step("0 req/s: the window is waited out, then down step by step to 2")
	start := d.record.mark()
	if err := d.turn(0); err != nil {
		return err
	}
	calm := time.Now()
	claim := fmt.Sprintf("the scale-down window of %s to pass", window)
	_, err := d.await(ctx, 3*window, claim, func(context.Context) error {
		if len(d.record.changesSince(start)) == 0 {
			return errors.New("still 20 replicas")
		}
		return nil
	})
	if err != nil {
		return err
	}
	first := d.record.changesSince(start)[0]
	if err := d.windowKept(ctx, start, calm, first); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler"); err != nil {
		return err
	}
	return d.descend(ctx, start)
}

// windowKept verifies that the first scale-down came no earlier than a whole
// window after the last evaluation that still asked for 20. When that was, the
// operator's memory in the status tells, to the microsecond.
func (d *demo) windowKept(ctx context.Context, start mark, calm time.Time, first change) error {
	if waited := first.seen.Sub(calm); waited < window {
		return &failure{
			expected: fmt.Sprintf("no scale-down earlier than %s after the load ended", window),
			seen:     fmt.Sprintf("spec.replicas became %d after %s", first.replicas, waited),
		}
	}
	told, err := d.awaitTold(ctx, start, first.replicas)
	if err != nil {
		return err
	}
	last, down, err := lastHighAndFirstDown(told)
	if err != nil {
		return err
	}
	if waited := down.Sub(last); waited < window {
		return &failure{
			expected: fmt.Sprintf("no scale-down earlier than %s after the last recommendation of 20", window),
			seen:     fmt.Sprintf("the decision to scale down came %s after it", waited),
		}
	}
	d.tell.verified("the last evaluation that asked for 20 came %.1f s after the load had ended;", last.Sub(calm).Seconds())
	d.tell.say(fmt.Sprintf("  the first scale-down %.1f s after that: not before the window of %s had passed", down.Sub(last).Seconds(), window))
	return nil
}

// lastHighAndFirstDown finds in statuses the time of the last evaluation with a
// demand of 20 or more, and of the first decision to scale down.
func lastHighAndFirstDown(statuses []v1alpha1.AutoScalerStatus) (last, down time.Time, err error) {
	for i := range statuses {
		s := &statuses[i]
		if s.Memory == nil {
			continue
		}
		for _, w := range s.Memory.Windows {
			for _, b := range w.Buckets {
				if b.Replicas >= 20 && b.Time.After(last) {
					last = b.Time.Time
				}
			}
		}
		if t := s.Memory.LastScaleDownTime; t != nil && down.IsZero() {
			down = t.Time
		}
	}
	if last.IsZero() || down.IsZero() {
		return last, down, &failure{
			expected: "the status remembers the last high demand and the scale-down that it held back",
			seen:     fmt.Sprintf("last high demand %s, first scale-down %s", last, down),
		}
	}
	return last, down, nil
}

// descend follows the way from 20 to 2.
func (d *demo) descend(ctx context.Context, start mark) error {
	claim := fmt.Sprintf("spec.replicas to go down to 2 by at most %d at a time", downStep)
	_, err := d.await(ctx, 2*time.Minute, claim, func(context.Context) error {
		before := int32(20)
		for _, now := range counts(d.record.changesSince(start)) {
			if now >= before || now < before-downStep || now < 2 {
				return &failure{expected: claim, seen: arrows(append([]int32{20}, counts(d.record.changesSince(start))...))}
			}
			before = now
		}
		if before > 2 {
			return fmt.Errorf("%d replicas", before)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.tell.verified("spec.replicas went %s", arrows(append([]int32{20}, counts(d.record.changesSince(start))...)))
	told, err := d.awaitTold(ctx, start, 2)
	if err != nil {
		return err
	}
	least, err := leastGap(told, func(m *v1alpha1.DecisionMemory) *metav1.MicroTime { return m.LastScaleDownTime })
	if err != nil {
		return err
	}
	if least < interval {
		return &failure{expected: fmt.Sprintf("at least %s between two scale-downs", interval), seen: least.String()}
	}
	d.tell.verified("at least %.1f s lay between two scale-downs (allowed: %s)", least.Seconds(), interval)
	if err := d.awaitReady(ctx, 2); err != nil {
		return err
	}
	return d.kubectl.do(ctx, "-n", namespace, "get", "deployment", service)
}

// pause shows that a person can take over without a fight.
func (d *demo) pause(ctx context.Context) error {
	d.tell.step("Paused: it keeps the claim and recommends, and a person scales by hand")
	start := d.record.mark()
	if err := d.kubectl.do(ctx, "-n", namespace, "patch", "autoscaler", service, "--type=merge", "-p", `{"spec":{"paused":true}}`); err != nil {
		return err
	}
	if err := d.turn(900); err != nil {
		return err
	}
	if err := d.awaitRate(ctx, 900); err != nil {
		return err
	}
	err := d.awaitStatus(ctx, "a recommendation of 9 while paused", func(a *v1alpha1.AutoScaler) error {
		if err := condition(a, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused); err != nil {
			return err
		}
		return recommends(a, 9)
	})
	if err != nil {
		return err
	}
	if err := d.holdPaused(ctx, start); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler,scalebinding"); err != nil {
		return err
	}
	d.tell.verified("recommended 9, still 2 replicas, still holding the claim")
	return d.handOver(ctx)
}

func (d *demo) handOver(ctx context.Context) error {
	if err := d.awaitOpen(ctx); err != nil {
		return err
	}
	start := d.record.mark()
	d.byHand++
	if err := d.kubectl.do(ctx, "-n", namespace, "scale", "deployment", service, "--replicas=4"); err != nil {
		return err
	}
	if err := d.awaitReplicas(ctx, start, soon, 4); err != nil {
		return err
	}
	if err := d.holdPaused(ctx, d.record.mark()); err != nil {
		return err
	}
	d.tell.verified("4 replicas, set by hand, were left alone")
	d.tell.say("", "Resumed, it goes on from there.")
	start = d.record.mark()
	if err := d.kubectl.do(ctx, "-n", namespace, "patch", "autoscaler", service, "--type=merge", "-p", `{"spec":{"paused":false}}`); err != nil {
		return err
	}
	if err := d.awaitReplicas(ctx, start, converging, 8, 9); err != nil {
		return err
	}
	d.tell.verified("spec.replicas went 4 → 8 → 9")
	return d.awaitReady(ctx, 9)
}

// holdPaused verifies that two more evaluations write nothing.
func (d *demo) holdPaused(ctx context.Context, start mark) error {
	evaluated, err := d.evaluations(ctx, scaling.Valid.String(), 2)
	if err != nil {
		return err
	}
	_, err = d.hold(ctx, soon, "two more evaluations that write nothing", func() error { return d.untouched(start) }, evaluated)
	return err
}

func (d *demo) finish(ctx context.Context) error {
	d.tell.step("Where it ended, and who wrote what")
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler,scalebinding,deployment"); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "events", "--for=autoscaler/"+service); err != nil {
		return err
	}
	return d.onlyOursWrote()
}
