package crds

import (
	"context"
	_ "embed"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The controller of Flux's Kustomizations, as in Flux 2.9, as the go command knows it.
const (
	kustomizeModule = "github.com/fluxcd/kustomize-controller@v1.9.6"
	kustomizeSum    = "h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE="
)

// Kustomization is Flux's own CRD, from its module, which the go command downloads once.
func Kustomization(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := module(ctx, kustomizeModule, kustomizeSum)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "config", "crd", "bases", "kustomize.toolkit.fluxcd.io_kustomizations.yaml"))
	if err != nil {
		return nil, err
	}
	return decode(data)
}

//go:embed application.yaml
var application []byte

// Application is a CRD of those fields of Argo CD's Application that the docs use; see
// its file.
func Application() (*apiextensionsv1.CustomResourceDefinition, error) { return decode(application) }

//go:embed helmrelease.yaml
var helmRelease []byte

// HelmRelease is a CRD of those fields of Flux's HelmRelease that the docs use; see its
// file.
func HelmRelease() (*apiextensionsv1.CustomResourceDefinition, error) { return decode(helmRelease) }
