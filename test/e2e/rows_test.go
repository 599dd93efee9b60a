//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling/prometheus"
	"example.com/platform/autoscale-operator/test/builders"
)

// A row has a Deployment of its own with rowReplicas, which the load on the service, at
// rowTarget items a second for each, asks for.
const (
	rowReplicas = 4
	rowTarget   = "210"
	// steady is the load without the noise of its measurement: that is for the other
	// experiments.
	steady = "round(" + load + ", 200)"
	// longEnough is more than the window and a poll interval: what has not scaled down
	// by then does not.
	longEnough = (window + 10) * time.Second
)

// row is what one experiment needs.
type row struct {
	*world
	name       string
	deployment *appsv1.Deployment
	profile    *v1alpha1.MetricProfile
	autoscaler *v1alpha1.AutoScaler
}

// rows are experiments beside each other: none touches another's Deployment.
func (w *world) rows() {
	for name, try := range map[string]func(*row){
		"an empty vector is not zero": func(r *row) {
			r.holdsWhile(func(p *v1alpha1.MetricProfile) {
				p.Spec.Query = `sum(rate(no_such_metric{namespace=$namespace}[1m]))`
			}, prometheus.ReasonNoData)
		},
		"NaN is not zero": func(r *row) {
			r.holdsWhile(func(p *v1alpha1.MetricProfile) { p.Spec.Query = "0 * " + load + " / (0 * " + load + ")" }, prometheus.ReasonInvalidValue)
		},
		"a timeout is not zero": func(r *row) {
			r.holdsWhile(func(p *v1alpha1.MetricProfile) { p.Spec.Endpoint = "hanging" }, prometheus.ReasonTimeout)
		},
		"one metric fails, another one asks for more":  (*row).scalesUpDegraded,
		"one metric fails, another one asks for fewer": (*row).holdsDegraded,
		"a dry run recommends and writes nothing":      (*row).dryRun,
		"paused, it recommends and writes nothing":     (*row).paused,
		"a target that is deleted and made anew":       (*row).recreated,
	} {
		w.beside(name, func(w *world) {
			r := &row{world: w, name: "row-" + shortHash(name)}
			r.deployment = deployment(shop, r.name, rowReplicas)
			r.profile = profile(r.name, steady)
			r.autoscaler = builders.MakeAutoScaler(shop, r.name).Target(r.name).Metric("items", r.name, rowTarget).
				Poll(5).Window(window).Obj()
			r.create(r.deployment, r.profile, r.autoscaler)
			r.Cleanup(func() { r.remove(r.autoscaler, r.deployment, r.profile) })
			r.says(shop, r.name, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)
			r.reaches(shop, r.name, rowReplicas, 2*soon)
			try(r)
			assert.NotEmpty(r, r.record.since(shop, r.name, time.Time{}), "its counts were recorded")
		})
	}
}

// asksFor makes the metric ask for a multiple of what it asked for.
func (r *row) asksFor(factor string) {
	r.Helper()
	r.measures(func(p *v1alpha1.MetricProfile) { p.Spec.Query = factor + " * " + steady })
}

func (r *row) measures(alter func(*v1alpha1.MetricProfile)) {
	r.Helper()
	r.until("the profile to be changed", soon, func(ctx context.Context) error {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.profile), r.profile); err != nil {
			return err
		}
		alter(r.profile)
		return r.client.Update(ctx, r.profile)
	})
}

// holdsWhile breaks the metric, and mends it again.
func (r *row) holdsWhile(broken func(*v1alpha1.MetricProfile), reason string) {
	r.Helper()
	r.measures(broken)
	message := r.says(shop, r.name, v1alpha1.ConditionMetricsAvailable, reason)
	r.says(shop, r.name, v1alpha1.ConditionScalingLimited, v1alpha1.ReasonAllMetricsInvalid)
	r.throughout("no sample is no reason to go", longEnough, r.keeps(r.name, rowReplicas))
	r.measures(func(p *v1alpha1.MetricProfile) { p.Spec.Query, p.Spec.Endpoint = steady, "main" })
	r.says(shop, r.name, v1alpha1.ConditionMetricsAvailable, v1alpha1.ReasonSamplesValid)
	r.report("- %s: %d replicas for %s, `%s: %s`", r.title(), rowReplicas, longEnough, reason, message)
}

// title is what the report calls a row.
func (r *row) title() string { return baseName(r.Name()) }

// addsAMetricThatFails adds a second metric that never has a sample.
func (r *row) addsAMetricThatFails() {
	r.Helper()
	broken := profile(r.name+"-broken", `sum(rate(no_such_metric{namespace=$namespace}[1m]))`)
	r.create(broken)
	r.Cleanup(func() { r.remove(broken) })
	r.change(r.autoscaler, func(a *v1alpha1.AutoScaler) {
		a.Spec.Metrics = append(a.Spec.Metrics, v1alpha1.MetricSpec{
			Name: "broken", Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: broken.Name, TargetPerReplica: "1",
		})
	})
	message := r.says(shop, r.name, v1alpha1.ConditionMetricsAvailable, prometheus.ReasonNoData)
	assert.Contains(r, message, "broken")
}

