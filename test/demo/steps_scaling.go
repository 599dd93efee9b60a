package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// The demo's policy: that of the example with shorter times.
const (
	poll     = 5 * time.Second
	window   = 20 * time.Second
	interval = 5 * time.Second
	downStep = 2
)

// shorten is the JSON patch that makes the example's times those of the demo.
const shorten = `[` +
	`{"op":"replace","path":"/spec/pollIntervalSeconds","value":5},` +
	`{"op":"replace","path":"/spec/metrics/0/behavior/scaleDownStabilizationSeconds","value":20},` +
	`{"op":"replace","path":"/spec/metrics/0/behavior/scaleDownMinIntervalSeconds","value":5},` +
	`{"op":"replace","path":"/spec/metrics/0/behavior/scaleDownMaxStep","value":2}]`

// converging bounds a few steps of one poll interval each.
const converging = time.Minute

// claim makes the AutoScaler a live one.
func (d *demo) claim(ctx context.Context) error {
	d.tell.step("Live: the replica count is claimed, and the claim is an object")
	d.tell.say("So that the demo takes minutes and not a quarter of an hour: a poll every 5 s instead",
		"of 15, a scale-down window of 20 s instead of 300, 5 s instead of 60 between two",
		"scale-downs, and 2 replicas instead of 1 per scale-down. Steps up stay at 4.")
	if err := d.kubectl.do(ctx, "-n", namespace, "patch", "autoscaler", service, "--type=json", "-p", shorten); err != nil {
		return err
	}
	if err := d.untouched(initial); err != nil {
		return &failure{expected: "nothing is written before the dry run ends", seen: err.Error()}
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "patch", "autoscaler", service, "--type=merge", "-p", `{"spec":{"dryRun":false}}`); err != nil {
		return err
	}
	if _, err := d.await(ctx, soon, "ScaleBinding order-service to be Held by AutoScaler order-service", d.heldByUs); err != nil {
		return err
	}
	err := d.awaitStatus(ctx, "the AutoScaler to be Ready", func(a *v1alpha1.AutoScaler) error {
		return condition(a, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonManaging)
	})
	if err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler,scalebinding"); err != nil {
		return err
	}
	d.tell.verified("the ScaleBinding names its owner, and who claimed it")
	return nil
}

func (d *demo) heldByUs(ctx context.Context) error {
	key := types.NamespacedName{Namespace: namespace, Name: service}
	var b v1alpha1.ScaleBinding
	var deployment appsv1.Deployment
	if err := errors.Join(d.client.Get(ctx, key, &b), d.client.Get(ctx, key, &deployment)); err != nil {
		return err
	}
	a, err := d.autoscaler(ctx)
	if err != nil {
		return err
	}
	if b.Spec.OwnerUID != a.UID || !b.Confirmed(deployment.UID) {
		return fmt.Errorf("phase %q, owner %v", b.Status.Phase, b.Spec.OwnerRef)
	}
	return nil
}

// converge follows the first scale-up to its end. It began when the dry run ended.
func (d *demo) converge(ctx context.Context) error {
	d.tell.step("900 req/s: 2 → 6 → 9, by steps of 4, one per poll")
	if err := d.awaitReplicas(ctx, initial, converging, 6, 9); err != nil {
		return err
	}
	d.tell.verified("spec.replicas went 2 → 6 → 9")
	if err := d.oneStepPerPoll(ctx, initial, 9); err != nil {
		return err
	}
	if err := d.awaitReady(ctx, 9); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "deployment", service); err != nil {
		return err
	}
	d.tell.verified("9 pods are ready")
	return nil
}

