//go:build integration

package integration

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/controller"
	"example.com/platform/autoscale-operator/test/builders"
	"example.com/platform/autoscale-operator/test/cluster/install"
	"example.com/platform/autoscale-operator/test/controlplane"
	"example.com/platform/autoscale-operator/test/fixture"
	operatortest "example.com/platform/autoscale-operator/test/operator"
)

// clusterScoped are the resources of the operator's role that have no namespace. The
// others it needs in the namespaces that it watches only.
var clusterScoped = map[string]bool{
	"metricprofiles": true, "customresourcedefinitions": true, "validatingwebhookconfigurations": true,
	"tokenreviews": true, "subjectaccessreviews": true,
}

// confine takes from the operator's account the right to anything in a namespace other
// than these, and the operator's own.
func (s *starting) confine(namespaces ...string) {
	s.Helper()
	var whole rbacv1.ClusterRole
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Name: "autoscale-operator"}, &whole))
	var cluster, namespaced []rbacv1.PolicyRule
	for _, rule := range whole.Rules {
		inCluster, inNamespace := rule, rule
		inCluster.Resources, inNamespace.Resources = nil, nil
		for _, resource := range rule.Resources {
			if clusterScoped[resource] {
				inCluster.Resources = append(inCluster.Resources, resource)
			} else {
				inNamespace.Resources = append(inNamespace.Resources, resource)
			}
		}
		if len(inCluster.Resources) > 0 {
			cluster = append(cluster, inCluster)
		}
		if len(inNamespace.Resources) > 0 {
			namespaced = append(namespaced, inNamespace)
		}
	}
	for _, name := range namespaces {
		s.grant(name, namespaced)
	}
	whole.Rules = cluster
	require.NoError(s, s.client.Update(s.Context(), &whole))
}

// grant gives the operator's account rights in a namespace.
func (s *starting) grant(namespace string, rules []rbacv1.PolicyRule) {
	s.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "autoscale-operator-scaling"}
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	require.NoError(s, s.client.Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: install.Namespace, Name: install.ServiceAccount}},
	}))
}

var leases = []rbacv1.PolicyRule{
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
}

// direct makes the webhooks those of one operator, for one namespace; with another
// address, a copy of them.
func (s *starting) direct(name, address, namespace string) {
	s.Helper()
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{namespace},
	}}}
	to := func(c *admissionv1.WebhookClientConfig) {
		_, path, _ := strings.Cut(strings.TrimPrefix(*c.URL, "https://"), "/")
		c.URL = new("https://" + address + "/" + path)
	}
	var validating admissionv1.ValidatingWebhookConfiguration
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Name: "autoscale-operator"}, &validating))
	var mutating admissionv1.MutatingWebhookConfiguration
	require.NoError(s, s.client.Get(s.Context(), client.ObjectKey{Name: "autoscale-operator"}, &mutating))
	validating.Annotations = map[string]string{"autoscale.example.com/watch-namespaces": namespace}
	for i := range validating.Webhooks {
		to(&validating.Webhooks[i].ClientConfig)
		if strings.HasPrefix(validating.Webhooks[i].Name, "autoscalers.") {
			validating.Webhooks[i].NamespaceSelector = selector
		}
	}
	for i := range mutating.Webhooks {
		to(&mutating.Webhooks[i].ClientConfig)
		mutating.Webhooks[i].NamespaceSelector = selector
	}
	for _, c := range []client.Object{&validating, &mutating} {
		if name == c.GetName() {
			require.NoError(s, s.client.Update(s.Context(), c))
			continue
		}
		c.SetName(name)
		c.SetResourceVersion("")
		c.SetUID("")
		require.NoError(s, s.client.Create(s.Context(), c))
	}
}

func (s *starting) requests() []controlplane.Request {
	s.Helper()
	all, err := s.controlPlane.Requests(s.Context(), controlplane.OperatorUser)
	require.NoError(s, err)
	return all
}

