package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/cluster/process"
)

// operatorConfig names the demo's Prometheus as the endpoint of the samples.
const operatorConfig = `limits:
  max_replicas: 1000
endpoints:
- name: main
  url: %s
`

// samplesMetric counts the operator's samples by reason: what it has evaluated.
const samplesMetric = "autoscale_metric_samples_total"

// operator is the manager built from this checkout, as a process under its own
// account.
type operator struct {
	root, dir string
	// webhookPort, metricsPort and probePort are its ports.
	webhookPort, metricsPort, probePort int
	running                             *process.Process
}

func (o *operator) binary() string { return filepath.Join(o.root, "bin", "manager") }

// build compiles the manager.
func (o *operator) build(ctx context.Context) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", o.binary(), "./cmd/manager")
	build.Dir = o.root
	if output, err := build.CombinedOutput(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("go build ./cmd/manager: %w\n%s", err, output))
	}
	return nil
}

// start installs what the operator needs with the administrator's rights, and
// runs it without them.
func (o *operator) start(ctx context.Context, admin *rest.Config, prometheusURL string) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	installed, err := install.Apply(ctx, admin, install.Options{Root: o.root, Dir: o.dir, WebhookPort: o.webhookPort, Guard: true})
	if err != nil {
		return err
	}
	config := filepath.Join(o.dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, operatorConfig, prometheusURL), 0o600); err != nil {
		return err
	}
	o.running, err = process.Start(ctx, process.Spec{
		Name: "operator", Path: o.binary(), Dir: o.dir,
		Args: []string{
			"--kubeconfig=" + installed.Kubeconfig,
			"--config=" + config,
			"--namespace=" + install.Namespace,
			"--webhook-cert-dir=" + installed.CertDir,
			"--webhook-port=" + strconv.Itoa(installed.WebhookPort),
			"--metrics-bind-address=" + loopback + ":" + strconv.Itoa(o.metricsPort),
			"--health-probe-bind-address=" + loopback + ":" + strconv.Itoa(o.probePort),
			"--metrics-secure=false",
			"--webhook-configurations=autoscale-operator",
			"--shutdown-delay=0s",
			"--leader-elect=true",
		},
		Ready: answersOK("http://" + loopback + ":" + strconv.Itoa(o.probePort) + "/readyz"),
	})
	return err
}

func (o *operator) stop() error {
	if o.running == nil {
		return nil
	}
	return o.running.Stop()
}

// samples is how many samples the operator has taken, those with the given
// reason only: each is one evaluation of the demo's one AutoScaler.
func (o *operator) samples(ctx context.Context, reason string) (int, error) {
	url := "http://" + loopback + ":" + strconv.Itoa(o.metricsPort) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	return countReason(families[samplesMetric], reason), nil
}

func countReason(family *dto.MetricFamily, reason string) int {
	total := 0.0
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if label.GetName() == "reason" && label.GetValue() == reason {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}
