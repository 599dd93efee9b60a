package main

import (
	"context"
	"errors"
	"net/http"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/certs"
	"example.com/platform/autoscale-operator/controller"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, corev1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

func newManager(config *rest.Config, o *options) (manager.Manager, error) {
	// The API server's priority and fairness governs the load; a limit of the
	// client's own would delay a fleet by minutes.
	config.QPS = -1
	config.UserAgent = controller.FieldManager
	return ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(),
		Cache: cache.Options{
			// A read of a kind that nobody watches is a mistake, not a reason to
			// watch the whole cluster.
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&appsv1.Deployment{}: {Transform: slimDeployment},
			},
		},
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		WebhookServer:                 webhook.NewServer(webhook.Options{Port: o.webhookPort, CertDir: o.webhookCertDir}),
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              controller.FieldManager,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &o.gracefulShutdown,
	})
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

// addChecks: alive is the process; ready is caches synced, webhooks serving, and
// a certificate that the API server can accept, on every replica, leader or not.
func addChecks(ctx context.Context, mgr manager.Manager, o *options) error {
	// The webhooks read these kinds on every replica; the others are indexed.
	for _, obj := range []client.Object{&appsv1.Deployment{}, &v1alpha1.MetricProfile{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, obj, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	synced := make(chan struct{})
	if err := mgr.Add(everywhere(func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			close(synced)
		}
		return nil
	})); err != nil {
		return err
	}
	cachesSynced := func(*http.Request) error {
		select {
		case <-synced:
			return nil
		default:
			return errors.New("the caches are not synced yet; if this lasts, look in the log for a missing permission")
		}
	}
	return errors.Join(
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddReadyzCheck("caches", cachesSynced),
		mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddReadyzCheck("certificate", certs.Checker(o.webhookCertDir, clock.RealClock{})),
	)
}

// everywhere is a runnable that does not wait for leadership.
type everywhere func(context.Context) error

func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection says that it runs on every replica.
func (everywhere) NeedLeaderElection() bool { return false }
