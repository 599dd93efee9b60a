//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/cluster/process"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
)

// operator is a control plane of its own with the real program running on it,
// twice, under its own account: what these tests see is what an install does.
type operator struct {
	*testing.T
	ctx          context.Context
	controlPlane *controlplane.ControlPlane
	client       client.Client
	metrics      *fixture.MetricServer
	replicas     [2]*replica
}

type replica struct {
	*process.Process
	probes string
}

func startOperator(t *testing.T) *operator {
	t.Helper()
	o := &operator{T: t, ctx: t.Context(), metrics: fixture.NewMetricServer(t)}
	dir := t.TempDir()
	cp, err := controlplane.Start(o.ctx, controlplane.Options{Webhooks: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	o.controlPlane = cp
	o.client, err = client.New(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	config := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "endpoints:\n- name: main\n  url: %s\n", o.metrics.URL()), 0o600))
	manager := filepath.Join(dir, "manager")
	build := exec.CommandContext(o.ctx, "go", "build", "-o", manager, "./cmd/manager")
	build.Dir = filepath.Join("..", "..")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	// The API server is told of one replica's port only; the other one serves too,
	// and is what takes over the reconcilers.
	for i, port := range []int{cp.WebhookPort, freePort(t)} {
		o.replicas[i] = o.start(i, manager, config, port)
	}
	return o
}

func (o *operator) start(i int, manager, config string, port int) *replica {
	o.Helper()
	r := &replica{probes: "127.0.0.1:" + strconv.Itoa(freePort(o.T))}
	var err error
	r.Process, err = process.Start(o.ctx, process.Spec{
		Name: fmt.Sprintf("manager-%d", i), Path: manager, Dir: filepath.Dir(manager),
		Args: []string{
			"--kubeconfig=" + o.controlPlane.OperatorKubeconfig, "--config=" + config, "--namespace=" + install.Namespace,
			"--webhook-cert-dir=" + o.controlPlane.WebhookCertDir, "--webhook-port=" + strconv.Itoa(port),
			"--metrics-bind-address=0", "--health-probe-bind-address=" + r.probes, "--leader-elect=true", "--shutdown-delay=0s",
		},
		Ready: r.ready,
	})
	require.NoError(o, err)
	o.Cleanup(func() { _ = r.Stop() })
	return r
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *replica) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.probes+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}

// within polls for what must come true by itself.
func (o *operator) within(d time.Duration, what string, done func() bool) {
	o.Helper()
	if !assert.Eventually(o, done, d, 50*time.Millisecond, what) {
		for _, r := range o.replicas {
			log, _ := os.ReadFile(r.LogPath())
			o.Logf("%s:\n%s", r.LogPath(), log)
		}
		o.FailNow()
	}
}

func (o *operator) leader() string {
	var lease coordinationv1.Lease
	err := o.client.Get(o.ctx, client.ObjectKey{Namespace: install.Namespace, Name: controller.FieldManager}, &lease)
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (o *operator) web() *v1alpha1.AutoScaler {
	var a v1alpha1.AutoScaler
	require.NoError(o, o.client.Get(o.ctx, client.ObjectKey{Namespace: "production", Name: "web"}, &a))
	return &a
}

func (o *operator) count(namespace, name string) int32 {
	d := builders.Deployment(namespace, name, 0)
	require.NoError(o, o.client.Get(o.ctx, client.ObjectKeyFromObject(d), d))
	return *d.Spec.Replicas
}

// TestARealOperator proves, with the poll interval at an hour, that each kind of
// object wakes the AutoScalers it bears on: the watches, the indexes and the
// mapping, under the operator's own permissions.
func TestARealOperator(t *testing.T) {
	o := startOperator(t)
	const ns = "production"
	profile := builders.MakeMetricProfile("total").Obj()
	require.NoError(t, o.client.Create(o.ctx, namespace(ns)))
	require.NoError(t, o.client.Create(o.ctx, profile))
	o.metrics.Value(400)
	a := builders.MakeAutoScaler(ns, "web").Poll(3600).Metric("load", "total", "100").Obj()
	require.NoError(t, o.client.Create(o.ctx, a))
	is := func(replicas int32) func() bool {
		return func() bool { return o.count(ns, "web") == replicas }
	}

	o.within(30*time.Second, "the AutoScaler says that its target is missing", func() bool {
		return meta.IsStatusConditionFalse(o.web().Status.Conditions, v1alpha1.ConditionTargetAvailable)
	})
	require.NoError(t, o.client.Create(o.ctx, builders.Deployment(ns, "web", 2)))
	o.within(10*time.Second, "a Deployment that appears wakes its AutoScaler", is(4))

	// The step of an interval is one for an hour here; no limit is set, so each
	// wake-up may act.
	scaled := builders.Deployment(ns, "web", 3)
	require.NoError(t, o.client.Patch(o.ctx, scaled, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))))
	o.within(10*time.Second, "a changed count wakes its AutoScaler", func() bool {
		c := meta.FindStatusCondition(o.web().Status.Conditions, v1alpha1.ConditionAbleToScale)
		return c != nil && c.Reason == v1alpha1.ReasonContended
	})
	o.within(60*time.Second, "and once the other writer was let be for a while, it is set again", is(4))

	o.metrics.On("busier").Value(700)
	require.NoError(t, o.client.Get(o.ctx, client.ObjectKeyFromObject(profile), profile))
	profile.Spec.Query = "busier"
	require.NoError(t, o.client.Update(o.ctx, profile))
	o.within(10*time.Second, "a changed profile wakes the AutoScalers that use it", is(7))

	hpa := builders.HPA(ns, "late", "web")
	require.NoError(t, o.client.Create(o.ctx, hpa))
	o.within(10*time.Second, "an HPA wakes the AutoScaler of its target", func() bool {
		c := meta.FindStatusCondition(o.web().Status.Conditions, v1alpha1.ConditionBound)
		return c != nil && c.Reason == v1alpha1.ReasonConflictingHPA
	})
	require.NoError(t, o.client.Delete(o.ctx, hpa))
	o.within(10*time.Second, "and so does its deletion", func() bool {
		return meta.IsStatusConditionTrue(o.web().Status.Conditions, v1alpha1.ConditionBound)
	})

	require.NoError(t, o.client.Delete(o.ctx, &v1alpha1.ScaleBinding{ObjectMeta: builders.Deployment(ns, "web", 0).ObjectMeta}))
	o.within(10*time.Second, "a deleted binding is claimed again", func() bool {
		var b v1alpha1.ScaleBinding
		err := o.client.Get(o.ctx, client.ObjectKey{Namespace: ns, Name: "web"}, &b)
		return err == nil && b.Spec.OwnerUID == a.UID && b.Status.Phase == v1alpha1.PhaseHeld
	})

	second := builders.MakeAutoScaler(ns, "second").Metric("load", "total", "100").Obj()
	require.ErrorContains(t, o.client.Create(o.ctx, second), `held by AutoScaler "web"`)
	o.leaderIsKilled(ns)
	o.noPermissionWasMissing()
}

