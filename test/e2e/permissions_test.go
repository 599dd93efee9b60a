//go:build e2e

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

var update = flag.Bool("update", false, "write testdata/can-i anew")

// account is how the API server calls a ServiceAccount.
func account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }

// permissions are what the operator's account may do: all of it, by golden files, and what
// it must never be able to.
func (w *world) permissions() {
	operator := account(systemNamespace, release)
	w.do("all that it may do is in testdata/can-i", func(w *world) {
		rights := map[string]int{}
		for name, namespace := range map[string]string{"own": systemNamespace, "workloads": shop, "kube-system": "kube-system"} {
			rights[name] = w.asWritten(name, operator, namespace)
		}
		w.report("- `kubectl auth can-i --list`: %d rights in a namespace of workloads, %d in kube-system and %d in its own, those of `test/e2e/testdata/can-i`",
			rights["workloads"], rights["kube-system"], rights["own"])
	})
	w.do("what it needs it has", func(w *world) {
		w.mayAll(true, operator, []request{
			{"get list watch", "deployments.apps", shop},
			{"get update", "deployments.apps/scale", shop},
			{"create get update", "leases.coordination.k8s.io", systemNamespace},
		})
	})
	w.do("what would be dangerous it has not", func(w *world) {
		n := w.mayAll(false, operator, never)
		w.report("- %d SubjectAccessReviews about wildcards, Secrets, Pods, `exec`, updates of Deployments, roles, tokens, nodes and others' leases: all denied", n)
	})
	w.do("its own token is refused", (*world).tokenIsRefused)
}

// request is what somebody may or may not do: some verbs, on a resource as
// resource.group/subresource, in a namespace; "" means all of the cluster.
type request struct{ verbs, resource, namespace string }

// everyVerb of resources.
const everyVerb = "get list watch create update patch delete deletecollection"

// never are requests that nobody may grant the operator of a whole cluster.
var never = []request{
	{"* get", "*.*", ""},
	{"* get", "*.*", systemNamespace},
	{"* get update", "*.apps", shop},
	{"*", "deployments.apps", shop},
	{"*", "deployments.apps/scale", shop},
	{"*", "autoscalers.autoscale.example.com", shop},
	{"update", "*.autoscale.example.com", shop},
	{everyVerb, "secrets", ""},
	{everyVerb, "secrets", systemNamespace},
	{everyVerb, "secrets", shop},
	{"get list watch create update patch delete", "pods", shop},
	{"get create", "pods/exec", shop},
	{"get create", "pods/exec", systemNamespace},
	{"create", "pods/eviction", shop},
	{"create update patch delete deletecollection", "deployments.apps", shop},
	{"create update patch delete deletecollection", "deployments.apps", systemNamespace},
	{"patch", "deployments.apps/scale", shop},
	{"get update patch", "statefulsets.apps/scale", shop},
	{"create update patch delete", "autoscalers.autoscale.example.com", shop},
	{"create update patch delete", "metricprofiles.autoscale.example.com", ""},
	{"create update patch delete", "horizontalpodautoscalers.autoscaling", shop},
	{"get list create update patch delete", "leases.coordination.k8s.io", shop},
	{"get list create update patch delete", "leases.coordination.k8s.io", "kube-system"},
	{"list patch delete", "leases.coordination.k8s.io", systemNamespace},
	{"create", "serviceaccounts/token", systemNamespace},
	{"impersonate", "users", ""},
	{"impersonate", "serviceaccounts", systemNamespace},
	{"create update patch bind escalate", "clusterroles.rbac.authorization.k8s.io", ""},
	{"create update patch bind escalate", "roles.rbac.authorization.k8s.io", systemNamespace},
	{"create update patch delete", "clusterrolebindings.rbac.authorization.k8s.io", ""},
	{"create update patch delete", "validatingwebhookconfigurations.admissionregistration.k8s.io", ""},
	{"create update patch delete", "mutatingwebhookconfigurations.admissionregistration.k8s.io", ""},
	{"create update patch delete", "validatingadmissionpolicies.admissionregistration.k8s.io", ""},
	{"create update patch delete", "customresourcedefinitions.apiextensions.k8s.io", ""},
	{"get list create", "nodes/proxy", ""},
	{"get list create update", "configmaps", systemNamespace},
}

