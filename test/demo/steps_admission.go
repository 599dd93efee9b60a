package main

import (
	"context"
	"fmt"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// manifest is a manifest of the demo, as its path is typed at the checkout's root.
func manifest(name string) string { return filepath.Join("test", "demo", "manifests", name) }

func (d *demo) startUp(ctx context.Context) error {
	d.tell.step("A real control plane, a real Prometheus, and a service under load")
	d.tell.say("Everything runs as this user on loopback ports and is removed at the end.")
	// Prometheus needs a few seconds of history for a rate.
	if err := d.turn(900); err != nil {
		return err
	}
	if err := d.env.start(ctx, d.tell); err != nil {
		return err
	}
	if err := d.connect(); err != nil {
		return err
	}
	d.tell.say("", "The service has 2 replicas and bears 900 requests per second. What that number is",
		"and where it is asked for is defined by the administrator, in a MetricProfile.")
	if err := d.kubectl.do(ctx, "apply", "-f", manifest("order-service.yaml"), "-f", manifest("metricprofile.yaml")); err != nil {
		return err
	}
	if err := d.awaitReady(ctx, 2); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "deployment,metricprofile"); err != nil {
		return err
	}
	var err error
	if d.record, err = record(ctx, d.client, namespace, service); err != nil {
		return err
	}
	if err := d.readQuery(ctx); err != nil {
		return err
	}
	return d.awaitRate(ctx, 900)
}

// recommend applies the example, which is a dry run.
func (d *demo) recommend(ctx context.Context) error {
	d.tell.step("The example as printed is a dry run: it recommends and writes nothing")
	d.tell.say("Each replica is to carry 100 req/s, so 900 req/s need 9.")
	start := d.record.mark()
	if err := d.kubectl.do(ctx, "apply", "-f", filepath.Join("config", "samples", "autoscaler.yaml")); err != nil {
		return err
	}
	err := d.awaitStatus(ctx, "a recommendation of 9 from a dry run", func(a *v1alpha1.AutoScaler) error {
		if err := condition(a, v1alpha1.ConditionBound, metav1.ConditionFalse, v1alpha1.ReasonDryRun); err != nil {
			return err
		}
		return recommends(a, 9)
	})
	if err != nil {
		return err
	}
	for _, kind := range []string{"autoscaler", "scalebinding", "deployment"} {
		if err := d.kubectl.do(ctx, "-n", namespace, "get", kind); err != nil {
			return err
		}
	}
	if err := d.untouched(start); err != nil {
		return &failure{expected: "a dry run writes no replicas", seen: err.Error()}
	}
	if err := d.noBinding(ctx, service); err != nil {
		return err
	}
	d.tell.verified("recommended 9, the Deployment still has 2, and no ScaleBinding was claimed")
	return nil
}

func (d *demo) refuseBesideHPA(ctx context.Context) error {
	d.tell.step("A Deployment that an HPA scales already is refused")
	if err := d.kubectl.do(ctx, "apply", "-f", manifest("payment-service.yaml")); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "hpa"); err != nil {
		return err
	}
	if err := d.kubectl.refused(ctx, []string{"HorizontalPodAutoscaler", "payment-hpa"}, "apply", "-f", manifest("autoscaler-payment.yaml")); err != nil {
		return err
	}
	if err := d.notStored(ctx, "payment-service"); err != nil {
		return err
	}
	if err := d.noBinding(ctx, "payment-service"); err != nil {
		return err
	}
	d.tell.verified("refused, naming the HPA; neither an AutoScaler nor a ScaleBinding was stored")
	return nil
}

func (d *demo) refuseSecond(ctx context.Context) error {
	d.tell.step("A second AutoScaler for the same Deployment is refused")
	if err := d.kubectl.refused(ctx, []string{fmt.Sprintf("held by AutoScaler %q", service)}, "apply", "-f", manifest("autoscaler-second.yaml")); err != nil {
		return err
	}
	if err := d.notStored(ctx, "order-service-2"); err != nil {
		return err
	}
	d.tell.verified("refused, naming the holder and the way out")
	d.tell.say("", "A dry run of a request asks the same questions and claims nothing, here for a third", "Deployment that does not even exist yet.")
	if err := d.kubectl.do(ctx, "apply", "--dry-run=server", "-f", manifest("autoscaler-invoice.yaml")); err != nil {
		return err
	}
	if err := d.kubectl.do(ctx, "-n", namespace, "get", "autoscaler,scalebinding"); err != nil {
		return err
	}
	if err := d.notStored(ctx, "invoice-service"); err != nil {
		return err
	}
	if err := d.noBinding(ctx, "invoice-service"); err != nil {
		return err
	}
	d.tell.verified("the dry run was answered and left neither an AutoScaler nor a ScaleBinding")
	return nil
}

// noBinding verifies that a Deployment's replica count was not claimed.
func (d *demo) noBinding(ctx context.Context, deployment string) error {
	return d.absent(ctx, &v1alpha1.ScaleBinding{}, deployment, "no ScaleBinding "+deployment)
}

// notStored verifies that a refused AutoScaler does not exist.
func (d *demo) notStored(ctx context.Context, name string) error {
	return d.absent(ctx, &v1alpha1.AutoScaler{}, name, "no AutoScaler "+name)
}

func (d *demo) absent(ctx context.Context, obj client.Object, name, claim string) error {
	err := d.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return &failure{expected: claim, seen: fmt.Sprintf("there is one, created %s", obj.GetCreationTimestamp())}
}