// leaderIsKilled kills the leading replica and expects the other one, which was
// ready all the time, to go on.
func (o *operator) leaderIsKilled(ns string) {
	o.Helper()
	before := o.leader()
	require.NotEmpty(o, before)
	lead := 0
	if log, _ := os.ReadFile(o.replicas[1].LogPath()); strings.Contains(string(log), "successfully acquired lease") {
		lead = 1
	}
	standby := o.replicas[1-lead]
	require.NoError(o, standby.ready(o.ctx), "the standby is ready")
	leader, err := os.FindProcess(o.replicas[lead].PID())
	require.NoError(o, err)
	require.NoError(o, leader.Kill())
	o.metrics.On("busier").Value(900)

	o.within(60*time.Second, "the standby becomes the leader", func() bool { return o.leader() != before })
	o.within(30*time.Second, "and manages", func() bool { return o.count(ns, "web") == 9 })
}

// requests are those that the operator's account made so far.
func (o *operator) requests() []controlplane.Request {
	o.Helper()
	all, err := o.controlPlane.Requests(o.ctx, controlplane.OperatorUser)
	require.NoError(o, err)
	return all
}

func (o *operator) noPermissionWasMissing() {
	o.Helper()
	for _, r := range o.requests() {
		assert.NotEqual(o, int32(http.StatusForbidden), r.Code, "%+v", r)
	}
}

func TestThreeHundredIdleAutoScalersMakeNoWritesAtTheAPIServer(t *testing.T) {
	const fleet, polls = 300, 4
	o := startOperator(t)
	const ns = "production"
	require.NoError(t, o.client.Create(o.ctx, namespace(ns)))
	require.NoError(t, o.client.Create(o.ctx, builders.MakeMetricProfile("total").Obj()))
	o.metrics.Value(400)
	for i := range fleet {
		name := fmt.Sprintf("web-%d", i)
		require.NoError(t, o.client.Create(o.ctx, builders.Deployment(ns, name, 2)))
		require.NoError(t, o.client.Create(o.ctx, builders.MakeAutoScaler(ns, name).Target(name).Poll(5).Window(300).Metric("load", "total", "100").Obj()))
	}
	o.within(3*time.Minute, "all have scaled, and say so", func() bool {
		var list v1alpha1.AutoScalerList
		require.NoError(t, o.client.List(o.ctx, &list, client.InNamespace(ns)))
		settled := 0
		for i := range list.Items {
			// The last decision is told within a minute where it alone has changed.
			if d := list.Items[i].Status.LastDecision; d != nil && d.Current == 4 {
				settled++
			}
		}
		return settled == fleet
	})
	// What the last changes still cause is over after one more evaluation of each.
	queries := o.metrics.RequestCount()
	o.within(60*time.Second, "one more evaluation of each", func() bool { return o.metrics.RequestCount() >= queries+2*fleet })

	before := len(o.requests())
	queries = o.metrics.RequestCount()
	o.within(60*time.Second, "several poll intervals", func() bool { return o.metrics.RequestCount() >= queries+polls*fleet })
	for _, r := range o.requests()[before:] {
		if r.Resource == "leases" {
			continue // leader election renews its lease, whatever the fleet does
		}
		assert.False(t, r.IsWrite(), "an idle AutoScaler made a write: %+v", r)
	}
	o.noPermissionWasMissing()
}