func (r *row) scalesUpDegraded() {
	r.addsAMetricThatFails()
	r.asksFor("2")
	took := r.reaches(shop, r.name, 2*rowReplicas, 2*soon)
	r.says(shop, r.name, v1alpha1.ConditionMetricsAvailable, prometheus.ReasonNoData)
	r.report("- %s: %d → %d replicas after %.0f s, MetricsAvailable is False", r.title(), rowReplicas, 2*rowReplicas, took.Seconds())
}

func (r *row) holdsDegraded() {
	r.addsAMetricThatFails()
	r.asksFor("0.3")
	r.says(shop, r.name, v1alpha1.ConditionScalingLimited, v1alpha1.ReasonSomeMetricsInvalid)
	r.throughout("half of the truth is no reason to go", longEnough, r.keeps(r.name, rowReplicas))
	r.report("- %s: %d replicas for %s", r.title(), rowReplicas, longEnough)
}

func (r *row) dryRun() {
	r.change(r.autoscaler, func(a *v1alpha1.AutoScaler) { a.Spec.DryRun = true })
	r.says(shop, r.name, v1alpha1.ConditionReady, v1alpha1.ReasonDryRun)
	r.until("the binding to be released", soon, func(ctx context.Context) error {
		b, err := r.binding(ctx, shop, r.name)
		if apierrors.IsNotFound(err) || err == nil && b.Status.Phase != v1alpha1.PhaseHeld {
			return nil
		}
		return errors.Join(err, errors.New("it is held"))
	})
	r.asksFor("2")
	r.recommends(2 * rowReplicas)
	r.throughout("a dry run writes nothing", 10*time.Second, r.keeps(r.name, rowReplicas))
	a, err := r.world.autoscaler(r.Context(), shop, r.name)
	require.NoError(r, err)
	assert.EqualValues(r, 2*rowReplicas, a.Status.Shadow.Replicas)
	r.report("- %s: %d recommended, the shadow has %d, the Deployment %d", r.title(), 2*rowReplicas, a.Status.Shadow.Replicas, rowReplicas)
}

func (r *row) paused() {
	r.change(r.autoscaler, func(a *v1alpha1.AutoScaler) { a.Spec.Paused, a.Spec.PauseReason = true, "acceptance" })
	r.says(shop, r.name, v1alpha1.ConditionReady, v1alpha1.ReasonPaused)
	r.asksFor("2")
	r.recommends(2 * rowReplicas)
	r.throughout("it is paused", 10*time.Second, r.keeps(r.name, rowReplicas))
	// By hand, as docs/manual-takeover.md says.
	r.kubectl("--namespace="+shop, "scale", "deployment", r.name, "--replicas=5")
	r.throughout("the person has it", 10*time.Second, r.keeps(r.name, 5))
	r.change(r.autoscaler, func(a *v1alpha1.AutoScaler) { a.Spec.Paused, a.Spec.PauseReason = false, "" })
	r.reaches(shop, r.name, 2*rowReplicas, 2*soon)
	r.report("- %s: %d recommended, 5 by hand stayed 5; resumed, it went to %d", r.title(), 2*rowReplicas, 2*rowReplicas)
}

// recommends waits for a recommendation.
func (r *row) recommends(count int32) {
	r.Helper()
	r.until(fmt.Sprintf("%d to be recommended", count), soon, func(ctx context.Context) error {
		a, err := r.world.autoscaler(ctx, shop, r.name)
		if err == nil && (a.Status.RecommendedReplicas == nil || *a.Status.RecommendedReplicas != count || a.Status.LastDecision == nil) {
			err = fmt.Errorf("the status is %+v", a.Status)
		}
		return err
	})
}

func (r *row) recreated() {
	old, err := r.binding(r.Context(), shop, r.name)
	require.NoError(r, err)
	require.Equal(r, r.deployment.UID, old.Spec.TargetUID)
	r.remove(r.deployment)
	r.deployment = deployment(shop, r.name, rowReplicas)
	r.create(r.deployment)
	r.until("the claim to be about the new one", soon, func(ctx context.Context) error {
		b, err := r.binding(ctx, shop, r.name)
		if err == nil && (b.Spec.TargetUID != r.deployment.UID || b.Status.Phase != v1alpha1.PhaseHeld) {
			err = fmt.Errorf("it is %+v, %+v", b.Spec, b.Status)
		}
		return err
	})
	r.says(shop, r.name, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)
	r.asksFor("0.6")
	began := time.Now()
	r.until("the new one to be scaled", 2*soon, func(context.Context) error {
		if len(r.record.since(shop, r.name, began)) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	b, err := r.binding(r.Context(), shop, r.name)
	require.NoError(r, err)
	r.report("- %s: the claim is about the new UID (epoch %d, then %d), and the new one is scaled", r.title(), old.Spec.Epoch, b.Spec.Epoch)
}
