// Package handover drafts what takes the place of an HPA or a ScaledObject.
package handover

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/kube"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/manifest"
)

const long = `Draft the MetricProfile and the AutoScaler that would take the place of an HPA or of a
ScaledObject with Prometheus triggers. Nothing is written to the cluster.

The draft goes to the standard output, to be kept in a file; what of the other's settings
has no counterpart, and the commands of the hand-over, go to the standard error. The draft
is a dry run that waits (dryRun: true, claimPolicy: Wait): it recommends beside the other
one, and can stand by until that is deleted.`

const example = `  # From an HPA of the cluster
  kubectl autoscaler handover hpa/web -n production > draft.yaml

  # From a file, without a cluster
  kubectl autoscaler handover -f scaledobject.yaml --endpoint main > draft.yaml

  # One of several in what a chart gives
  helm template shop ./shop | kubectl autoscaler handover -f - hpa/web > draft.yaml`

const (
	kindHPA          = "HorizontalPodAutoscaler"
	kindScaledObject = "ScaledObject"
)

// kinds that can be handed over.
var kinds = map[string]schema.GroupVersionKind{
	kindHPA:          {Group: autoscalingv2.GroupName, Version: "v2", Kind: kindHPA},
	kindScaledObject: {Group: "keda.sh", Version: "v1alpha1", Kind: kindScaledObject},
}

type options struct {
	kube     kube.Flags
	file     string
	endpoint string
	streams  cli.Streams
}

// Command is kubectl autoscaler handover.
func Command(streams cli.Streams) *cobra.Command {
	o := &options{streams: streams}
	c := &cobra.Command{
		Use:               "handover (hpa/NAME | scaledobject/NAME | -f FILE [hpa/NAME | scaledobject/NAME])",
		Short:             "Draft what takes the place of an HPA or a ScaledObject",
		Long:              long,
		Example:           example,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: o.complete,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	o.kube.Add(flags)
	flags.StringVarP(&o.file, "filename", "f", "", "File with the HPA or ScaledObject, - for the standard input; the cluster is not asked then. Of several in it say which one; other kinds are passed over.")
	flags.StringVar(&o.endpoint, "endpoint", "main", "Name of the Prometheus endpoint in the operator's configuration.")
	return c
}

func (o *options) run(ctx context.Context, args []string) error {
	u, facts, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	d, err := translate(u, facts)
	if err != nil {
		return err
	}
	if err := d.manifest(o.streams.Out); err != nil {
		return err
	}
	d.advice(o.streams.Err)
	return nil
}

// translate makes the draft of an object of either kind.
func translate(u *unstructured.Unstructured, f Facts) (*Draft, error) {
	if err := identified(u); err != nil {
		return nil, fmt.Errorf("%s: %w", u.GetKind(), err)
	}
	if field := manifest.ExtremeQuantity(u.Object); field != "" {
		return nil, fmt.Errorf("%s %s/%s: %s is no quantity that means anything: its number is too long to be written out", u.GetKind(), u.GetNamespace(), u.GetName(), field)
	}
	if u.GetKind() == kindScaledObject {
		return FromScaledObject(u, f)
	}
	var hpa autoscalingv2.HorizontalPodAutoscaler
	if err := decode(u, &hpa); err != nil {
		return nil, err
	}
	return FromHPA(&hpa, f)
}

// decode is exact about upper and lower case, as the API server: Name is not name, which
// has been looked at.
func decode(u *unstructured.Unstructured, into any) error {
	data, err := u.MarshalJSON()
	if err == nil {
		err = kjson.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

func (o *options) read(ctx context.Context, args []string) (*unstructured.Unstructured, Facts, error) {
	facts := Facts{Endpoint: o.endpoint}
	if o.file == "" && len(args) == 0 {
		return nil, facts, errors.New("say what is handed over: hpa/NAME or scaledobject/NAME of the cluster, or -f FILE")
	}
	var kind, name string
	if len(args) > 0 {
		var err error
		if kind, name, err = parseReference(args); err != nil {
			return nil, facts, err
		}
	}
	if o.file != "" {
		u, err := o.readFile(kind, name)
		return u, facts, err
	}
	namespace, err := o.kube.Namespace()
	if err != nil {
		return nil, facts, err
	}
	reader, err := o.kube.Client()
	if err != nil {
		return nil, facts, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kinds[kind])
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u); {
	case meta.IsNoMatchError(err):
		return nil, facts, fmt.Errorf("this cluster does not serve %ss: is KEDA installed?", kind)
	case apierrors.IsNotFound(err):
		return nil, facts, fmt.Errorf("there is no %s %s in namespace %s", kind, name, namespace)
	case err != nil:
		return nil, facts, fmt.Errorf("read %s %s/%s: %w", kind, namespace, name, err)
	}
	err = o.learn(ctx, reader, u, &facts)
	return u, facts, err
}

// learn looks at the Deployment. One that is not there, or may not be read, makes the
// draft less exact, and its notes say so.
func (o *options) learn(ctx context.Context, reader client.Reader, u *unstructured.Unstructured, f *Facts) error {
	name, _, err := unstructured.NestedString(u.Object, "spec", "scaleTargetRef", "name")
	if err != nil {
		return err
	}
	var d appsv1.Deployment
	err = reader.Get(ctx, client.ObjectKey{Namespace: u.GetNamespace(), Name: name}, &d)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		fmt.Fprintf(o.streams.Err, "Deployment %s is not looked at: %s\n\n", cli.Plain(u.GetNamespace()+"/"+name), cli.Plain(err.Error()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Deployment %s/%s: %w", u.GetNamespace(), name, err)
	}
	if d.Spec.Replicas != nil {
		f.Replicas = *d.Spec.Replicas
	}
	f.Requests = map[string]map[string]float64{}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		f.Requests[c.Name] = map[string]float64{}
		for resource, amount := range c.Resources.Requests {
			f.Requests[c.Name][string(resource)] = amount.AsApproximateFloat64()
		}
	}
	return nil
}
