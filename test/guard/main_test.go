//go:build integration

// Package guard holds the guard's admission policies to their promises on a real API
// server.
package guard

import (
	"context"
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
)

var (
	// shared is the control plane of all tests but those that break it.
	shared *controlplane.ControlPlane
	// scheme knows every kind that the tests use.
	scheme = runtime.NewScheme()
	// kubectlPath is the real kubectl.
	kubectlPath string
	// root is the checkout.
	root string
)

func TestMain(m *testing.M) {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, apiextensionsv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	set, err := binaries.Build(context.Background(), os.Stderr, binaries.Kubectl)
	if err == nil {
		root, err = binaries.CheckoutRoot()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	kubectlPath = set.Path(binaries.Kubectl)
	// The controllers make the ReplicaSets that a rollback needs, and delete.
	controlplane.Main(m, controlplane.Options{Guard: true, Controllers: true}, func(cp *controlplane.ControlPlane) { shared = cp })
}