// mayAll asks the API server about each verb of requests, and gives how many there were.
func (w *world) mayAll(want bool, who string, requests []request) int {
	w.Helper()
	n := 0
	for _, r := range requests {
		for verb := range strings.FieldsSeq(r.verbs) {
			n++
			assert.Equal(w, want, w.may(who, verb, r.resource, r.namespace), "%s %s in %q", verb, r.resource, r.namespace)
		}
	}
	return n
}

func (w *world) may(who, verb, resource, namespace string) bool {
	w.Helper()
	resource, subresource, _ := strings.Cut(resource, "/")
	of := schema.ParseGroupResource(resource)
	in := strings.Split(who, ":")[2]
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + in, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: of.Group, Resource: of.Resource, Subresource: subresource, Namespace: namespace,
		},
	}}
	review, err := w.clientset.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
	require.NoError(w, err)
	return review.Status.Allowed
}

// listed is a line of kubectl auth can-i --list: a resource, no URLs, names and verbs.
var listed = regexp.MustCompile(`^(\S+)\s+\[\]\s+\[(.*)\]\s+\[(.*)\]$`)

// rights are what an account may do in a namespace, but for what every account may, in
// their order.
func (w *world) rights(who, namespace string) []string {
	w.Helper()
	list := func(who string) (lines []string) {
		for line := range strings.Lines(w.kubectl("auth", "can-i", "--list", "--no-headers", "--namespace="+namespace, "--as="+who)) {
			if strings.HasPrefix(line, " ") {
				continue // of discovery, which has URLs
			}
			found := listed.FindStringSubmatch(strings.TrimSpace(line))
			require.NotNil(w, found, line)
			verbs := strings.Fields(found[3])
			slices.Sort(verbs)
			what := found[1]
			if found[2] != "" {
				names := strings.Fields(found[2])
				slices.Sort(names)
				what += " " + strings.Join(names, " ")
			}
			lines = append(lines, what+": "+strings.Join(verbs, " "))
		}
		slices.Sort(lines)
		return lines
	}
	everybody := list(account(namespace, "nobody"))
	return slices.DeleteFunc(list(who), func(line string) bool { return slices.Contains(everybody, line) })
}

// asWritten compares an account's rights in a namespace with a golden file, and gives how
// many lines they are.
func (w *world) asWritten(name, who, namespace string) int {
	w.Helper()
	rights := w.rights(who, namespace)
	found := fmt.Sprintf("# %s in %s\n%s\n", who, namespace, strings.Join(rights, "\n"))
	path := filepath.Join("testdata", "can-i", name+".txt")
	if *update {
		require.NoError(w, os.WriteFile(path, []byte(found), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(w, err)
	assert.Equal(w, string(want), found, "go test -args -update writes %s anew", path)
	assert.NotContains(w, found, "*")
	return len(rights)
}

// tokenIsRefused uses a token of the account, as somebody would who has read it in a pod.
func (w *world) tokenIsRefused() {
	answer, err := w.clientset.CoreV1().ServiceAccounts(systemNamespace).CreateToken(w.Context(), release, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(w, err)
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = answer.Status.Token
	as, err := kubernetes.NewForConfig(config)
	require.NoError(w, err)

	_, err = as.AppsV1().Deployments(shop).Get(w.Context(), "generator", metav1.GetOptions{})
	require.NoError(w, err, "it is a token that works")
	_, err = as.CoreV1().Secrets(systemNamespace).List(w.Context(), metav1.ListOptions{})
	assert.True(w, apierrors.IsForbidden(err), "%v", err)
	_, err = as.AppsV1().Deployments(shop).Patch(w.Context(), "generator", types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"by":"thief"}}}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	assert.True(w, apierrors.IsForbidden(err), "%v", err)
	pod := w.operators(release, systemNamespace)[0].Name
	err = as.CoreV1().RESTClient().Post().Namespace(systemNamespace).Resource("pods").Name(pod).SubResource("exec").
		Param("command", "true").Do(w.Context()).Error()
	assert.True(w, apierrors.IsForbidden(err), "%v", err)
	_, err = as.CoreV1().Pods(shop).Create(w.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "by-thief-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	assert.True(w, apierrors.IsForbidden(err), "%v", err)
	w.report("- with a token of the account: it reads a Deployment; listing Secrets, changing a Deployment, making a pod and `exec` are forbidden")
}
