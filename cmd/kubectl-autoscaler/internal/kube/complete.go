package kube

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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
	config, err := f.RESTConfig()
	if err != nil {
		return nil
	}
	config.Timeout = completeWithin
	cluster, err := corev1.NewForConfig(config)
	if err != nil {
		return nil
	}
	all, err := cluster.Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(all.Items))
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	return names
}
