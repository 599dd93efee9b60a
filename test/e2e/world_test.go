//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

const (
	// soon bounds what a cluster does by itself: start a pod, elect a leader.
	soon = 90 * time.Second
	// lookEvery is how often something awaited is looked at.
	lookEvery = 200 * time.Millisecond
	// commandLimit bounds a command: helm itself waits for 5 minutes at most.
	commandLimit = 6 * time.Minute
)

// world is the cluster of the acceptance, as one story sees it.
type world struct {
	*testing.T
	*cluster
	client    client.Client
	clientset kubernetes.Interface
	record    *record
	reported  *reported
	// outer is what this one is a part of. told is set when the log tells why this one, or a
	// part of it, has failed.
	outer *world
	told  *atomic.Bool
}

// newWorld gives a cluster with everything but the operator. It is cleared when the test
// ends, however it ends.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cluster: newCluster(t), reported: &reported{}, told: &atomic.Bool{}}
	t.Cleanup(func() { w.reported.write(t, filepath.Join(w.out, "acceptance.md")) })
	config := rest.CopyConfig(w.config)
	config.WarningHandler = rest.NoWarnings{}
	config.QPS, config.Burst = 100, 200
	var err error
	w.client, err = client.New(config, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	w.clientset, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w.mustBeUnused()
	t.Cleanup(w.clear)
	w.loadImages()
	w.record = startRecord(w)
	w.openShop()
	return w
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	return scheme
}

// do runs a part of a story. Where it fails, the log tells what the cluster looks like:
// before anything is cleaned up, or afterwards if it is the cleaning up that fails.
func (w *world) do(name string, tell func(*world)) bool {
	w.Helper()
	return w.Run(name, func(t *testing.T) {
		part := *w
		part.T, part.outer, part.told = t, w, &atomic.Bool{}
		t.Cleanup(part.tellWhy)
		defer part.tellWhy()
		tell(&part)
	})
}

// until waits for something, and gives the time that it took.
func (w *world) until(what string, within time.Duration, look func(ctx context.Context) error) time.Duration {
	w.Helper()
	begun := time.Now()
	// Cleaning up waits, too, when the test's own context has ended.
	require.NoError(w, poll(context.WithoutCancel(w.Context()), within, look), "%s, within %s", what, within)
	return time.Since(begun)
}

// poll looks until there is no error, or the time is over.
func poll(ctx context.Context, within time.Duration, look func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		seen := look(ctx)
		if seen == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return seen
		case <-ticker.C:
		}
	}
}

// throughout looks again and again for as long as is said, and fails at the first time
// that something is not so.
func (w *world) throughout(what string, long time.Duration, look func(ctx context.Context) error) {
	w.Helper()
	end := time.NewTimer(long)
	defer end.Stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		require.NoError(w, look(w.Context()), what)
		select {
		case <-end.C:
			return
		case <-ticker.C:
		}
	}
}

// run runs a command against the cluster, and gives what it prints.
func (w *world) run(program string, args ...string) (string, error) {
	w.Helper()
	// What cleans up runs after the test's own context has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	home := filepath.Join(w.dir, "home")
	command.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (w *world) must(program string, args ...string) string {
	w.Helper()
	said, err := w.run(program, args...)
	require.NoError(w, err)
	return said
}

// kubectl types a command that must succeed.
func (w *world) kubectl(args ...string) string {
	w.Helper()
	return w.must(w.tools.Path(binaries.Kubectl), args...)
}

// tellWhy logs what somebody who looks for the reason of a failure would ask for, once: a
// failed part makes all fail that it is a part of.
func (w *world) tellWhy() {
	w.Helper()
	if !w.Failed() || w.told.Load() {
		return
	}
	for part := w; part != nil; part = part.outer {
		part.told.Store(true)
	}
	for _, command := range []string{
		"get pods --all-namespaces --output=wide",
		"get autoscalers,scalebindings,scaleguards,deployments --all-namespaces --output=wide",
		"get events --all-namespaces --sort-by=.lastTimestamp",
		"describe autoscalers --all-namespaces",
		"--namespace=" + systemNamespace + " logs --selector=app.kubernetes.io/name=autoscale-operator --tail=60 --prefix",
	} {
		said, err := w.run(w.tools.Path(binaries.Kubectl), strings.Fields(command)...)
		w.Logf("kubectl %s (%v)\n%s", command, err, said)
	}
}

// reported is what a run has to tell: docs/acceptance.md quotes it.
type reported struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *world) report(format string, args ...any) {
	w.Helper()
	line := fmt.Sprintf(format, args...)
	w.Log(line)
	w.reported.mu.Lock()
	defer w.reported.mu.Unlock()
	w.reported.text.WriteString(line + "\n")
}

func (r *reported) write(t *testing.T, path string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(r.text.String()), 0o600)))
}
