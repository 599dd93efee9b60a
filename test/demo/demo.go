package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
)

// The service of the demo.
const (
	namespace = "production"
	service   = "order-service"
	profile   = "order-service-total-qps"
)

const (
	// soon bounds what should take a moment.
	soon = 30 * time.Second
	// refreshed bounds the wait for a number in the status: where nothing else of
	// the status changes with it, the operator writes it once a minute.
	refreshed = 90 * time.Second
)

// demo is a run of the demo.
type demo struct {
	env     *environment
	tell    *narrator
	kubectl *kubectl
	client  client.WithWatch
	record  *recorder
	// query is what the MetricProfile asks Prometheus for the service.
	query string
	// byHand counts the changes of the replica count that a person made.
	byHand int
}

// play runs the steps in order; each relies on where the one before ended.
func (d *demo) play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		d.startUp, d.recommend, d.refuseBesideHPA, d.claim, d.refuseSecond,
		d.converge, d.cap, d.guard, d.loseMetrics, d.shrink, d.pause, d.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// connect makes the clients of the running cluster.
func (d *demo) connect() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), eventsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if d.client, err = client.NewWithWatch(d.env.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	d.kubectl = newKubectl(filepath.Join(d.env.dir, "kubectl"), d.env.root, d.env.cluster.Kubeconfig(), filepath.Join(d.env.dir, "kubectl-cache"), d.tell)
	return nil
}

// autoscaler reads the AutoScaler of the service.
func (d *demo) autoscaler(ctx context.Context) (*v1alpha1.AutoScaler, error) {
	var a v1alpha1.AutoScaler
	err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: service}, &a)
	return &a, err
}

// condition says how an AutoScaler's condition differs from the one wanted; nil
// if it does not.
func condition(a *v1alpha1.AutoScaler, name string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(a.Status.Conditions, name)
	switch {
	case c == nil:
		return fmt.Errorf("there is no condition %s", name)
	case c.Status != status || c.Reason != reason:
		return fmt.Errorf("%s=%s, reason %s: %s", name, c.Status, c.Reason, c.Message)
	}
	return nil
}

// recommends says how an AutoScaler's recommendation differs; nil if it does not.
func recommends(a *v1alpha1.AutoScaler, want int32) error {
	switch got := a.Status.RecommendedReplicas; {
	case got == nil:
		return errors.New("no recommendation")
	case *got != want:
		return fmt.Errorf("a recommendation of %d", *got)
	}
	return nil
}

// awaitStatus waits until the AutoScaler's status is as wanted.
func (d *demo) awaitStatus(ctx context.Context, claim string, look func(*v1alpha1.AutoScaler) error) error {
	_, err := d.await(ctx, refreshed, claim, func(ctx context.Context) error {
		a, err := d.autoscaler(ctx)
		if err != nil {
			return err
		}
		return look(a)
	})
	return err
}

// awaitReplicas waits until spec.replicas has taken exactly these values, in this
// order, since a mark.
func (d *demo) awaitReplicas(ctx context.Context, since mark, within time.Duration, want ...int32) error {
	claim := fmt.Sprintf("spec.replicas to become %s", arrows(want))
	_, err := d.await(ctx, within, claim, func(context.Context) error {
		got := counts(d.record.changesSince(since))
		for i := range got {
			if i >= len(want) || got[i] != want[i] {
				return &failure{expected: claim, seen: arrows(got)}
			}
		}
		if len(got) < len(want) {
			return errors.New(arrows(got))
		}
		return nil
	})
	return err
}

// awaitReady waits until the service has so many ready pods and no others.
func (d *demo) awaitReady(ctx context.Context, want int32) error {
	_, err := d.await(ctx, soon, fmt.Sprintf("%d pods of %s to be ready", want, service), func(ctx context.Context) error {
		var deployment appsv1.Deployment
		if err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: service}, &deployment); err != nil {
			return err
		}
		if s := &deployment.Status; s.ReadyReplicas != want || s.Replicas != want {
			return fmt.Errorf("%d of %d pods are ready", s.ReadyReplicas, s.Replicas)
		}
		return nil
	})
	return err
}

