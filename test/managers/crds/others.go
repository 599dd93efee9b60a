package crds

import (
	"context"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Releases of what the chart makes objects of, as the go command knows them. The checksums
// pin their content.
const (
	certManagerModule        = "github.com/cert-manager/cert-manager@v1.21.2"
	certManagerSum           = "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68="
	prometheusOperatorModule = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	prometheusOperatorSum    = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
)

// CertManager are cert-manager's own CRDs of Issuers and Certificates.
func CertManager(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read(ctx, certManagerModule, certManagerSum, filepath.Join("deploy", "crds"),
		"cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml", "cert-manager.io_clusterissuers.yaml")
}

// PrometheusOperator are the Prometheus operator's own CRDs of ServiceMonitors and
// PrometheusRules.
func PrometheusOperator(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read(ctx, prometheusOperatorModule, prometheusOperatorSum, filepath.Join("example", "prometheus-operator-crd"),
		"monitoring.coreos.com_servicemonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml")
}

func read(ctx context.Context, name, sum, folder string, files ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := module(ctx, name, sum)
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(dir, folder, file))
		if err != nil {
			return nil, err
		}
		crd, err := decode(data)
		if err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return all, nil
}
