//go:build perf

package perf

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	"example.com/platform/autoscale-operator/test/operator"
)

const (
	// admissionRounds is how often a creation is measured in each namespace, and
	// admissionWarmUp how often it is made before.
	admissionRounds = 1500
	admissionWarmUp = 100
	// admissionBound is how much webhooks and claim may add to a creation, at the
	// median, in medians of a creation without them.
	admissionBound = 2.5
	// admissionFlat is how much more they may add among the most AutoScalers than
	// among the fewest.
	admissionFlat = 1.2
	// measuredTargets is the number of Deployments in each namespace that creations are
	// measured for. The others' are missing, which only matters to their evaluation.
	measuredTargets = 8
	// bare labels the namespaces that the webhooks are not asked about.
	bare = "admission-bare"
)

// admissionSizes are the numbers of AutoScalers in a namespace.
var admissionSizes = []int{100, 1_000, 10_000}

// admissionBench has two namespaces of each size, filled alike, with and without the
// webhooks.
type admissionBench struct {
	*testing.T
	client client.Client
	// pid is the operator's.
	pid   int
	table *tabwriter.Writer
}

// TestAdmissionCost measures what admission adds to the creation of an AutoScaler:
// two webhooks and the claim. The operator serves its webhooks as a replica that does
// not lead, so that no evaluation runs beside.
//
// The smallest namespaces are measured alone first, and then with the others in turn:
// what the machine does meanwhile, all of them suffer.
func TestAdmissionCost(t *testing.T) {
	var report strings.Builder
	b := startAdmissionBench(t, &report)
	empty := b.memory()
	fmt.Fprintln(b.table, "in the namespace\tin the cluster\tbare p50 ms\tp99\tadmitted p50 ms\tp99\tadded p50 ms\tp99\tadded p50 / bare p50")
	fewest, most := admissionSizes[0], admissionSizes[len(admissionSizes)-1]
	b.fill("guarded", fewest)
	b.fill("bare", fewest)
	alone := b.measure(fewest)[fewest]
	total := fewest
	for _, size := range admissionSizes[1:] {
		b.fill("guarded", size)
		total += size
	}
	// The bare ones would be in its caches too.
	perThousand := (b.memory() - empty) * 1000 / float64(total+fewest)
	for _, size := range admissionSizes[1:] {
		b.fill("bare", size)
	}
	among := b.measure(admissionSizes...)
	require.NoError(t, b.table.Flush())
	t.Logf("admission, %d rounds:\n%s\nmemory of a replica that does not lead: %.1f MiB without AutoScalers, and %.1f MiB more per 1,000 of them and their bindings",
		admissionRounds, report.String(), empty, perThousand)

	assert.LessOrEqual(t, alone.ratio, admissionBound, "what admission adds in a small cluster")
	for size, cost := range among {
		assert.LessOrEqual(t, cost.ratio, admissionBound, "what admission adds at %d AutoScalers", size)
	}
	assert.LessOrEqual(t, float64(among[most].p50), admissionFlat*float64(among[fewest].p50), "the added median grows with the namespace")
	assert.LessOrEqual(t, float64(among[most].p99), admissionFlat*float64(among[fewest].p99), "the added 99th percentile grows with the namespace")
	// Both are measured in medians of their own time, for the machine may be busier now.
	assert.LessOrEqual(t, among[most].ratio, admissionFlat*alone.ratio, "the added median grows with the cluster")
}

func startAdmissionBench(t *testing.T, report *strings.Builder) *admissionBench {
	t.Helper()
	cp := startControlPlane(t, controlplane.Options{Webhooks: true, Guard: true})
	b := &admissionBench{T: t, client: guardClient(t, cp.Config), table: tabwriter.NewWriter(report, 0, 0, 2, ' ', 0)}
	now, hours, somebody := metav1.NowMicro(), int32(10*3600), "somebody-else"
	b.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: controller.FieldManager},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &somebody, LeaseDurationSeconds: &hours, AcquireTime: &now, RenewTime: &now},
	})
	metrics := fixture.NewMetricServer(t)
	b.pid = operator.Start(t, cp, operator.Options{Config: "endpoints: [{name: main, url: '" + metrics.URL() + "'}]"}).PID()
	b.exempt()
	for _, size := range admissionSizes {
		b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: benchNamespace("guarded", size)}})
		b.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: benchNamespace("bare", size), Labels: map[string]string{bare: "true"}}})
		for i := range measuredTargets {
			b.create(builders.Deployment(benchNamespace("guarded", size), measuredTarget(i), 2))
			b.create(builders.Deployment(benchNamespace("bare", size), measuredTarget(i), 2))
		}
	}
	b.create(builders.MakeMetricProfile("total").Obj())
	// Only the webhook knows that there is no such profile.
	unknown := func(namespace string) error {
		return b.client.Create(t.Context(), builders.MakeAutoScaler(namespace, "probe").Metric("load", "missing", "1").Obj(), client.DryRunAll)
	}
	require.Eventually(t, func() bool { return unknown("bare-100") == nil && unknown("guarded-100") != nil }, 30*time.Second, 50*time.Millisecond,
		"the exemption does not take effect")
	return b
}