// untouched says which change was made since a mark; nil if none was.
func (d *demo) untouched(since mark) error {
	if changes := d.record.changesSince(since); len(changes) > 0 {
		return fmt.Errorf("spec.replicas became %s, written by %s", arrows(counts(changes)), changes[0].manager)
	}
	return nil
}

// evaluations is a look that succeeds when the operator has taken so many more
// samples of a reason than at the time of this call.
func (d *demo) evaluations(ctx context.Context, reason string, more int) (func(context.Context) error, error) {
	before, err := d.env.operator.samples(ctx, reason)
	return func(ctx context.Context) error {
		now, err := d.env.operator.samples(ctx, reason)
		if err == nil && now < before+more {
			err = fmt.Errorf("%d of %d evaluations with a sample that is %s", now-before, more, reason)
		}
		return err
	}, err
}

// turn sets the load.
func (d *demo) turn(perSecond int) error { return d.env.load.Turn(perSecond) }

// awaitRate waits until Prometheus answers the profile's own query with exactly
// the load that was set.
func (d *demo) awaitRate(ctx context.Context, perSecond float64) error {
	_, err := d.await(ctx, soon, fmt.Sprintf("Prometheus to see %g req/s", perSecond), func(ctx context.Context) error {
		value, err := d.env.prometheus.ask(ctx, d.query)
		if err == nil && math.Abs(value-perSecond) > 1e-9*perSecond {
			err = fmt.Errorf("%g req/s", value)
		}
		return err
	})
	if err == nil {
		d.tell.verified("Prometheus answers %g req/s", perSecond)
	}
	return err
}

// readQuery renders the query of the stored MetricProfile as the operator does.
func (d *demo) readQuery(ctx context.Context) error {
	var p v1alpha1.MetricProfile
	if err := d.client.Get(ctx, types.NamespacedName{Name: profile}, &p); err != nil {
		return err
	}
	var err error
	d.query, err = prometheus.Render(p.Spec.Query, prometheus.Vars{Namespace: namespace, Target: service})
	return err
}

// explain shows what helps to understand a failure.
func (d *demo) explain(ctx context.Context) {
	if d.kubectl != nil {
		if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler", service, "-o", "yaml"); err != nil {
			d.tell.say("(kubectl failed: " + err.Error() + ")")
		}
	}
	if o := d.env.operator; o.running != nil {
		if data, err := os.ReadFile(o.running.LogPath()); err == nil {
			d.tell.say("", "The end of the operator's log:")
			d.tell.output(tail(string(data), 40))
		}
	}
	if place, err := d.env.keepLogs(); err != nil {
		d.tell.say("", "The logs could not be kept: "+err.Error())
	} else {
		d.tell.say("", "The logs of all parts are in "+place+"/.")
	}
}

// tail is the last lines of a text.
func tail(text string, lines int) string {
	all := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// stay keeps everything up until the demo is interrupted.
func (d *demo) stay(ctx context.Context) {
	if d.env.cluster == nil {
		return
	}
	d.tell.say("", keepEnv+"=1: everything stays up. In another terminal, from the root of the checkout:", "",
		"export KUBECONFIG="+d.env.relative(d.env.cluster.Kubeconfig()),
		d.env.relative(filepath.Join(d.env.dir, "kubectl"))+" -n "+namespace+" get autoscaler,scalebinding,deployment",
		"curl -X POST '"+d.env.loadURL+"/rate?perSecond=1500'    # turn the load", "",
		"Prometheus     "+d.env.prometheus.url()+"/api/v1/query?query=up",
		"operator log   "+d.env.relative(filepath.Join(d.env.operator.dir, "operator.log")), "",
		"Ctrl-C stops and removes everything.")
	<-ctx.Done()
}
