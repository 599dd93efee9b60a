//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
)

// The loads of the seed's experiment, in items a second. The first one is a little below
// 900, so that the noise of a real measurement asks for no tenth replica.
const (
	loadOf9     = 880
	loadBeyond  = 10000
	loadOfEight = 780
)

// window and the intervals are short, so that an experiment takes a minute.
const (
	window       = 20
	downInterval = 10
	upStep       = 4
	downStep     = 6
)

// closedLoop lets the operator scale a real service by what a real Prometheus measures of
// it: the rows of the seed's experiment.
func (w *world) closedLoop() {
	ups := map[string]scaleUp{}
	d := deployment(shop, service, 2)
	p := profile("items", load)
	a := builders.MakeAutoScaler(shop, service).Target(service).Metric("items", "items", fmt.Sprint(perReplica)).
		Bounds(2, 20).Poll(5).Steps(upStep, downStep).Window(window).DownInterval(downInterval).Obj()
	w.create(d, p, a)
	w.Cleanup(func() { w.order(0); w.remove(a, d, p) })
	w.order(150)
	w.says(shop, service, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)
	w.reaches(shop, service, 2, soon)

	w.do("a load for 9 replicas: it converges step by step", func(w *world) {
		ups["880/s, step 4"] = w.grows(loadOf9, 2, 9)
	})
	w.do("a load for 100: it is capped at 20", func(w *world) {
		ups["10,000/s, step 4"] = w.grows(loadBeyond, 9, 20)
		w.says(shop, service, v1alpha1.ConditionScalingLimited, v1alpha1.ReasonAtMaxReplicas)
	})
	w.do("no load: it waits for the window, then goes down to 2, a step per interval", (*world).shrinks)
	w.do("a step that is not limited", func(w *world) {
		w.change(a, func(a *v1alpha1.AutoScaler) { a.Spec.Behavior.ScaleUpMaxStep = nil })
		ups["780/s, no limit"] = w.grows(loadOfEight, 2, 8)
	})
	w.do("rows about bad metrics and about what keeps from writing", (*world).rows)
	w.report("%s", latencyTable(ups, []string{"880/s, step 4", "10,000/s, step 4", "780/s, no limit"}))
	o := w.orders()
	w.report("Of %d orders %d were not taken.", o.Answered+o.Failed, o.Failed)
	for _, f := range o.Failures {
		w.Logf("%s %s", f.Time.Format(time.TimeOnly), f.Error)
	}
	for _, c := range w.record.since(shop, service, time.Time{}) {
		if c.from != 0 {
			assert.Equal(w, controller.FieldManager, c.by, "nobody else wrote a count")
		}
	}
}

// grows sets a load and checks the way up: no step is larger than allowed, two are a poll
// interval apart, and it ends where it should.
func (w *world) grows(items int, from, to int32) scaleUp {
	w.Helper()
	a, err := w.autoscaler(w.Context(), shop, service)
	require.NoError(w, err)
	since := time.Now()
	w.order(items)
	w.reaches(shop, service, to, 2*soon)
	w.until("every replica to have served", soon, func(context.Context) error {
		served, made := w.orders().First, w.record.podsSince(since)
		if len(made) < int(to-from) {
			return fmt.Errorf("%d were made", len(made))
		}
		for _, p := range made {
			if served[p.name].IsZero() {
				return fmt.Errorf("%s has not", p.name)
			}
		}
		return nil
	})
	changes := w.record.since(shop, service, since)
	require.NotEmpty(w, changes)
	assert.Equal(w, from, changes[0].from)
	for _, c := range changes {
		assert.Greater(w, c.to, c.from, "it only grows: %+v", changes)
	}
	if limit := a.Spec.Behavior.ScaleUpMaxStep; limit != nil {
		assert.True(w, inSteps(changes, *limit, 5*time.Second), "a step of %d per poll interval: %+v", *limit, changes)
	}
	up := w.scaleUp(since)
	w.report("- %d items/s: %d → %d replicas in %d writes; all serving after %.1f s", items, up.from, up.to, up.steps, up.served.Seconds())
	return up
}

// inSteps says whether writes are those of a step per poll interval, where an interval
// begins with the first write after the one before. They are seen with a second's doubt, so
// one at the end of an interval may be of the next.
func inSteps(changes []change, limit int32, poll time.Duration) bool {
	if len(changes) == 0 {
		return true
	}
	first := changes[0]
	for i, c := range changes {
		if c.to-first.from > limit || c.seen.Sub(first.seen) > poll+time.Second {
			return false
		}
		rest := changes[i+1:]
		if (len(rest) == 0 || rest[0].seen.Sub(first.seen) >= poll-time.Second) && inSteps(rest, limit, poll) {
			return true
		}
	}
	return false
}

// shrinks takes the load away.
func (w *world) shrinks() {
	since := time.Now()
	w.order(0)
	w.reaches(shop, service, 2, 2*soon)
	changes := w.record.since(shop, service, since)
	require.NotEmpty(w, changes)
	assert.Equal(w, int32(20), changes[0].from)
	assert.GreaterOrEqual(w, changes[0].seen.Sub(since), window*time.Second)
	way := "20"
	for i, c := range changes {
		way += fmt.Sprintf(" → %d", c.to)
		assert.Less(w, c.to, c.from, "it only shrinks: %+v", changes)
		assert.LessOrEqual(w, c.from-c.to, int32(downStep))
		if i > 0 {
			assert.GreaterOrEqual(w, c.seen.Sub(changes[i-1].seen), (downInterval-1)*time.Second)
		}
	}
	w.report("- no load: %s, the first step %.0f s after the load had gone (window %d s, query's range 15 s), then one in %d s at most",
		way, changes[0].seen.Sub(since).Seconds(), window, downInterval)
}

// change alters a stored AutoScaler's spec.
func (w *world) change(a *v1alpha1.AutoScaler, alter func(*v1alpha1.AutoScaler)) {
	w.Helper()
	w.until("the change to be stored", soon, func(ctx context.Context) error {
		now, err := w.autoscaler(ctx, a.Namespace, a.Name)
		if err != nil {
			return err
		}
		alter(now)
		return w.client.Update(ctx, now)
	})
}
