// Package crd holds the CustomResourceDefinitions as they are generated, and tells
// whether those of a cluster are old enough to lose what the operator writes.
package crd

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var manifests embed.FS

// Definitions are the ones of this version, by name.
func Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(paths))
	for _, path := range paths {
		text, err := manifests.ReadFile(path)
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, definition)
	}
	return all, nil
}

// OutdatedError says which definitions of the cluster are missing or too old.
type OutdatedError struct{ problems []string }

// Error names them, and the way out.
func (e *OutdatedError) Error() string {
	return strings.Join(e.problems, "; ") +
		"; bring the CRDs up to date before the operator: helm upgrade with crds.enabled=true, or kubectl apply --server-side --force-conflicts -f config/crd of this version"
}

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=autoscalers.autoscale.example.com;metricprofiles.autoscale.example.com;scalebindings.autoscale.example.com;scaleguards.autoscale.example.com,verbs=get

// Check gives an *OutdatedError where the cluster does not serve all that this version
// knows: the API server would drop fields that it does not know, and say nothing. A
// cluster that serves more is as it should be during an upgrade.
func Check(ctx context.Context, cluster client.Reader) error {
	known, err := Definitions()
	if err != nil {
		return err
	}
	var problems []string
	for _, definition := range known {
		var served apiextensionsv1.CustomResourceDefinition
		err := cluster.Get(ctx, types.NamespacedName{Name: definition.Name}, &served)
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, "CRD "+definition.Name+" is missing")
		case err != nil:
			return fmt.Errorf("looking at CRD %s: %w", definition.Name, err)
		default:
			if lacking := Lacking(&served, definition); len(lacking) > 0 {
				problems = append(problems, "CRD "+definition.Name+" is older than this operator: it lacks "+enumerate(lacking))
			}
		}
	}
	if len(problems) > 0 {
		return &OutdatedError{problems: problems}
	}
	return nil
}

// named is how many of the things that are lacking are named.
const named = 3

func enumerate(lacking []string) string {
	if more := len(lacking) - named; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(lacking[:named], ", "), more)
	}
	return strings.Join(lacking, ", ")
}
