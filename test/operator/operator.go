// Package operator runs the operator's own program, built from the checkout, in
// front of a test's control plane: what such a test sees is what an install does.
package operator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/cluster/process"
	"example.com/platform/autoscale-operator/test/controlplane"
)

// Options describe one replica of the operator.
type Options struct {
	// Config is its configuration, as YAML.
	Config string
	// Args are added to its arguments.
	Args []string
}

// Start builds the operator and runs it under its own account, with its webhooks
// where the control plane expects them. It returns when the operator is ready, and
// stops it when the test ends. Where the test failed, its log is shown.
func Start(t *testing.T, cp *controlplane.ControlPlane, o Options) *process.Process {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(o.Config), 0o600))
	probes := freeAddress(t)
	p, err := process.Start(t.Context(), process.Spec{
		Name: "manager", Path: build(t, dir), Dir: dir,
		Args: append([]string{
			"--kubeconfig=" + cp.OperatorKubeconfig, "--config=" + config, "--namespace=" + install.Namespace,
			"--webhook-cert-dir=" + cp.WebhookCertDir, "--webhook-port=" + strconv.Itoa(cp.WebhookPort),
			"--metrics-bind-address=0", "--health-probe-bind-address=" + probes, "--leader-elect=true",
		}, o.Args...),
		Ready: func(ctx context.Context) error { return ready(ctx, "http://"+probes+"/readyz") },
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Stop())
		if t.Failed() {
			log, _ := os.ReadFile(p.LogPath())
			t.Logf("the operator's log:\n%s", log)
		}
	})
	return p
}

func build(t *testing.T, dir string) string {
	t.Helper()
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	path := filepath.Join(dir, "manager")
	command := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/manager")
	command.Dir = root
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return path
}

// freeAddress is one that nobody listened at a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func ready(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}
