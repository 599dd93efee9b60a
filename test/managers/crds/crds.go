// Package crds gives the CustomResourceDefinitions of other replica managers to
// tests.
package crds

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// KEDA's release, as the go command knows it. The checksum pins its content.
const (
	kedaModule = "github.com/kedacore/keda/v2@v2.21.0"
	kedaSum    = "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps="
)

// ScaledObject is KEDA's own CRD, from its module, which the go command downloads
// once.
func ScaledObject(ctx context.Context) (*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := module(ctx, kedaModule, kedaSum)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "config", "crd", "bases", "keda.sh_scaledobjects.yaml"))
	if err != nil {
		return nil, err
	}
	return decode(data)
}

//go:embed watermarkpodautoscaler.yaml
var watermarkPodAutoscaler []byte

// WatermarkPodAutoscaler is a CRD of the names and of those fields of Datadog's
// WatermarkPodAutoscaler that tell what it scales; see its file.
func WatermarkPodAutoscaler() (*apiextensionsv1.CustomResourceDefinition, error) {
	return decode(watermarkPodAutoscaler)
}

func decode(data []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	return crd, nil
}

// module gives the folder of a module's content. It is read as data: the module
// is no dependency of the project's.
func module(ctx context.Context, module, sum string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Env = append(os.Environ(), "GOWORK=off")
	command.Dir = os.TempDir() // outside of any module, whose go.sum it would write
	out, err := command.Output()
	var found struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		return "", fmt.Errorf("go mod download %s: %w", module, errors.Join(err, jsonErr))
	}
	switch {
	case found.Error != "":
		return "", fmt.Errorf("go mod download %s: %s", module, found.Error)
	case err != nil:
		return "", fmt.Errorf("go mod download %s: %w", module, err)
	case found.Sum != sum:
		return "", fmt.Errorf("go mod download %s: its checksum is %s, not %s", module, found.Sum, sum)
	}
	return found.Dir, nil
}
