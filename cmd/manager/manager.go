package main

import (
	"context"
	"crypto/tls"
	"unique"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme,
		admissionv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// newProcess makes the manager, and what must be there before it: the source of the
// serving certificate, and the probes.
func newProcess(config *rest.Config, o *options) (*process, error) {
	// The API server's priority and fairness governs the load; a limit of the
	// client's own would delay a fleet by minutes.
	config.QPS = -1
	config.UserAgent = controller.FieldManager
	serving, err := newServing(config, o)
	if err != nil {
		return nil, err
	}
	p := &process{options: o, probes: &probes{log: ctrl.Log.WithName("readiness")}, caches: &caches{namespaces: o.watchNamespaces}, serving: serving}
	p.caches.gone = p.isGone
	p.mgr, err = newManager(config, o, p)
	return p, err
}

// isGone says that a namespace does not exist, if that can be told. It is asked when the
// manager runs.
func (p *process) isGone(ctx context.Context, namespace string) bool {
	err := p.mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	return apierrors.IsNotFound(err)
}

func newManager(config *rest.Config, o *options, p *process) (manager.Manager, error) {
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(),
		Cache: cache.Options{
			// A read of a kind that nobody watches is a mistake, not a reason to
			// watch the whole cluster.
			ReaderFailOnMissingInformer: true,
			DefaultNamespaces:           cachedNamespaces(o.watchNamespaces),
			NewInformer:                 p.caches.newInformer,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&appsv1.Deployment{}: {Transform: slimDeployment},
			},
		},
		Metrics: metricsOptions(o, p.serving),
		// The probes are our own.
		HealthProbeBindAddress: "0",
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: o.webhookPort, TLSOpts: []func(*tls.Config){p.serving.use},
		}),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              controller.FieldManager,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &o.gracefulShutdown,
	})
}

// cachedNamespaces are those that are listed and watched; nil stands for all. What
// has no namespace is cached in any case.
func cachedNamespaces(names []string) map[string]cache.Config {
	if len(names) == 0 {
		return nil
	}
	cached := map[string]cache.Config{}
	for _, name := range names {
		cached[name] = cache.Config{}
	}
	return cached
}

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// metricsOptions serve the metrics to those who may get the path /metrics, unless
// that is turned off.
func metricsOptions(o *options, serving *serving) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.metricsAddress}
	if o.metricsSecure {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
		options.TLSOpts = []func(*tls.Config){serving.use}
	}
	return options
}

// slimDeployment keeps what a decision needs of a Deployment: a cluster's pod
// templates would fill the cache.
func slimDeployment(obj any) (any, error) {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return obj, nil
	}
	d.Annotations, d.Labels, d.OwnerReferences, d.Finalizers = nil, nil, nil, nil
	d.Spec = appsv1.DeploymentSpec{Replicas: d.Spec.Replicas}
	d.Status = appsv1.DeploymentStatus{ReadyReplicas: d.Status.ReadyReplicas}
	d.ManagedFields = replicaManagers(d.ManagedFields)
	return d, nil
}

// onlyReplicas is shared by all entries that the cache keeps; whoever reads from the
// cache gets a copy.
var onlyReplicas = metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)

// replicaManagers keeps of managedFields who set spec.replicas, and by which
// subresource. The names are few in a cluster, and stored once.
func replicaManagers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for i := range entries {
		f := &entries[i]
		// A status has replicas too, and is most of what changes.
		if f.Subresource == "status" || !binding.OwnsReplicas(f) {
			continue
		}
		kept = append(kept, metav1.ManagedFieldsEntry{
			Manager: unique.Make(f.Manager).Value(), Subresource: unique.Make(f.Subresource).Value(), FieldsV1: onlyReplicas,
		})
	}
	return kept
}

// addProbes: alive is the process; ready is caches synced, webhooks serving, and
// a certificate that the API server can accept, on every replica, leader or not.
func (p *process) addProbes(ctx context.Context) error {
	if err := p.caches.open(ctx, p.mgr.GetCache()); err != nil {
		return err
	}
	started := p.mgr.GetWebhookServer().StartedChecker()
	p.probes.checks = []probe{
		{"caches", p.caches.check},
		{"certificate", p.serving.Check},
		{"webhooks", func() error { return started(nil) }},
	}
	return p.probes.serve(ctx, p.mgr, p.options.probeAddress)
}

// everywhere is a runnable that does not wait for leadership.
type everywhere func(context.Context) error

func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says that it runs on every replica.
func (everywhere) NeedLeaderElection() bool { return false }
