//go:build perf

package perf

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/controlplane"
)

const (
	// guardRounds is how often each request is measured, and guardWarmUp how often it
	// is made before.
	guardRounds = 600
	guardWarmUp = 60
	// guardBound is how much slower a request may be, at the median, in a namespace
	// with guardBoundAt held Deployments than in one with none.
	guardBound   = 1.25
	guardBoundAt = 1000
)

// guardSizes are the numbers of held Deployments per namespace; 10,000 nearly fill one
// ScaleGuard.
var guardSizes = []int32{0, 100, guardBoundAt, 10_000}

// guardNamespace is a namespace with so many held Deployments, of which one, "held",
// exists, and one, "free", which is not held.
type guardNamespace struct {
	held  int32
	name  string
	times map[string][]time.Duration
}

// TestGuardCost measures what the guard adds to writes that it lets pass, since those
// are everybody's: by the size of the namespace's index, in one run, the sizes in turn.
func TestGuardCost(t *testing.T) {
	cp := startControlPlane(t, controlplane.Options{Guard: true})
	operator := guardClient(t, cp.UserConfig(controlplane.OperatorUser, "system:masters"))
	deployer := guardClient(t, cp.UserConfig("system:serviceaccount:argocd:deployer", "system:masters"))
	var namespaces []*guardNamespace
	for _, size := range guardSizes {
		namespaces = append(namespaces, prepareGuardNamespace(t, operator, deployer, size))
	}
	measurements := []struct {
		name string
		do   func(ctx context.Context, namespace string, round int) error
	}{
		{"GET and PUT /scale by another, of a Deployment that is not held", func(ctx context.Context, namespace string, round int) error {
			return scaleOnce(ctx, deployer, namespace, "free", int32(3+round%2))
		}},
		{"GET and PUT /scale by the operator", func(ctx context.Context, namespace string, round int) error {
			return scaleOnce(ctx, operator, namespace, "held", int32(3+round%2))
		}},
		{"Deployment update by another, of a Deployment that is held", func(ctx context.Context, namespace string, round int) error {
			d := builders.Deployment(namespace, "held", int32(3+round%2))
			d.Spec.Template.Annotations = map[string]string{"round": fmt.Sprint(round)}
			return deployer.Update(ctx, d, client.FieldOwner("deployer"))
		}},
	}
	for round := range guardWarmUp + guardRounds {
		for _, m := range measurements {
			for i := range namespaces {
				ns := namespaces[(i+round)%len(namespaces)] // none is always the first after another request
				begun := time.Now()
				require.NoError(t, m.do(t.Context(), ns.name, round))
				if round >= guardWarmUp {
					ns.times[m.name] = append(ns.times[m.name], time.Since(begun))
				}
			}
		}
	}
	var report strings.Builder
	table := tabwriter.NewWriter(&report, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "request\theld\tp50 ms\tp99 ms\tp50, of that with none held")
	for _, m := range measurements {
		none := quantile(namespaces[0].times[m.name], 0.5)
		for _, ns := range namespaces {
			p50, p99 := quantile(ns.times[m.name], 0.5), quantile(ns.times[m.name], 0.99)
			ratio := float64(p50) / float64(none)
			fmt.Fprintf(table, "%s\t%d\t%.2f\t%.2f\t%.2f\n", m.name, ns.held, milliseconds(p50), milliseconds(p99), ratio)
			if ns.held == guardBoundAt {
				assert.LessOrEqual(t, ratio, guardBound, "%s with %d held", m.name, ns.held)
			}
		}
	}
	require.NoError(t, table.Flush())
	t.Logf("the guard's cost, %d rounds:\n%s", guardRounds, report.String())
}

func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(q*float64(len(sorted)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func guardClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c
}

func prepareGuardNamespace(t *testing.T, operator, deployer client.Client, held int32) *guardNamespace {
	t.Helper()
	ns := &guardNamespace{held: held, name: fmt.Sprintf("held-%d", held), times: map[string][]time.Duration{}}
	require.NoError(t, deployer.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.name}}))
	for _, name := range []string{"held", "free"} {
		require.NoError(t, deployer.Create(t.Context(), builders.Deployment(ns.name, name, 3), client.FieldOwner("deployer")))
	}
	if held == 0 {
		return ns
	}
	index := "/"
	for i := range held - 1 {
		name := fmt.Sprintf("service-%05d", i)
		index += v1alpha1.HeldEntry(name, name)
	}
	index += v1alpha1.HeldEntry("held", "held") // the last: the longest search
	require.NoError(t, operator.Create(t.Context(), &v1alpha1.ScaleGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.name, Name: "guard"},
		Spec:       v1alpha1.ScaleGuardSpec{Count: held, Held: index},
	}))
	require.Eventually(t, func() bool {
		return apierrors.IsForbidden(scaleOnce(t.Context(), deployer, ns.name, "held", 9, client.DryRunAll))
	}, 20*time.Second, 50*time.Millisecond, "the index does not take effect")
	return ns
}

func scaleOnce(ctx context.Context, c client.Client, namespace, name string, replicas int32, opts ...client.SubResourceUpdateOption) error {
	d := builders.Deployment(namespace, name, -1)
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(ctx, d, scale); err != nil {
		return err
	}
	scale.Spec.Replicas = replicas
	return c.SubResource("scale").Update(ctx, d, append(opts, client.WithSubResourceBody(scale))...)
}
