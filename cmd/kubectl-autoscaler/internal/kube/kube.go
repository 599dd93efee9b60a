// Package kube finds the cluster as kubectl does: its flags, its kubeconfig, its current
// namespace.
package kube

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// Flags are kubectl's own about which cluster, as whom, and which namespace.
type Flags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// AllNamespaces is -A.
	AllNamespaces bool
}

// Add registers --kubeconfig, --context, --cluster, --user, --server, --as, --token,
// --request-timeout, -n and the rest of what kubectl has.
func (f *Flags) Add(flags *pflag.FlagSet) {
	f.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&f.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use.")
	clientcmd.BindOverrideFlags(&f.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	if n := flags.Lookup(clientcmd.FlagNamespace); n != nil {
		n.Shorthand, n.Usage = "n", "The namespace to look at; that of the context otherwise."
	}
	f.complete(flags)
}

// AddAll registers -A too.
func (f *Flags) AddAll(flags *pflag.FlagSet) {
	f.Add(flags)
	flags.BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Look at all namespaces.")
}

func (f *Flags) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, &f.overrides)
}

// Namespace is the one that is meant; empty for all.
func (f *Flags) Namespace() (string, error) {
	if f.AllNamespaces {
		return metav1.NamespaceAll, nil
	}
	namespace, _, err := f.config().Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return metav1.NamespaceDefault, nil // as kubectl, where there is no kubeconfig
	}
	if err != nil {
		return "", fmt.Errorf("which namespace is meant: %w", err)
	}
	return namespace, nil
}

// Given is the namespace of -n alone.
func (f *Flags) Given() string { return f.overrides.Context.Namespace }

// RESTConfig is the configuration of a client.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	config, err := f.config().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("which cluster is meant: there is no kubeconfig, or no current context in it; name the file with --kubeconfig or KUBECONFIG, and a context of it with --context")
	}
	if err != nil {
		return nil, fmt.Errorf("which cluster is meant: %w", err)
	}
	config.UserAgent = "kubectl-autoscaler"
	config.QPS, config.Burst = 50, 100 // as kubectl: one person's questions
	return config, nil
}

// Client reads and writes as the person may. Its reads are live.
func (f *Flags) Client() (client.WithWatch, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the cluster at %s: %w", config.Host, err)
	}
	return c, nil
}

// NewScheme has the kinds that the plugin reads.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}
