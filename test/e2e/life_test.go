//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/binaries"
)

// previousChart is the chart as the version before could be; testdata/README.md says how
// it was made.
const previousChart = "testdata/autoscale-operator-0.1.0-rc.1.tgz"

// loadOf4 asks for 4 replicas, and what a busy machine makes of it for no more. Should it
// be measured as less for a while, longWindow holds.
const (
	loadOf4    = 340
	longWindow = 600
)

// held is a Deployment in the hands of an AutoScaler, as it was once it had settled.
type held struct {
	autoscaler *v1alpha1.AutoScaler
	binding    *v1alpha1.ScaleBinding
	pods       map[types.UID]int32
	replicas   int32
	settled    time.Time
}

// life leads a release through all that helm does with one, with Helm 3, while it holds a
// service under load: whatever becomes of the release, nothing becomes of the service.
func (w *world) life() {
	s := w.holdsService()
	steps := []struct {
		name string
		tell func(*world)
	}{
		{"FC-45 uninstalled, it leaves everything as it is", func(w *world) {
			w.uninstalls(release, systemNamespace)
			w.report("- `helm uninstall`: CRDs, AutoScaler and ScaleBinding stay; writes of the count and AutoScalers pass")
		}},
		{"the previous version goes on with what it finds", (*world).installsPrevious},
		{"FC-44 FC-49 an upgrade brings the CRDs along and keeps the bundles", (*world).upgradesToPresent},
		{"FC-49 a configuration replaced without its bundles gets them back", (*world).bundlesComeBack},
		{"a rollback", (*world).rollsBack},
		{"FC-46 below a chart of a platform's own, in one command", (*world).underAPlatform},
		{"installed again", (*world).reinstalls},
	}
	for _, step := range steps {
		require.True(w, w.do(step.name, func(w *world) { step.tell(w); w.unchanged(s) }), "the next step needs this one")
	}
	for _, replicas := range []int{2, 0} {
		w.do(fmt.Sprintf("a namespace with held Deployments goes, with %d replicas of the operator", replicas), func(w *world) { w.namespaceGoes(replicas) })
	}
	w.unchanged(s)
	w.report("- %s had %d replicas all the time: no write of its count, no pod restarted, the same AutoScaler, ScaleBinding, owner and epoch", service, s.replicas)
}

// holdsService gives a service under a constant load to an AutoScaler.
func (w *world) holdsService() held {
	w.Helper()
	d := deployment(shop, service, 4)
	p := profile("items", load)
	a := builders.MakeAutoScaler(shop, service).Target(service).Metric("items", "items", fmt.Sprint(perReplica)).
		Poll(5).Window(longWindow).Obj()
	// The noise of a real measurement, on a busy machine too, is no reason to move.
	a.Spec.Behavior.ToleranceUp, a.Spec.Behavior.ToleranceDown = "0.25", "0.25"
	w.create(d, p)
	w.order(loadOf4)
	w.Cleanup(func() { w.order(0); w.remove(a, d, p) })
	// What other stories asked for is still being measured for a while.
	w.sees(func(items float64) bool { return items > loadOf4-50 && items < loadOf4+50 })
	w.create(a)
	w.reaches(shop, service, 4, 2*soon)
	return w.settles(shop, service)
}

// settles gives what is there when an AutoScaler manages its Deployment.
func (w *world) settles(namespace, name string) held {
	w.Helper()
	w.says(namespace, name, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)
	var s held
	w.until("it to be held", soon, func(ctx context.Context) (err error) {
		if s.binding, err = w.binding(ctx, namespace, name); err == nil && s.binding.Status.Phase != v1alpha1.PhaseHeld {
			err = fmt.Errorf("the binding is %+v", s.binding.Status)
		}
		return err
	})
	var err error
	s.autoscaler, err = w.autoscaler(w.Context(), namespace, name)
	require.NoError(w, err)
	s.replicas, _, err = w.counts(w.Context(), namespace, name)
	require.NoError(w, err)
	s.pods, s.settled = w.restarts(namespace, name), time.Now()
	require.Len(w, s.pods, int(s.replicas))
	return s
}

// restarts are how often the pods of a service were restarted.
func (w *world) restarts(namespace, name string) map[types.UID]int32 {
	w.Helper()
	var list corev1.PodList
	require.NoError(w, w.client.List(w.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"app": name}))
	restarts := map[types.UID]int32{}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.ContainerStatuses {
			restarts[list.Items[i].UID] += c.RestartCount
		}
	}
	return restarts
}

