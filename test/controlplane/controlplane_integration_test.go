//go:build integration

package controlplane

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"example.com/platform/autoscale-operator/test/cluster/binaries"
	"example.com/platform/autoscale-operator/test/cluster/install"
)

var shared *ControlPlane

const (
	// effective bounds the wait for a binding that was stored to take effect.
	effective = 10 * time.Second
	poll      = 20 * time.Millisecond
)

func TestMain(m *testing.M) {
	Main(m, Options{Webhooks: true, Guard: true}, func(cp *ControlPlane) { shared = cp })
}

var autoScalers = schema.GroupVersionResource{Group: "autoscale.example.com", Version: "v1alpha1", Resource: "autoscalers"}

func TestTheOperatorHasTheRightsOfItsRoleAndNoOthers(t *testing.T) {
	operator := kubernetes.NewForConfigOrDie(shared.Operator)

	_, err := dynamic.NewForConfigOrDie(shared.Operator).Resource(autoScalers).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = operator.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, OperatorUser)
}

func TestAUserHasTheRightsOfTheirGroups(t *testing.T) {
	admin := kubernetes.NewForConfigOrDie(shared.Config)
	_, err := admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "view-configmaps"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view-configmaps"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "viewers"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	viewer := kubernetes.NewForConfigOrDie(shared.UserConfig("ada", "viewers"))
	stranger := kubernetes.NewForConfigOrDie(shared.UserConfig("bob"))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := viewer.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		assert.NoError(c, err)
	}, effective, poll)
	_, err = stranger.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// With the webhooks registered and nobody serving them, the API server must
// refuse what they check: they are in force.
func TestTheWebhooksAreRegistered(t *testing.T) {
	configurations, err := kubernetes.NewForConfigOrDie(shared.Config).AdmissionregistrationV1().
		ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, configurations.Items)
	for _, configuration := range configurations.Items {
		for _, webhook := range configuration.Webhooks {
			require.NotNil(t, webhook.ClientConfig.URL, webhook.Name)
			assert.Contains(t, *webhook.ClientConfig.URL, "https://127.0.0.1:"+strconv.Itoa(shared.WebhookPort)+"/validate-")
			assert.Nil(t, webhook.ClientConfig.Service, webhook.Name)
		}
	}
	assert.FileExists(t, filepath.Join(shared.WebhookCertDir, "tls.crt"))
	assert.FileExists(t, filepath.Join(shared.WebhookCertDir, "tls.key"))
}

func TestInstallingAgainChangesNothing(t *testing.T) {
	root, err := binaries.CheckoutRoot()
	require.NoError(t, err)
	options := install.Options{Root: root, Dir: filepath.Join(shared.cluster.Dir(), "operator"), WebhookPort: shared.WebhookPort, Guard: true}
	versions := func() map[string]string {
		c := dynamic.NewForConfigOrDie(shared.Config)
		result := map[string]string{}
		for _, resource := range []schema.GroupVersionResource{
			{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicies"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
			{Version: "v1", Resource: "serviceaccounts"},
		} {
			list, err := c.Resource(resource).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, item := range list.Items {
				result[resource.Resource+"/"+item.GetName()] = item.GetResourceVersion()
			}
		}
		require.Contains(t, result, "serviceaccounts/"+install.ServiceAccount)
		require.Contains(t, result, "validatingadmissionpolicies/autoscale-guard-scale")
		return result
	}
	before := versions()

	_, err = install.Apply(t.Context(), shared.Config, options)

	require.NoError(t, err)
	assert.Equal(t, before, versions())
}

// The installer returns when the guard is in force.
func TestTheGuardIsInForceAtOnce(t *testing.T) {
	guards := dynamic.NewForConfigOrDie(shared.Config).Resource(autoScalers.GroupVersion().WithResource("scaleguards")).Namespace("default")
	guard := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"count": int64(1), "held": "/web=/"}}}
	guard.SetAPIVersion(autoScalers.GroupVersion().String())
	guard.SetKind("ScaleGuard")
	guard.SetName("by-hand")

	_, err := guards.Create(t.Context(), guard, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "only the operator writes a ScaleGuard")
}

