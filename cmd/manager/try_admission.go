package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// tryAdmissionCommand is the argument that makes the program try a cluster's admission
// and end: `helm test` runs it, in the operator's own image, which holds nothing else.
const tryAdmissionCommand = "try-admission"

// Bounds of a try: after an install the API server learns of webhooks a moment later.
const (
	tryAgainAfter = time.Second
	tryFor        = 30 * time.Second
)

// tryAdmission asks for an AutoScaler that only the webhook can object to, as a dry run,
// until the webhook does.
func tryAdmission(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(tryAdmissionCommand, flag.ContinueOnError)
	namespace := flags.String("namespace", metav1.NamespaceDefault, "namespace that the operator watches, for the AutoScaler that is not stored")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	return tryUntilRefused(ctx, client.NewDryRunClient(c), *namespace, tryAgainAfter, tryFor, out)
}

func tryUntilRefused(ctx context.Context, c client.Client, namespace string, pause, limit time.Duration, out io.Writer) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pause, limit, true, func(ctx context.Context) (bool, error) {
		said, err := refusal(ctx, c, namespace)
		if err == nil {
			fmt.Fprintf(out, "admission works: an AutoScaler without its MetricProfile is refused:\n%s\n", said)
			return true, nil
		}
		// The try that the time cuts off says nothing; the one before it did.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// refusal is what the webhook says about an AutoScaler whose MetricProfile nobody has.
// The error is of anybody else, or that nobody objects.
func refusal(ctx context.Context, c client.Client, namespace string) (string, error) {
	const missing = "helm-test-no-such-profile"
	err := c.Create(ctx, &v1alpha1.AutoScaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "helm-test"},
		Spec: v1alpha1.AutoScalerSpec{
			TargetRef:   v1alpha1.TargetReference{Name: "helm-test-no-such-deployment"},
			MinReplicas: 1, MaxReplicas: 1,
			Metrics: []v1alpha1.MetricSpec{{Name: "load", Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: missing, TargetPerReplica: "1"}},
		},
	})
	switch {
	case err == nil:
		return "", fmt.Errorf("an AutoScaler of the MetricProfile %q, which does not exist, was admitted to namespace %s: nobody asks the webhook; look at the ValidatingWebhookConfiguration", missing, namespace)
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.metrics[0].metricProfileRef"):
		return err.Error(), nil
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("this account may not try it: %w", err)
	default:
		return "", fmt.Errorf("the webhook did not answer: %w", err)
	}
}
