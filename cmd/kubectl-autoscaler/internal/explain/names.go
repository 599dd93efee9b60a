package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// nameOf takes a name as kubectl does: web, autoscaler/web, and what kubectl prints.
func nameOf(given string) (string, error) {
	kind, name, found := strings.Cut(given, "/")
	if !found {
		return given, nil
	}
	resource, group, _ := strings.Cut(strings.ToLower(kind), ".")
	group = strings.TrimPrefix(group, v1alpha1.GroupVersion.Version+".")
	known := slices.Contains([]string{"autoscaler", "autoscalers", "asc"}, resource) && (group == "" || group == v1alpha1.GroupVersion.Group)
	if !known || name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q: an AutoScaler is explained, as in autoscaler/web", given)
	}
	return name, nil
}

// nameMissing says what to name, and what there is.
func (o *options) nameMissing(ctx context.Context) error {
	const missing = "NAME is missing: say which AutoScaler, as in kubectl autoscaler explain web"
	namespace, names, err := o.names(ctx)
	switch {
	case err != nil:
		return errors.New(missing) // what there is cannot be read, and was not asked for
	case len(names) == 0:
		return fmt.Errorf("%s; there is none in namespace %s (kubectl get autoscalers -A lists all)", missing, namespace)
	}
	return fmt.Errorf("%s; in namespace %s there is %s", missing, namespace, strings.Join(names, ", "))
}

func (o *options) names(ctx context.Context) (namespace string, names []string, err error) {
	if namespace, err = o.kube.Namespace(); err != nil {
		return "", nil, err
	}
	names, err = o.kube.Names(ctx, v1alpha1.GroupVersion.WithKind("AutoScaler"), namespace)
	return namespace, names, err
}

// complete offers the names of AutoScalers, and nothing where the cluster cannot be asked.
func (o *options) complete(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_, names, err := o.names(c.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if kind, _, slashed := strings.Cut(typed, "/"); slashed {
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
