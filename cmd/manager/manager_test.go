package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/binding"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
)

func fields(json string) *metav1.FieldsV1 { return metav1.NewFieldsV1(json) }

// storedDeployment is one as the API server sends it: applied by kubectl, and scaled
// by the operator if that is asked for.
func storedDeployment(scaled bool) *appsv1.Deployment {
	d := builders.Deployment("production", "web", 8)
	d.UID, d.ResourceVersion = "u", "7"
	d.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
	d.Status.Replicas, d.Status.ReadyReplicas = 8, 5
	owned := `"f:replicas":{},`
	if scaled {
		owned = ""
		d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: controller.FieldManager, Operation: "Update", APIVersion: "apps/v1", FieldsType: "FieldsV1", Subresource: "scale",
			FieldsV1: fields(`{"f:spec":{"f:replicas":{}}}`),
		})
	}
	now := metav1.Now()
	d.ManagedFields = append(d.ManagedFields,
		metav1.ManagedFieldsEntry{
			Manager: "kubectl-client-side-apply", Operation: "Update", APIVersion: "apps/v1", FieldsType: "FieldsV1", Time: &now,
			FieldsV1: fields(`{"f:metadata":{"f:annotations":{".":{}}},"f:spec":{` + owned + `"f:selector":{},"f:template":{"f:spec":{"f:replicas":{}}}}}`),
		},
		metav1.ManagedFieldsEntry{
			Manager: "kube-controller-manager", Operation: "Update", APIVersion: "apps/v1", FieldsType: "FieldsV1", Time: &now, Subresource: "status",
			FieldsV1: fields(`{"f:status":{"f:readyReplicas":{},"f:replicas":{}}}`),
		})
	return d
}

func TestTheCacheKeepsOfADeploymentWhatADecisionNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		scaled  bool
		manager metav1.ManagedFieldsEntry
	}{
		"applied by a person":    {false, metav1.ManagedFieldsEntry{Manager: "kubectl-client-side-apply", FieldsV1: onlyReplicas}},
		"scaled by the operator": {true, metav1.ManagedFieldsEntry{Manager: controller.FieldManager, Subresource: "scale", FieldsV1: onlyReplicas}},
	} {
		t.Run(name, func(t *testing.T) {
			full := storedDeployment(tc.scaled)
			want := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "production", Name: "web", UID: "u", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{tc.manager},
				},
				Spec:   appsv1.DeploymentSpec{Replicas: full.Spec.Replicas},
				Status: appsv1.DeploymentStatus{ReadyReplicas: 5},
			}
			managers := binding.ReplicaManagers(full)

			slim, err := slimDeployment(full.DeepCopy())

			require.NoError(t, err)
			assert.Equal(t, want, slim)
			assert.Equal(t, managers, binding.ReplicaManagers(slim.(*appsv1.Deployment)), "it names the same managers")
			again, err := slimDeployment(slim)
			require.NoError(t, err)
			assert.Equal(t, want, again, "also when it comes out of the cache")
		})
	}
}

func TestWhatIsNoDeploymentPassesTheCacheAsItIs(t *testing.T) {
	got, err := slimDeployment("tombstone")

	require.NoError(t, err)
	assert.Equal(t, "tombstone", got)
}

func TestACachedDeploymentTakesLittleMemory(t *testing.T) {
	const n = 2000
	kept := make([]*appsv1.Deployment, 0, n)
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for i := range n {
		slim, err := slimDeployment(storedDeployment(i%2 == 0))
		require.NoError(t, err)
		kept = append(kept, slim.(*appsv1.Deployment))
	}
	each := (used() - before) / n
	runtime.KeepAlive(kept)
	t.Logf("%d bytes for each Deployment", each)
	// The struct itself is most of it, and who set its replica count a tenth.
	assert.LessOrEqual(t, each, uint64(2048))
}