// Two operators, each with rights in its own namespace only, manage what is in theirs,
// at the same time and with the same profile. Neither asks for anything elsewhere.
func TestTwoOperatorsOfDifferentNamespacesDoNotDisturbEachOther(t *testing.T) {
	s := newStarting(t)
	metrics := fixture.NewMetricServer(t)
	metrics.Value(400)
	const second = "second-system"
	for _, name := range []string{"bank", "shop", "art", second} {
		require.NoError(t, s.client.Create(t.Context(), namespace(name)))
	}
	s.grant(second, leases)
	s.grant(install.Namespace, leases)
	s.confine("bank", "shop")
	_, port, err := net.SplitHostPort(operatortest.FreeAddress(t))
	require.NoError(t, err)
	// The copy first: it is made of the one that is there.
	s.direct("second", "127.0.0.1:"+port, "shop")
	s.direct("autoscale-operator", net.JoinHostPort(s.controlPlane.WebhookHost, strconv.Itoa(s.controlPlane.WebhookPort)), "bank")

	config := "endpoints: [{name: main, url: '" + metrics.URL() + "'}]"
	before := len(s.requests())
	operatortest.Start(t, s.controlPlane, operatortest.Options{Config: config, Args: []string{"--watch-namespaces=bank"}})
	operatortest.Start(t, s.controlPlane, operatortest.Options{Config: config, Args: []string{
		"--watch-namespaces=shop", "--namespace=" + second, "--webhook-configurations=second", "--webhook-port=" + port,
	}})
	require.Eventually(t, func() bool {
		return s.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj()) == nil
	}, 20*time.Second, 50*time.Millisecond, "both validate the profile")

	for _, name := range []string{"bank", "shop", "art"} {
		require.NoError(t, s.client.Create(t.Context(), builders.Deployment(name, "web", 2)))
		require.Eventually(t, func() bool {
			a := builders.MakeAutoScaler(name, "web").Poll(5).Metric("load", "total", "100").Obj()
			return client.IgnoreAlreadyExists(s.client.Create(t.Context(), a)) == nil
		}, 20*time.Second, 50*time.Millisecond, name)
	}
	count := func(namespace string) int32 {
		d := builders.Deployment(namespace, "web", 0)
		require.NoError(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		return *d.Spec.Replicas
	}
	for _, name := range []string{"bank", "shop"} {
		require.Eventually(t, func() bool { return count(name) == 4 }, 60*time.Second, 50*time.Millisecond, name)
		var binding v1alpha1.ScaleBinding
		require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "web"}, &binding))
	}
	assert.Equal(t, int32(2), count("art"), "nobody watches it")
	for _, name := range []string{install.Namespace, second} {
		var lease coordinationv1.Lease
		assert.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: controller.FieldManager}, &lease), "each has a lease of its own")
	}

	elsewhere := map[schema.GroupResource]bool{}
	for _, r := range s.requests()[before:] {
		assert.NotEqual(t, int32(http.StatusForbidden), r.Code, "%+v", r)
		if r.Namespace == "art" {
			elsewhere[schema.GroupResource{Resource: r.Resource}] = true
		}
	}
	assert.Empty(t, elsewhere, "asked for in a namespace that nobody watches")

	// An operator for all would manage both namespaces too.
	assert.Contains(t, s.ends(s.run("--webhook-configurations=third", "--webhook-port=0")), "another autoscale-operator is installed for namespace ")
}

// The API server's selector should not send others here; if it does, the answer says
// what is wrong.
func TestAnAutoScalerElsewhereIsRefusedByAnOperatorOfSomeNamespaces(t *testing.T) {
	s := newStarting(t)
	require.NoError(t, s.client.Create(t.Context(), namespace("art")))
	operatortest.Start(t, s.controlPlane, operatortest.Options{Config: anEndpoint, Args: []string{"--watch-namespaces=bank,shop"}})
	require.NoError(t, s.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj()))
	err := s.client.Create(t.Context(), builders.MakeAutoScaler("art", "web").Metric("load", "total", "100").Obj())
	require.Error(t, err)
	assert.ErrorContains(t, err, "this operator watches bank, shop, and not namespace art")
}

// A namespace may be deleted, with the roles in it, and made again without them. The
// operator starts, manages the others, and comes to it when it may.
func TestANamespaceWithoutRightsStopsNoOther(t *testing.T) {
	s := newStarting(t)
	metrics := fixture.NewMetricServer(t)
	metrics.Value(400)
	for _, name := range []string{"bank", "shop"} {
		require.NoError(t, s.client.Create(t.Context(), namespace(name)))
		require.NoError(t, s.client.Create(t.Context(), builders.Deployment(name, "web", 2)))
	}
	var whole rbacv1.ClusterRole
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Name: "autoscale-operator"}, &whole))
	s.grant(install.Namespace, leases)
	s.confine("bank")

	o := operatortest.Start(t, s.controlPlane, operatortest.Options{
		Config: "endpoints: [{name: main, url: '" + metrics.URL() + "'}]", Args: []string{"--watch-namespaces=bank,shop,gone"},
	})

	require.NoError(t, s.client.Create(t.Context(), builders.MakeMetricProfile("total").Obj()))
	follows := func(namespace string) func() bool {
		return func() bool {
			a := builders.MakeAutoScaler(namespace, "web").Poll(5).Metric("load", "total", "100").Obj()
			d := builders.Deployment(namespace, "web", 0)
			return client.IgnoreAlreadyExists(s.client.Create(t.Context(), a)) == nil &&
				s.client.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil && *d.Spec.Replicas == 4
		}
	}
	require.Eventually(t, follows("bank"), 60*time.Second, 50*time.Millisecond)
	err := s.client.Create(t.Context(), builders.MakeAutoScaler("shop", "web").Metric("load", "total", "100").Obj())
	require.ErrorContains(t, err, "could not look up", "what cannot be looked at is not admitted")
	for _, name := range []string{"shop", "gone"} {
		assert.Regexp(t, `nothing is managed in this namespace.*"namespace":"`+name+`"`, o.Log())
	}

	s.grant("shop", whole.Rules)

	require.Eventually(t, follows("shop"), 90*time.Second, 50*time.Millisecond, "with the rights it is managed")
	_, err = o.Ready(t.Context())
	assert.NoError(t, err)
}