// The count must be exact the moment the answer is there, with requests of
// others under way all the time.
func TestRequestsHoldsEverythingAnsweredBefore(t *testing.T) {
	const writers, each = 4, 25
	noise, quiet := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			c := kubernetes.NewForConfigOrDie(shared.UserConfig("noise-"+strconv.Itoa(i), "system:masters"))
			for noise.Err() == nil {
				_, _ = c.CoreV1().Namespaces().List(noise, metav1.ListOptions{})
			}
		})
	}
	defer others.Wait()
	defer quiet()

	var done sync.WaitGroup
	for i := range writers {
		done.Go(func() {
			user := "writer-" + strconv.Itoa(i)
			maps := kubernetes.NewForConfigOrDie(shared.UserConfig(user, "system:masters")).CoreV1().ConfigMaps("default")
			for n := range each {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", user, n)}}
				_, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
				if !assert.NoError(t, err) {
					return
				}
				writes, err := shared.Writes(t.Context(), user)
				if !assert.NoError(t, err) || !assert.Len(t, writes, n+1) {
					return
				}
			}
		})
	}
	done.Wait()
}

func TestRequestsTellsWhatWasAskedFor(t *testing.T) {
	c := kubernetes.NewForConfigOrDie(shared.UserConfig("teller", "system:masters"))
	maps := c.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "told"}}
	_, err := maps.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	_, err = maps.Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = maps.Create(t.Context(), object, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err))
	_, err = c.AppsV1().Deployments("default").GetScale(t.Context(), "absent", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))

	requests, err := shared.Requests(t.Context(), "teller")

	require.NoError(t, err)
	require.Len(t, requests, 4)
	create := Request{User: "teller", Verb: "create", Resource: "configmaps", Namespace: "default", Code: http.StatusCreated}
	dryRun, conflict := create, create
	dryRun.DryRun, conflict.Code = true, http.StatusConflict
	for i := range requests[:3] {
		requests[i].Name = "" // Whether a create's name is recorded is up to the API server.
	}
	assert.Equal(t, []Request{dryRun, create, conflict, {
		User: "teller", Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale",
		Namespace: "default", Name: "absent", Code: http.StatusNotFound,
	}}, requests)
	writes, err := shared.Writes(t.Context(), "teller")
	require.NoError(t, err)
	assert.Len(t, writes, 2, "the dry run and the read are none")
}

func TestASecondControlPlaneStandsBesideTheFirst(t *testing.T) {
	second, err := Start(t.Context(), Options{Progress: t.Output()})
	require.NoError(t, err)
	assert.NotEqual(t, shared.Config.Host, second.Config.Host)
	assert.Zero(t, second.WebhookPort)
	dir := second.cluster.Dir()

	require.NoError(t, second.Stop())

	assert.NoDirExists(t, dir)
	_, err = kubernetes.NewForConfigOrDie(shared.Config).Discovery().ServerVersion()
	assert.NoError(t, err, "the first is untouched")
}

// The API server and etcd may be somebody else's, as controller-runtime's own
// test environment has them.
func TestAssetsOfTheEnvironmentAreUsed(t *testing.T) {
	t.Setenv(AssetsEnv, t.TempDir())

	_, err := Start(t.Context(), Options{})

	assert.ErrorContains(t, err, AssetsEnv)
	assert.ErrorContains(t, err, "etcd is not in")

	set, err := binaries.Build(t.Context(), t.Output(), binaries.Etcd, binaries.KubeAPIServer)
	require.NoError(t, err)
	t.Setenv(AssetsEnv, filepath.Dir(set.Path(binaries.Etcd)))
	cp, err := Start(t.Context(), Options{Progress: t.Output()})
	require.NoError(t, err)
	assert.NoError(t, cp.Stop())
}
