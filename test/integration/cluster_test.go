//go:build integration

package integration

import (
	"context"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// startCluster starts a control plane from KUBEBUILDER_ASSETS where that is set
// and has what is needed, else from the project's own cache.
func startCluster(ctx context.Context, dir string, o cluster.Options) (*cluster.Cluster, error) {
	o.Dir, o.Progress = dir, os.Stderr
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		set, err := binaries.FromDir(assets, o.Tools()...)
		if err != nil {
			return nil, err
		}
		o.Binaries = set
	}
	return cluster.Start(ctx, o)
}

// tryUnknownProfile creates, as a dry run, what only the webhook refuses.
func tryUnknownProfile(ctx context.Context, namespace string) error {
	a := builders.MakeAutoScaler(namespace, "probe").Metric("load", "missing", "1").Obj()
	return admin.Create(ctx, a, client.DryRunAll)
}
