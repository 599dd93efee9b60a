//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
)

// What the API server's managedFields say of the replica count is all that tells a
// write of ours that nobody recorded from one of somebody else.

// unrecorded is a Deployment that the AutoScaler has scaled from 2 to 9, and whose
// status could not be written: it knows of the 2.
func unrecorded(t *testing.T, kubectl kubectlAccess, before func(h *manifestHarness)) *manifestHarness {
	t.Helper()
	h := kubectl.harness(t)
	h.deployment(2)
	before(h)
	h.create(h.autoscaler().Obj())
	h.metrics.Value(200)
	h.poll()
	h.advance(15 * time.Second)
	h.metrics.Value(900)
	h.beforeStatus = func() error { return apierrors.NewInternalError(errors.New("etcd is down")) }
	_, err := h.reconcile("web")
	require.Error(t, err)
	h.beforeStatus = nil
	require.Equal(t, int32(9), h.replicas())
	require.Equal(t, []string{controller.FieldManager + " Update scale"}, h.owners(), "our write takes the count from whoever had it")
	require.Equal(t, int32(2), *h.get("web").Status.TargetReplicas)
	return h
}

// kubectlAccess is a control plane that the real kubectl can reach.
type kubectlAccess struct {
	client client.WithWatch
	path   string
	env    []string
}

func withKubectl(t *testing.T) kubectlAccess {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cp.Stop()) })
	tools, err := binaries.Build(t.Context(), os.Stderr, binaries.Kubectl)
	require.NoError(t, err)
	c, err := client.NewWithWatch(unlimited(cp.Config), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return kubectlAccess{
		client: c, path: tools.Path(binaries.Kubectl),
		env: append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "KUBECACHEDIR="+t.TempDir(), "KUBERC=off"),
	}
}

func (k kubectlAccess) harness(t *testing.T) *manifestHarness {
	t.Helper()
	h := &manifestHarness{
		harness: &harness{
			T: t, ctx: t.Context(), client: k.client, events: &recordedEvents{},
			namespace: fmt.Sprintf("test-%d", testNumber.Add(1)),
			clock:     clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second).Add(123456789)),
		},
		kubectl: k.path, env: k.env,
	}
	h.metrics = fixture.NewMetricServer(t, fixture.WithClock(h.clock.Now))
	h.create(namespace(h.namespace))
	h.restart()
	return h
}

