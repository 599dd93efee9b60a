// Package operator runs the operator's own program, built from the checkout, in
// front of a test's control plane: what such a test sees is what an install does.
package operator

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	// Args are added to its arguments; of a flag that is there twice, the last one
	// counts.
	Args []string
}

// Operator is a replica that runs.
type Operator struct {
	*process.Process
	probes string
}

// Start builds the operator and runs it under its own account, with its webhooks
// where the control plane expects them. It returns when the operator is ready, and
// stops it when the test ends. Where the test failed, its log is shown.
func Start(t *testing.T, cp *controlplane.ControlPlane, o Options) *Operator {
	t.Helper()
	return run(t, cp, o, true)
}

// Run is Start, but does not wait until the operator is ready.
func Run(t *testing.T, cp *controlplane.ControlPlane, o Options) *Operator {
	t.Helper()
	return run(t, cp, o, false)
}

func run(t *testing.T, cp *controlplane.ControlPlane, o Options, wait bool) *Operator {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(o.Config), 0o600))
	operator := &Operator{probes: "http://" + FreeAddress(t)}
	spec := process.Spec{
		Name: "manager", Path: build(t, dir), Dir: dir,
		Args: append([]string{
			"--kubeconfig=" + cp.OperatorKubeconfig, "--config=" + config, "--namespace=" + install.Namespace,
			"--webhook-cert-dir=" + cp.WebhookCertDir, "--webhook-port=" + strconv.Itoa(cp.WebhookPort),
			"--webhook-configurations=autoscale-operator",
			"--metrics-bind-address=0", "--health-probe-bind-address=" + strings.TrimPrefix(operator.probes, "http://"),
			"--leader-elect=true", "--shutdown-delay=0s",
		}, o.Args...),
	}
	if wait {
		spec.Ready = func(ctx context.Context) error {
			_, err := operator.Ready(ctx)
			return err
		}
	}
	var err error
	operator.Process, err = process.Start(t.Context(), spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, operator.Stop())
		if t.Failed() {
			t.Logf("the operator's log:\n%s", operator.Log())
		}
	})
	return operator
}

// Log is what the operator has written so far.
func (o *Operator) Log() string {
	log, _ := os.ReadFile(o.LogPath())
	return string(log)
}

// Ready gives what /readyz says, and an error unless that is that the operator is
// ready.
func (o *Operator) Ready(ctx context.Context) (string, error) { return get(ctx, o.probes+"/readyz") }

// Alive gives an error unless /healthz says that the operator is alive.
func (o *Operator) Alive(ctx context.Context) error {
	_, err := get(ctx, o.probes+"/healthz")
	return err
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

// FreeAddress is one that nobody listened at a moment ago.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return string(text), fmt.Errorf("%s: %s: %s", url, response.Status, text)
	}
	return string(text), nil
}
