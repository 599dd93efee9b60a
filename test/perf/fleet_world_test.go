//go:build perf

package perf

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	// fleetNamespaces is over how many namespaces the fleet is spread, evenly.
	fleetNamespaces = 100
	// fleetReplicas is the count that every Deployment has and its load asks for.
	fleetReplicas = 4
)

// The fleet's MetricProfiles. In eight tenths of the namespaces one query answers for
// the namespace's AutoScalers, in one tenth a single one for all of them, each by its
// own series; and the last tenth is like the first eight, until it is moved.
const (
	fleetOwn    = "own"
	fleetShared = "shared"
	fleetMoved  = "moved"
)

func fleetProfile(namespace int) string {
	switch {
	case namespace < fleetNamespaces*8/10:
		return fleetOwn
	case namespace < fleetNamespaces*9/10:
		return fleetShared
	}
	return fleetMoved
}

func fleetNamespace(n int) string { return fmt.Sprintf("fleet-%02d", n) }

func fleetName(i int) string { return fmt.Sprintf("service-%05d", i) }

// fleet is a control plane with the real operator on it, as it is installed: with
// webhooks and guard, under its own account, elected.
type fleet struct {
	*testing.T
	size          int
	controlPlane  *controlplane.ControlPlane
	client        client.Client
	pid           int    // the operator's
	address       string // of its metrics
	answers, hang *fixture.MetricServer
}

func startFleet(t *testing.T, size int) *fleet {
	t.Helper()
	require.GreaterOrEqual(t, size, fleetNamespaces, "FLEET: at least one for each namespace")
	cp := startControlPlane(t, controlplane.Options{Webhooks: true, Guard: true})
	f := &fleet{
		T: t, size: size, controlPlane: cp, client: guardClient(t, cp.Config), address: fleetAddress(t),
		answers: fixture.NewMetricServer(t), hang: fixture.NewMetricServer(t),
	}
	f.answers.Value(100 * fleetReplicas)
	f.answers.On("by (namespace, deployment)").Func(f.perTarget)
	f.hang.Hang()
	f.pid = operator.Start(t, cp, operator.Options{
		Config: "endpoints: [{name: main, url: '" + f.answers.URL() + "'}, {name: hangs, url: '" + f.hang.URL() + "'}]",
		// A line for every AutoScaler's first decision would hide what a failure is about.
		Args: []string{"--metrics-bind-address=" + f.address, "--metrics-secure=false", "--zap-log-level=error"},
	}).PID()
	require.Eventually(t, func() bool {
		var lease coordinationv1.Lease
		err := f.client.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: controller.FieldManager}, &lease)
		return err == nil && lease.Spec.HolderIdentity != nil
	}, time.Minute, 50*time.Millisecond, "the operator is not elected")
	ofNamespace := func(name string) *v1alpha1.MetricProfile {
		return builders.MakeMetricProfile(name).Query("sum(rate(requests_total{profile='" + name + "', namespace=$namespace}[1m]))").Obj()
	}
	shared := builders.MakeMetricProfile(fleetShared).Query("sum by (namespace, deployment) (rate(requests_total[1m]))").Obj()
	shared.Spec.Series = v1alpha1.SeriesPerTarget
	for _, profile := range []*v1alpha1.MetricProfile{ofNamespace(fleetOwn), ofNamespace(fleetMoved), shared} {
		require.NoError(t, f.client.Create(t.Context(), profile))
	}
	return f
}

// fleetAddress is one that nobody listened at a moment ago.
func fleetAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

// perTarget answers with a series for each Deployment of the profile that all share.
func (f *fleet) perTarget(w http.ResponseWriter, _ *http.Request) {
	at := strconv.FormatFloat(float64(time.Now().UnixMilli())/1000, 'f', 3, 64)
	var series []string
	for i := range f.size {
		if n := i % fleetNamespaces; fleetProfile(n) == fleetShared {
			series = append(series, fmt.Sprintf(`{"metric":{"namespace":%q,"deployment":%q},"value":[%s,"%d"]}`,
				fleetNamespace(n), fleetName(i), at, 100*fleetReplicas))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(series, ","))
}

// create makes the fleet, each Deployment with its AutoScaler, as fast as the API
// server and the operator's webhooks let it. The operator evaluates meanwhile.
func (f *fleet) create() {
	f.Helper()
	for n := range fleetNamespaces {
		require.NoError(f, f.client.Create(f.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleetNamespace(n)}}))
	}
	var done atomic.Int32
	begun := time.Now()
	err := createAll(f.size, func(i int) error {
		namespace, name := fleetNamespace(i%fleetNamespaces), fleetName(i)
		if err := f.client.Create(f.Context(), builders.Deployment(namespace, name, fleetReplicas)); err != nil {
			return err
		}
		a := builders.MakeAutoScaler(namespace, name).Target(name).Poll(int32(fleetPoll/time.Second)).Window(300).
			Metric("load", fleetProfile(i%fleetNamespaces), "100").Obj()
		if err := f.client.Create(f.Context(), a); err != nil {
			return err
		}
		if n := int(done.Add(1)); n%1000 == 0 || n == f.size {
			f.Logf("fleet: %d of %d created after %.0f s", n, f.size, time.Since(begun).Seconds())
		}
		return nil
	})
	require.NoError(f, err, "creating the fleet")
}

// move points the last tenth's profile at another endpoint: one write of an
// administrator.
func (f *fleet) move(endpoint string) {
	f.Helper()
	profile := &v1alpha1.MetricProfile{}
	require.NoError(f, f.client.Get(f.Context(), client.ObjectKey{Name: fleetMoved}, profile))
	profile.Spec.Endpoint = endpoint
	require.NoError(f, f.client.Update(f.Context(), profile))
}

// distinct is the number of queries that the answering endpoint is asked per
// interval.
func (f *fleet) distinct(moved bool) int {
	distinct := 1 // the shared one
	for n := range fleetNamespaces {
		if p := fleetProfile(n); p == fleetOwn || p == fleetMoved && !moved {
			distinct++
		}
	}
	return distinct
}

// others are those whose endpoint answers to the end.
func (f *fleet) others() int {
	others := 0
	for i := range f.size {
		if fleetProfile(i%fleetNamespaces) != fleetMoved {
			others++
		}
	}
	return others
}

// requests are those that the operator made so far: the number of reads, and the
// writes by what they were, without its lease.
func (f *fleet) requests() (reads int, writes map[string]int) {
	f.Helper()
	all, err := f.controlPlane.Requests(f.Context(), controlplane.OperatorUser)
	require.NoError(f, err)
	writes = map[string]int{}
	for _, r := range all {
		switch {
		case r.Resource == "leases": // renewed whatever the fleet does
		case r.IsWrite():
			writes[strings.TrimSuffix(r.Verb+" "+r.Resource+"/"+r.Subresource, "/")]++
		default:
			reads++
		}
	}
	return reads, writes
}