// exempt makes the webhooks leave namespaces with the label bare alone.
func (b *admissionBench) exempt() {
	b.Helper()
	elsewhere := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: bare, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	key := client.ObjectKey{Name: "autoscale-operator"}
	var validating admissionv1.ValidatingWebhookConfiguration
	require.NoError(b, b.client.Get(b.Context(), key, &validating))
	for i := range validating.Webhooks {
		validating.Webhooks[i].NamespaceSelector = elsewhere
	}
	require.NoError(b, b.client.Update(b.Context(), &validating))
	var mutating admissionv1.MutatingWebhookConfiguration
	require.NoError(b, b.client.Get(b.Context(), key, &mutating))
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].NamespaceSelector = elsewhere
	}
	require.NoError(b, b.client.Update(b.Context(), &mutating))
}

func (b *admissionBench) create(obj client.Object) {
	b.Helper()
	require.NoError(b, b.client.Create(b.Context(), obj))
}

func measuredTarget(round int) string { return fmt.Sprintf("measured-%d", round%measuredTargets) }

func benchNamespace(kind string, size int) string { return fmt.Sprintf("%s-%d", kind, size) }

// fill creates as many AutoScalers in a namespace as it is for.
func (b *admissionBench) fill(kind string, size int) {
	b.Helper()
	err := createAll(size, func(i int) error {
		return b.client.Create(b.Context(), benchAutoScaler(benchNamespace(kind, size), fmt.Sprintf("service-%05d", i), fmt.Sprintf("service-%05d", i)))
	})
	require.NoError(b, err, "filling the namespaces")
}

// benchAutoScaler leaves to the defaulter what can be left to it.
func benchAutoScaler(namespace, name, target string) *v1alpha1.AutoScaler {
	a := builders.MakeAutoScaler(namespace, name).Target(target).Poll(0).Metric("load", "total", "100").Obj()
	a.Spec.Behavior, a.Spec.Metrics[0].MaxAgeSeconds = nil, 0
	return a
}

// cost is what admission adds to a creation.
type cost struct {
	p50, p99 time.Duration
	// ratio of the added median to that of a creation without webhooks.
	ratio float64
}

// measure creates an AutoScaler in each namespace of these sizes, in turn, and removes
// it and its claim again, so that the numbers stay.
func (b *admissionBench) measure(sizes ...int) map[int]cost {
	b.Helper()
	var namespaces []string
	inCluster := 0
	for _, size := range sizes {
		namespaces = append(namespaces, benchNamespace("guarded", size), benchNamespace("bare", size))
		inCluster += 2 * size
	}
	times := map[string][]time.Duration{}
	for round := range admissionWarmUp + admissionRounds {
		for i := range namespaces {
			namespace := namespaces[(i+round)%len(namespaces)] // none is always the first
			a := benchAutoScaler(namespace, fmt.Sprintf("measured-%d-%d", len(sizes), round), measuredTarget(round))
			begun := time.Now()
			err := b.client.Create(b.Context(), a)
			took := time.Since(begun)
			require.NoError(b, err)
			if round >= admissionWarmUp {
				times[namespace] = append(times[namespace], took)
			}
			b.remove(a)
		}
	}
	costs := map[int]cost{}
	for _, size := range sizes {
		without, with := times[benchNamespace("bare", size)], times[benchNamespace("guarded", size)]
		bare50, bare99, with50, with99 := quantile(without, 0.5), quantile(without, 0.99), quantile(with, 0.5), quantile(with, 0.99)
		c := cost{with50 - bare50, with99 - bare99, float64(with50-bare50) / float64(bare50)}
		fmt.Fprintf(b.table, "%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", size, inCluster,
			milliseconds(bare50), milliseconds(bare99), milliseconds(with50), milliseconds(with99),
			milliseconds(c.p50), milliseconds(c.p99), c.ratio)
		costs[size] = c
	}
	return costs
}

func (b *admissionBench) remove(a *v1alpha1.AutoScaler) {
	b.Helper()
	require.NoError(b, b.client.Delete(b.Context(), a))
	claim := &v1alpha1.ScaleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}}
	require.NoError(b, client.IgnoreNotFound(b.client.Delete(b.Context(), claim)))
}

// memory is the operator's resident memory in MiB, once its caches hold what is
// stored.
func (b *admissionBench) memory() float64 {
	b.Helper()
	last := -1.0
	require.NoError(b, b.settled(func() bool {
		now := b.resident()
		same := last > 0 && now < last*1.01 && now > last*0.99
		last = now
		return same
	}))
	return last
}

func (b *admissionBench) settled(done func() bool) error {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *admissionBench) resident() float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			require.NoError(b, err)
			return kib / 1024
		}
	}
	b.Fatal("the kernel does not tell the operator's memory")
	return 0
}
