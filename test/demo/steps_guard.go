package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// guard shows what the API server refuses, and what it lets through, while the
// replica count is held.
func (d *demo) guard(ctx context.Context) error {
	d.tell.step("Held: nobody else changes the replica count, and a release still goes out")
	_, err := d.await(ctx, soon, "the namespace's ScaleGuard to list "+service, func(ctx context.Context) error {
		var g v1alpha1.ScaleGuard
		err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "guard"}, &g)
		if _, listed := g.HolderOf(service); err == nil && !listed {
			err = fmt.Errorf("it holds %q", g.Spec.Held)
		}
		return err
	})
	if err != nil {
		return err
	}
	start := d.record.mark()
	holds := fmt.Sprintf("AutoScaler %s holds", service)
	if err := d.kubectl.refused(ctx, []string{holds, "pause it first"}, "-n", namespace, "scale", "deployment", service, "--replicas=1"); err != nil {
		return err
	}
	if err := d.kubectl.refused(ctx, []string{holds}, "apply", "-f", manifest("hpa-late.yaml")); err != nil {
		return err
	}
	d.tell.say("", "A release that still names its own count, 2, with a new image:")
	if err := d.kubectl.do(ctx, "apply", "-f", manifest("order-service-v2.yaml")); err != nil {
		return err
	}
	var deployment appsv1.Deployment
	if err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: service}, &deployment); err != nil {
		return err
	}
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "order-service:demo-2" {
		return &failure{expected: "the image of the release", seen: image}
	}
	if err := d.untouched(start); err != nil {
		return &failure{expected: "the replica count stays", seen: err.Error()}
	}
	if err := d.awaitReady(ctx, 20); err != nil {
		return err
	}
	d.tell.verified("refused: scaling by hand, a late HPA; the new image went out, and the count stayed 20")
	return nil
}

// awaitOpen waits until the binding says that others may change the count.
func (d *demo) awaitOpen(ctx context.Context) error {
	return d.kubectl.do(ctx, "-n", namespace, "wait", "scalebinding/"+service, "--for=jsonpath={.spec.guard}=Open", "--timeout=30s")
}