func (d *demo) cap(ctx context.Context) error {
	d.tell.step("10,000 req/s would need 100 replicas: capped at 20, and it says so")
	start := d.record.mark()
	if err := d.stepsAnew(ctx); err != nil {
		return err
	}
	if err := d.turn(10000); err != nil {
		return err
	}
	if err := d.awaitReplicas(ctx, start, converging, 13, 17, 20); err != nil {
		return err
	}
	d.tell.verified("spec.replicas went 9 → 13 → 17 → 20")
	if err := d.oneStepPerPoll(ctx, start, 20); err != nil {
		return err
	}
	err := d.awaitStatus(ctx, "a recommendation of 100, limited by maxReplicas", func(a *v1alpha1.AutoScaler) error {
		if err := condition(a, v1alpha1.ConditionScalingLimited, metav1.ConditionTrue, v1alpha1.ReasonAtMaxReplicas); err != nil {
			return err
		}
		return recommends(a, 100)
	})
	if err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler"); err != nil {
		return err
	}
	d.tell.verified("the demand stays visible: recommended 100, limited by AtMaxReplicas")
	if _, err := d.await(ctx, soon, "the event AtMaxReplicas", d.eventTold); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "events", "--field-selector", "reason="+v1alpha1.ReasonAtMaxReplicas); err != nil {
		return err
	}
	d.tell.verified("an event warns of it")
	return d.awaitRate(ctx, 10000)
}

// stepsAnew waits for the end of the poll interval that the last step was granted in:
// the 3 replicas of 6 → 9 leave one more to it.
func (d *demo) stepsAnew(ctx context.Context) error {
	_, err := d.await(ctx, soon, "the poll interval of the last step to end", func(ctx context.Context) error {
		a, err := d.autoscaler(ctx)
		if err != nil {
			return err
		}
		if m := a.Status.Memory; m == nil || m.StepUp == nil || time.Since(m.StepUp.Time.Time) < poll {
			return errors.New("it has not ended")
		}
		return nil
	})
	return err
}

func (d *demo) loseMetrics(ctx context.Context) error {
	d.tell.step("Prometheus is stopped: no data is not no load, so 20 are held")
	start := d.record.mark()
	failed, err := d.evaluations(ctx, prometheus.ReasonUnreachable, int(window/poll))
	if err != nil {
		return err
	}
	if err := d.env.prometheus.stop(); err != nil {
		return err
	}
	stopped := time.Now()
	d.tell.say("The process is gone. It stays away for longer than the whole scale-down window.")
	claim := "20 replicas to be held while no evaluation has a metric"
	long := window + poll
	if _, err := d.hold(ctx, 2*long, claim, func() error { return d.untouched(start) }, func(ctx context.Context) error {
		if left := long - time.Since(stopped); left > 0 {
			return fmt.Errorf("held, with %s to go", left.Round(time.Second))
		}
		return failed(ctx)
	}); err != nil {
		return err
	}
	err = d.awaitStatus(ctx, "MetricsAvailable to be False", func(a *v1alpha1.AutoScaler) error {
		return condition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionFalse, prometheus.ReasonUnreachable)
	})
	if err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler", "-o", "wide"); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler", service, "-o",
		`jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`); err != nil {
		return err
	}
	d.tell.verified("no replica was removed in %.0f s and at least %d evaluations without a metric", time.Since(stopped).Seconds(), int(window/poll))
	return d.regainMetrics(ctx, start)
}

func (d *demo) regainMetrics(ctx context.Context, start mark) error {
	d.tell.say("", "Prometheus is started again, with its data.")
	if err := d.env.prometheus.start(ctx); err != nil {
		return err
	}
	err := d.awaitStatus(ctx, "MetricsAvailable to be True again", func(a *v1alpha1.AutoScaler) error {
		return condition(a, v1alpha1.ConditionMetricsAvailable, metav1.ConditionTrue, v1alpha1.ReasonSamplesValid)
	})
	if err != nil {
		return err
	}
	if err := d.awaitRate(ctx, 10000); err != nil {
		return err
	}
	if err := d.untouched(start); err != nil {
		return &failure{expected: "20 replicas are held until the metric is back", seen: err.Error()}
	}
	d.tell.verified("the metric is back, the 20 replicas were never touched")
	return nil
}

// eventTold looks for the event of the cap.
func (d *demo) eventTold(ctx context.Context) error {
	var events eventsv1.EventList
	if err := d.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == v1alpha1.ReasonAtMaxReplicas && e.Regarding.Kind == "AutoScaler" && e.Regarding.Name == service {
			return nil
		}
	}
	return errors.New("no such event")
}
