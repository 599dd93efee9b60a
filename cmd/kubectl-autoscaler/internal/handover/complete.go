package handover

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

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
	names, err := o.kube.Names(ctx, kinds[kind], namespace)
	if err != nil {
		return nil
	}
	for i := range names {
		names[i] = prefix(kind) + names[i]
	}
	return names
}
