package handover

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTimeout bounds what a person waits for a cluster that does not answer.
const completionTimeout = 3 * time.Second

// prefix is what an argument of a kind begins with.
func prefix(kind string) string {
	if kind == kindHPA {
		return "hpa/"
	}
	return "scaledobject/"
}

// complete offers the prefixes, and after one the names that the cluster has.
func (o *options) complete(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for kind := range kinds {
		if strings.HasPrefix(typed, prefix(kind)) {
			return o.names(c.Context(), kind), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return []string{prefix(kindHPA), prefix(kindScaledObject)}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// names are none where the cluster cannot be asked.
func (o *options) names(ctx context.Context, kind string) []string {
	namespace, err := o.kube.Namespace()
	if err != nil {
		return nil
	}
	reader, err := o.kube.Client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kinds[kind])
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.Limit(500)); err != nil {
		return nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = prefix(kind) + list.Items[i].Name
	}
	return names
}