// unchanged checks that all of it is as it was, and that nothing has happened in between.
func (w *world) unchanged(s held) {
	w.Helper()
	namespace, name := s.autoscaler.Namespace, s.autoscaler.Name
	a, err := w.autoscaler(w.Context(), namespace, name)
	require.NoError(w, err)
	assert.Equal(w, s.autoscaler.UID, a.UID)
	assert.Equal(w, s.autoscaler.Spec, a.Spec)
	b, err := w.binding(w.Context(), namespace, name)
	require.NoError(w, err)
	assert.Equal(w, s.binding.UID, b.UID)
	assert.Equal(w, s.binding.Spec, b.Spec)
	assert.Equal(w, v1alpha1.PhaseHeld, b.Status.Phase)
	w.untouched(namespace, name, s.settled)
	assert.Equal(w, s.pods, w.restarts(namespace, name))
}

// evaluates waits until a replica leads, from now on, and manages the service.
func (w *world) evaluates() {
	w.Helper()
	since := time.Now()
	w.until("an operator to lead", soon, func(ctx context.Context) error {
		leases, err := w.clientset.CoordinationV1().Leases(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range leases.Items {
			if renewed := leases.Items[i].Spec.RenewTime; renewed != nil && renewed.After(since) {
				return nil
			}
		}
		return errors.New("no lease was renewed")
	})
	w.says(shop, service, v1alpha1.ConditionReady, v1alpha1.ReasonManaging)
}

func (w *world) uninstalls(name, namespace string) {
	w.Helper()
	w.must(w.tools.Path(binaries.Helm3), "uninstall", name, "--namespace="+namespace, "--wait")
	w.end(name, namespace)
	// With nobody there, nobody is refused, and nothing waits for an answer. The API server
	// forgets a policy a moment after it is deleted.
	w.until("the count to be anybody's", soon, func(context.Context) error {
		_, err := w.scalesByHand(shop, service)
		return err
	})
	require.NoError(w, w.client.Create(w.Context(), w.wrong(shop), client.DryRunAll))
}

// end waits until no pod of a release is left, not even one that is ending.
func (w *world) end(name, namespace string) {
	w.Helper()
	w.until("its pods to be gone", soon, func(ctx context.Context) error {
		var pods corev1.PodList
		err := w.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{podLabel: name})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("there are %d", len(pods.Items))
		}
		return err
	})
}

// wrong is an AutoScaler that an operator refuses, and the schema does not.
func (w *world) wrong(namespace string) *v1alpha1.AutoScaler {
	return builders.MakeAutoScaler(namespace, "trial").Target("trial").Metric("items", "nobodys", "100").Obj()
}

// shortNames are those of AutoScalers, which the previous chart has not.
func (w *world) shortNames() []string {
	w.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Name: "autoscalers" + groupSuffix}, &crd))
	return crd.Spec.Names.ShortNames
}

// runs checks that each pod of the release has an image of this tag, and that admission
// and scaling work.
func (w *world) runs(tag string) {
	w.Helper()
	pods := w.operators(release, systemNamespace)
	require.Len(w, pods, 2)
	for i := range pods {
		assert.Equal(w, repository+":"+tag, pods[i].Spec.Containers[0].Image)
		assert.Zero(w, pods[i].Status.ContainerStatuses[0].RestartCount)
	}
	// Without --logs: Helm 3 looks for them when the pod has been deleted.
	assert.Contains(w, w.must(w.tools.Path(binaries.Helm3), "test", release, "--namespace="+systemNamespace), "Succeeded")
	w.evaluates()
}

func (w *world) installsPrevious() {
	w.Helper()
	// As it is where that version came first: of a CRD that is there Helm takes nothing away.
	w.kubectl("patch", "customresourcedefinition", "autoscalers"+groupSuffix, "--type=json", `--patch=[{"op":"remove","path":"/spec/names/shortNames"}]`)
	begun := time.Now()
	w.mustUpgrade(binaries.Helm3, previousChart, release, systemNamespace, "--set=image.tag="+previousTag)
	took := time.Since(begun)
	assert.Empty(w, w.shortNames())
	w.runs(previousTag)
	w.report("- Helm 3 installs the previous version after %.0f s; it goes on with the AutoScaler and the ScaleBinding that it finds", took.Seconds())
}

