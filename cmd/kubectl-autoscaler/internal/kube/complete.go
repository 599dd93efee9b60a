package kube

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completeWithin bounds a question to the cluster: a person waits with a finger on the tab.
const completeWithin = 3 * time.Second

// complete registers what the shell may offer for the flags. Whatever goes wrong, it
// offers nothing.
func (f *Flags) complete(flags *pflag.FlagSet) {
	for name, names := range map[string]func(context.Context) []string{
		clientcmd.FlagNamespace:    f.namespaces,
		clientcmd.FlagContext:      f.named(func(c *api.Config) []string { return keys(c.Contexts) }),
		clientcmd.FlagClusterName:  f.named(func(c *api.Config) []string { return keys(c.Clusters) }),
		clientcmd.FlagAuthInfoName: f.named(func(c *api.Config) []string { return keys(c.AuthInfos) }),
	} {
		flag := flags.Lookup(name)
		if flag == nil {
			continue
		}
		// cobra keeps these by the flag, for whichever commands have it.
		var holder cobra.Command
		holder.Flags().AddFlag(flag)
		_ = holder.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) { // it is there, and new
			return names(c.Context()), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

func (f *Flags) named(names func(*api.Config) []string) func(context.Context) []string {
	return func(context.Context) []string {
		config, err := f.config().RawConfig()
		if err != nil {
			return nil
		}
		return names(&config)
	}
}

func keys[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }

// namespaces of the cluster.
func (f *Flags) namespaces(ctx context.Context) []string {
	names, err := f.Names(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), metav1.NamespaceAll)
	if err != nil {
		return nil
	}
	return names
}

// Names are those of the first objects of a kind, for a person who is to choose one. A
// cluster that does not answer soon has none.
func (f *Flags) Names(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]string, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = completeWithin
	reader, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(kind)
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.Limit(500)); err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}
