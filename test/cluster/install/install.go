// Package install puts the operator's manifests of a checkout into a cluster,
// for an operator that runs outside of it: CRDs, its account with the least
// privileges that it needs, its webhooks, its guard, and the files that it is
// started with.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// Namespace is where the operator has its account and its lease.
	Namespace = "autoscale-operator-system"
	// ServiceAccount is the operator's account in Namespace.
	ServiceAccount = "autoscale-operator"
	// fieldManager owns what is applied.
	fieldManager = "autoscale-operator-install"
)

const (
	// tokenValid is how long the operator's token lasts; installing again makes a new one.
	tokenValid = 7 * 24 * time.Hour
	// effectiveWithin bounds the wait for what was applied to take effect.
	effectiveWithin = 30 * time.Second
)

// Options say what is installed and for whom.
type Options struct {
	// Root is the checkout whose config/ folder is installed.
	Root string
	// Dir receives the operator's kubeconfig and certificate.
	Dir string
	// WebhookPort is the port of 127.0.0.1 on which the operator will serve its
	// webhooks; 0 installs no webhooks.
	WebhookPort int
	// Guard installs the admission policies that keep held replica counts.
	Guard bool
}

// Installation is what an operator is started with.
type Installation struct {
	// Config is the operator's client configuration: its own account, never an
	// administrator's.
	Config *rest.Config
	// Kubeconfig is the same as a file.
	Kubeconfig string
	// CertDir holds tls.crt and tls.key for the webhooks.
	CertDir string
	// WebhookPort is the port that the webhooks were registered with, or 0.
	WebhookPort int
}

// Apply installs, with admin's rights, or brings up to date what is there. It
// returns when the API server serves the new kinds, grants the operator's rights and
// has the guard in force.
func Apply(ctx context.Context, admin *rest.Config, options Options) (*Installation, error) {
	i, err := newInstaller(admin, options)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(i.certDir(), 0o700); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{i.kinds, i.account, i.roles, i.webhooks, i.guard} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("install the operator: %w", err)
		}
	}
	result := &Installation{
		Kubeconfig:  filepath.Join(options.Dir, "operator.kubeconfig"),
		CertDir:     i.certDir(),
		WebhookPort: options.WebhookPort,
	}
	if result.Config, err = i.operatorConfig(ctx, result.Kubeconfig); err != nil {
		return nil, fmt.Errorf("install the operator: its kubeconfig: %w", err)
	}
	if err := i.permitted(ctx, result.Config); err != nil {
		return nil, fmt.Errorf("install the operator: its roles: %w", err)
	}
	return result, nil
}

type installer struct {
	admin   kubernetes.Interface
	objects dynamic.Interface
	mapper  meta.ResettableRESTMapper
	config  *rest.Config
	options Options
}

func newInstaller(config *rest.Config, options Options) (installer, error) {
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return installer{}, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return installer{}, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(admin.Discovery()))
	return installer{admin: admin, objects: objects, mapper: mapper, config: config, options: options}, nil
}

func (i installer) certDir() string { return filepath.Join(i.options.Dir, "webhook-certs") }

// kinds applies the CRDs and waits until their kinds are served.
func (i installer) kinds(ctx context.Context) error {
	crds, err := i.read("config/crd", true)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := i.apply(ctx, crd); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := i.served(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// served waits until discovery names the kind of a CRD, which is after the API
// server has accepted the CRD's names and schema.
func (i installer) served(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, err := unstructured.NestedString(crd.Object, "spec", "group")
	if err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return err
	}
	plural, _, err := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	if err != nil {
		return err
	}
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		groupVersion := fmt.Sprintf("%s/%v", group, version["name"])
		err := eventually(ctx, func(context.Context) error {
			list, err := i.admin.Discovery().ServerResourcesForGroupVersion(groupVersion)
			if err != nil {
				return err
			}
			for _, resource := range list.APIResources {
				if resource.Name == plural {
					return nil
				}
			}
			return fmt.Errorf("%s lacks %s", groupVersion, plural)
		})
		if err != nil {
			return fmt.Errorf("CRD %s is not served: %w", crd.GetName(), err)
		}
	}
	return nil
}

// eventually calls f until it succeeds; when time is up its last error is returned.
func eventually(ctx context.Context, f func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, effectiveWithin, true, func(ctx context.Context) (bool, error) {
		last = f(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(last, err)
	}
	return nil
}

// account applies the operator's namespace and ServiceAccount.
func (i installer) account(ctx context.Context) error {
	namespace := object("v1", "Namespace", "", Namespace)
	account := object("v1", "ServiceAccount", Namespace, ServiceAccount)
	return errors.Join(i.apply(ctx, namespace), i.apply(ctx, account))
}

// operatorConfig asks for a token of the operator's account.
func (i installer) operatorConfig(ctx context.Context, path string) (*rest.Config, error) {
	seconds := int64(tokenValid / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := i.admin.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(i.config)
	config.BearerToken = answer.Status.Token
	config.QPS = -1
	return config, writeKubeconfig(path, config)
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = ServiceAccount
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: Namespace}
	kubeconfig.CurrentContext = name
	return clientcmd.WriteToFile(*kubeconfig, path)
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// apply is a server-side apply.
func (i installer) apply(ctx context.Context, o *unstructured.Unstructured) error {
	what := fmt.Sprintf("%s %s", strings.ToLower(o.GetKind()), o.GetName())
	kind := o.GroupVersionKind()
	mapping, err := i.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var resource dynamic.ResourceInterface = i.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = i.objects.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	if _, err := resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// webhookURL is where the API server reaches the operator.
func (i installer) webhookURL(path string) string {
	return "https://" + WebhookHost + ":" + strconv.Itoa(i.options.WebhookPort) + path
}