func (w *world) upgradesToPresent() {
	w.Helper()
	bundle, err := w.trusted(w.Context())
	require.NoError(w, err)
	w.admitsWhile("helm upgrade", func() { w.mustUpgrade(binaries.Helm3, w.chart(), release, systemNamespace) })
	assert.Equal(w, []string{"asc"}, w.shortNames())
	after, err := w.trusted(w.Context())
	require.NoError(w, err)
	assert.Equal(w, string(bundle), string(after))
	w.servesWhatIsTrusted()
	w.runs(presentTag)
	w.report("- the upgrade: the CRDs have what is new, and the CA bundles are the same as before")
}

func (w *world) rollsBack() {
	w.Helper()
	bundle, err := w.trusted(w.Context())
	require.NoError(w, err)
	w.admitsWhile("helm rollback", func() {
		w.must(w.tools.Path(binaries.Helm3), "rollback", release, "1", "--namespace="+systemNamespace, "--wait", "--timeout=3m")
	})
	assert.Empty(w, w.shortNames(), "the CRDs go back, too")
	after, err := w.trusted(w.Context())
	require.NoError(w, err)
	assert.Equal(w, string(bundle), string(after))
	w.runs(previousTag)
}

func (w *world) reinstalls() {
	w.Helper()
	w.mustUpgrade(binaries.Helm3, w.chart(), release, systemNamespace, "--take-ownership")
	assert.Equal(w, []string{"asc"}, w.shortNames())
	w.servesWhatIsTrusted()
	w.runs(presentTag)
}

// admitsWhile asks for an AutoScaler that is right and one that is wrong, as dry runs, again
// and again while something is done: each must be answered by the operator.
func (w *world) admitsWhile(what string, do func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	var asking sync.WaitGroup
	var asked int
	var failed []string
	asking.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for ctx.Err() == nil {
			asked++
			right := builders.MakeAutoScaler(shop, "trial").Target("trial").Metric("items", "items", "100").Obj()
			if err := w.client.Create(ctx, right, client.DryRunAll); err != nil && ctx.Err() == nil {
				failed = append(failed, fmt.Sprintf("%s: %v", time.Now().Format(time.TimeOnly), err))
			}
			err := w.client.Create(ctx, w.wrong(shop), client.DryRunAll)
			if ctx.Err() == nil && (err == nil || !strings.Contains(err.Error(), noSuchProfile)) {
				failed = append(failed, fmt.Sprintf("%s: what is wrong: %v", time.Now().Format(time.TimeOnly), err))
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	begun := time.Now()
	do()
	took := time.Since(begun)
	cancel()
	asking.Wait()
	assert.Empty(w, failed, "an admission failed during %s", what)
	assert.Greater(w, asked, 5)
	w.report("- `%s` took %.0f s; meanwhile %d AutoScalers that are right were admitted, and as many that are wrong refused", what, took.Seconds(), asked)
}

// noSuchProfile is in the answer of the operator to what is wrong.
const noSuchProfile = "there is no such MetricProfile"

// bundlesComeBack does what a tool does that replaces an object by what it has rendered.
func (w *world) bundlesComeBack() {
	w.Helper()
	bundle, err := w.trusted(w.Context())
	require.NoError(w, err)
	var rendered []string
	for document := range strings.SplitSeq(w.must(w.tools.Path(binaries.Helm3), "get", "manifest", release, "--namespace="+systemNamespace), "\n---\n") {
		if strings.Contains(document, "\nkind: ValidatingWebhookConfiguration\n") || strings.Contains(document, "\nkind: MutatingWebhookConfiguration\n") {
			rendered = append(rendered, document)
		}
	}
	require.Len(w, rendered, 2)
	text := strings.Join(rendered, "\n---\n")
	require.NotContains(w, text, "caBundle:")
	path := filepath.Join(w.dir, "webhooks.yaml")
	require.NoError(w, os.WriteFile(path, []byte(text), 0o600))

	// Without a bundle and with one again: that is two generations, however fast.
	before, begun := w.generation(), time.Now()
	w.kubectl("replace", "--filename="+path)
	w.until("the bundles to be there again", soon, func(ctx context.Context) error {
		now, err := w.trusted(ctx)
		if err == nil && !bytes.Equal(now, bundle) {
			err = errors.New("it is another one")
		}
		return err
	})
	took := time.Since(begun)
	assert.Equal(w, before+2, w.generation())
	w.refusesWrong(shop)
	w.report("- `kubectl replace` of both webhook configurations without a `caBundle`: cert-manager's injector had put it back %.1f s after the command was given", took.Seconds())
}

// generation of the release's ValidatingWebhookConfiguration.
func (w *world) generation() int64 {
	w.Helper()
	var v admissionv1.ValidatingWebhookConfiguration
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Name: release}, &v))
	return v.Generation
}
