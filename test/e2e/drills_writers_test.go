//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// steady is a profile whose load is always that of four replicas.
func (w *world) steady() *v1alpha1.MetricProfile {
	w.Helper()
	p := profile("steady-"+shortHash(w.Name()), fmt.Sprintf("vector(%d)", 4*perReplica))
	w.create(p)
	w.Cleanup(func() { w.remove(p) })
	return p
}

// anotherWriter applies releases of a service whose manifest names a count of its own, or
// drops it.
func (w *world) anotherWriter() {
	const name = "released"
	d := deployment(shop, name, 2)
	a := builders.MakeAutoScaler(shop, name).Target(name).Metric("items", w.steady().Name, fmt.Sprint(perReplica)).Poll(drillPoll).Obj()
	w.create(d, a)
	w.Cleanup(func() { w.remove(a, d) })
	w.reaches(shop, name, 4, 2*soon)
	since := time.Now()
	// From Kubernetes 1.36 on the API server puts the count back; before, it refuses.
	err := w.client.List(w.Context(), &admissionv1.MutatingAdmissionPolicyList{})
	says, outcome := "it stays at 4", "each release is taken"
	refuses := meta.IsNoMatchError(err)
	if refuses {
		says, outcome = "which is 4 and would become 1", "each release with a count is refused, as MutatingAdmissionPolicy v1 is not served, each without is taken"
	} else {
		require.NoError(w, err)
	}
	serverSide := []string{"--server-side", "--force-conflicts"}
	for _, release := range []struct {
		name     string
		replicas int32
		flags    []string
		told     bool
	}{
		{"client-side", 1, nil, true},
		// A field that goes leaves no trace of who has dropped it.
		{"client-side, and the field is dropped", -1, nil, false},
		{"server-side, by force", 1, serverSide, true},
		{"server-side, and the field is dropped", -1, serverSide, false},
	} {
		said, err := w.applies(name, release.replicas, release.name, release.flags...)
		if release.told {
			assert.Contains(w, said, "AutoScaler "+name+" holds the replica count", release.name)
			assert.Contains(w, said, says, release.name)
		}
		taken := !refuses || !release.told
		assert.Equal(w, taken, err == nil, "%s: %v", release.name, err)
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(d), d))
		assert.EqualValues(w, 4, *d.Spec.Replicas, release.name)
		assert.Equal(w, taken, d.Spec.Template.Annotations["release"] == release.name, "%s: the rest of it is taken", release.name)
		b, err := w.binding(w.Context(), shop, name)
		require.NoError(w, err)
		assert.Equal(w, v1alpha1.PhaseHeld, b.Status.Phase, release.name)
	}
	w.rolledOut(shop, name)
	w.throughout("nobody has to put it back", 2*drillPoll*time.Second, w.keeps(name, 4))
	w.says(shop, name, v1alpha1.ConditionAbleToScale, v1alpha1.ReasonScaleReady)
	now, err := w.autoscaler(w.Context(), shop, name)
	require.NoError(w, err)
	assert.Nil(w, now.Status.Contention)
	w.untouched(shop, name, since)
	w.report("- FC-32 A manifest with `replicas: 1` is applied, client-side and server-side by force, and after each one without: the count stays 4, %s, and the claim is held.", outcome)
}

// applies sends the manifest of a Deployment; a negative count is none.
func (w *world) applies(name string, replicas int32, release string, flags ...string) (string, error) {
	w.Helper()
	d := deployment(shop, name, replicas)
	d.TypeMeta = metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"}
	d.Spec.Template.Annotations["release"] = release
	text, err := yaml.Marshal(d)
	require.NoError(w, err)
	path := filepath.Join(w.dir, name+".yaml")
	require.NoError(w, os.WriteFile(path, text, 0o600))
	return w.run(w.tools.Path(binaries.Kubectl), append([]string{"apply", "--filename=" + path}, flags...)...)
}

// longNames scales Deployments whose names are as long as a Deployment's may be that is
// to have pods: those of its ReplicaSets are up to eleven characters longer.
func (w *world) longNames() {
	long := func(n int) string { return strings.Repeat("abcdefghi.", 26)[:n-1] + "z" }
	p := w.steady()
	for _, names := range []struct{ autoscaler, deployment string }{
		{long(253), long(242)},
		{"orders.v1.example", "orders.v1.example"},
	} {
		d := deployment(shop, "long-names", 2)
		d.Name = names.deployment
		d.Spec.Template.Labels["app"] = shortHash(names.deployment)
		d.Spec.Selector.MatchLabels = d.Spec.Template.Labels
		a := builders.MakeAutoScaler(shop, names.autoscaler).Target(names.deployment).
			Metric("items", p.Name, fmt.Sprint(perReplica)).Poll(drillPoll).Obj()
		w.create(d, a)
		w.Cleanup(func() { w.remove(a, d) })
		w.reaches(shop, d.Name, 4, 2*soon)
		b, err := w.binding(w.Context(), shop, d.Name)
		require.NoError(w, err)
		assert.Equal(w, names.autoscaler, b.Spec.OwnerRef.Name)
		w.refusesScale(d.Name, names.autoscaler)
	}
	for wrong, says := range map[string]string{
		long(254):       "must be no more than 253 characters",
		"Order_Service": "a lowercase RFC 1123 subdomain must consist of",
	} {
		a := builders.MakeAutoScaler(shop, wrong).Metric("items", "items", fmt.Sprint(perReplica)).Obj()
		assert.ErrorContains(w, w.client.Create(w.Context(), a), says)
		a = builders.MakeAutoScaler(shop, "wrong").Target(wrong).Metric("items", "items", fmt.Sprint(perReplica)).Obj()
		assert.ErrorContains(w, w.client.Create(w.Context(), a), "spec.targetRef.name")
	}
	w.report("- FC-47 An AutoScaler of 253 characters scales a Deployment of 242, and a dotted one a dotted one; of a longer or a wrong name the API server says what is wrong.")
}