// owners are the entries of managedFields that own the replica count.
func (h *manifestHarness) owners() []string {
	h.Helper()
	var owners []string
	for _, f := range h.stored().ManagedFields {
		if binding.OwnsReplicas(&f) {
			owner := f.Manager + " " + string(f.Operation)
			if f.Subresource != "" {
				owner += " " + f.Subresource
			}
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	return owners
}

func (h *manifestHarness) stored() *appsv1.Deployment {
	h.Helper()
	var d appsv1.Deployment
	require.NoError(h, h.client.Get(h.ctx, h.key("web"), &d))
	return &d
}

// update writes the whole object, as an editor or a client library does.
func (h *manifestHarness) update(manager string, change func(d *appsv1.Deployment)) {
	h.Helper()
	d := h.stored()
	change(d)
	require.NoError(h, h.client.Update(h.ctx, d, client.FieldOwner(manager)))
}

// kubectlScale scales with the real kubectl.
func (h *manifestHarness) kubectlScale(replicas int) {
	h.Helper()
	cmd := exec.CommandContext(h.ctx, h.kubectl, "-n", h.namespace, "scale", "deployment", "web", fmt.Sprint("--replicas=", replicas))
	cmd.Env = h.env
	output, err := cmd.CombinedOutput()
	require.NoError(h, err, string(output))
}

// fieldsCase is what others do after a write of ours that nobody recorded.
type fieldsCase struct {
	before, then func(h *manifestHarness)
	owners       []string
	// recovered: our write counts. contention: who is said to have changed the count;
	// nil: nobody.
	recovered  bool
	contention *string
}

const (
	ours   = controller.FieldManager + " Update scale"
	argo   = "argocd-controller"
	argoIs = argo + " Update scale"
)

// replicasTo changes the count of a whole object.
func replicasTo(n int32) func(d *appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = &n }
}

// touched changes something else of it.
func touched(d *appsv1.Deployment) { d.Spec.Template.Labels["release"] = "2" }

var fieldsCases = map[string]fieldsCase{
	"nobody else writes": {owners: []string{ours}, recovered: true},
	"another manager scales to another count": {
		then:   func(h *manifestHarness) { h.scaleAs(5, argo) },
		owners: []string{argoIs}, contention: new(argo),
	},
	"another manager scales to the same count: no change, and no owner": {
		then:   func(h *manifestHarness) { h.scaleAs(9, argo) },
		owners: []string{ours}, recovered: true,
	},
	"another manager scales back to the count from before": {
		then:   func(h *manifestHarness) { h.scaleAs(2, argo) },
		owners: []string{argoIs},
	},
	"another manager scales, and a write of ours follows": {
		then:   func(h *manifestHarness) { h.scaleAs(5, argo); h.scaleAs(9, controller.FieldManager) },
		owners: []string{ours}, recovered: true,
	},
	"kubectl scale": {
		then:   func(h *manifestHarness) { h.kubectlScale(5) },
		owners: []string{"kubectl Update scale"}, contention: new("kubectl"),
	},
	"client-side apply of another count": {
		then:   func(h *manifestHarness) { h.mustApply(5) },
		owners: []string{"kubectl-client-side-apply Update"}, contention: new("kubectl-client-side-apply"),
	},
	"client-side apply without a count": {
		then:   func(h *manifestHarness) { h.mustApply(-1) },
		owners: []string{ours}, recovered: true,
	},
	"server-side apply of another count is refused": {
		then: func(h *manifestHarness) {
			output, err := h.apply(5, "--server-side")
			require.Error(h, err)
			require.Contains(h, output, controller.FieldManager)
		},
		owners: []string{ours}, recovered: true,
	},
	"server-side apply of the same count owns it too": {
		then:   func(h *manifestHarness) { h.mustApply(9, "--server-side") },
		owners: []string{ours, "kubectl Apply"}, recovered: true,
	},
	"server-side apply by force": {
		then:   func(h *manifestHarness) { h.mustApply(5, "--server-side", "--force-conflicts") },
		owners: []string{"kubectl Apply"}, contention: new("kubectl"),
	},
	"server-side apply by force, and a write of ours follows": {
		then: func(h *manifestHarness) {
			h.mustApply(5, "--server-side", "--force-conflicts")
			h.scaleAs(9, controller.FieldManager)
		},
		owners: []string{ours}, recovered: true,
	},
	"server-side apply had set it first": {
		before: func(h *manifestHarness) { h.mustApply(2, "--server-side", "--force-conflicts") },
		owners: []string{ours}, recovered: true,
	},
	"an update of the whole object that changes the count": {
		then:   func(h *manifestHarness) { h.update("editor", replicasTo(5)) },
		owners: []string{"editor Update"}, contention: new("editor"),
	},
	"an update of the whole object that leaves the count": {
		then:   func(h *manifestHarness) { h.update("editor", touched) },
		owners: []string{ours}, recovered: true,
	},
	"an update of the whole object under our name, past /scale": {
		then:   func(h *manifestHarness) { h.update(controller.FieldManager, replicasTo(5)) },
		owners: []string{controller.FieldManager + " Update"}, contention: new(""), // not ours, and no name to tell
	},
}

func TestManagedFieldsTellAWriteOfOursThatNobodyRecordedFromThoseOfOthers(t *testing.T) {
	kubectl := withKubectl(t)
	nothing := func(*manifestHarness) {}
	for name, tc := range fieldsCases {
		t.Run(name, func(t *testing.T) {
			if tc.before == nil {
				tc.before = nothing
			}
			if tc.then == nil {
				tc.then = nothing
			}
			h := unrecorded(t, kubectl, tc.before)
			tc.then(h)
			assert.Equal(t, tc.owners, h.owners())
			count := h.replicas()

			h.restart()
			h.metrics.Value(100 * float64(count))
			h.advance(15 * time.Second)
			a := h.poll()

			assert.Equal(t, count, h.replicas())
			if tc.recovered {
				require.NotNil(t, a.Status.AppliedReplicas, "our write is made good")
				assert.Equal(t, int32(9), *a.Status.AppliedReplicas)
				assert.NotEmpty(t, only(h.events.take(), "Scaled"))
			} else {
				assert.Nil(t, a.Status.AppliedReplicas, "the last write was not ours")
				assert.Empty(t, only(h.events.take(), "Scaled"))
			}
			if tc.contention == nil {
				assert.Nil(t, a.Status.Contention)
				return
			}
			require.NotNil(t, a.Status.Contention)
			assert.Equal(t, *tc.contention, a.Status.Contention.Manager)
		})
	}
}

func TestTheEntryOfAScaleWriteHasNoTime(t *testing.T) {
	h := newHarness(t)
	h.deployment(2)
	h.scaleAs(5, controller.FieldManager)
	var d appsv1.Deployment
	require.NoError(t, h.client.Get(h.ctx, h.key("web"), &d))
	found := 0
	for _, f := range d.ManagedFields {
		if f.Subresource == "scale" {
			found++
			assert.Nil(t, f.Time, "or an unrecorded write could be dated; see decision 0006")
		}
	}
	assert.Equal(t, 1, found)
}
