//go:build e2e

package e2e

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/test/builders"
)

//go:embed manifests
var manifests embed.FS

// Where things of a run are; all of it is removed.
const (
	shop            = "e2e-shop"
	monitoring      = "e2e-monitoring"
	systemNamespace = "autoscale-operator-system"
	// second is for the second of two installs, warehouse for what it scales. third is there
	// only if an install is not refused that should be.
	second    = "e2e-second"
	warehouse = "e2e-warehouse"
	third     = "e2e-third"
)

var (
	namespaces = []string{shop, warehouse, systemNamespace, second, third, monitoring}
	// releases are in these namespaces.
	releases = map[string]string{release: systemNamespace, secondRelease: second, thirdRelease: third}
)

// service is the Deployment that gets the load, and the name of all that is for it.
const service = "order-service"

// perReplica is what a replica carries, in items a second: the figure of the seed's
// experiment.
const perReplica = 100

// openShop starts what measures and what orders.
func (w *world) openShop() {
	w.Helper()
	for _, name := range []string{"monitoring.yaml", "shop.yaml"} {
		text, err := manifests.ReadFile("manifests/" + name)
		require.NoError(w, err)
		path := filepath.Join(w.dir, name)
		require.NoError(w, os.WriteFile(path, text, 0o600))
		w.kubectl("apply", "--server-side", "--filename="+path)
	}
	w.rolledOut(monitoring, "prometheus")
	w.rolledOut(shop, "generator")
}

// rolledOut waits until all replicas of a Deployment are ready.
func (w *world) rolledOut(namespace, name string) {
	w.Helper()
	w.kubectl("--namespace="+namespace, "rollout", "status", "deployment/"+name, "--timeout="+soon.String())
}

// deployment is one of the sample service.
func deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	d := builders.Deployment(namespace, name, replicas)
	labels := map[string]string{"app": name}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"prometheus.io/scrape": "true"}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "service", Image: "localhost/service:e2e", ImagePullPolicy: corev1.PullIfNotPresent,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http")}},
					PeriodSeconds: 1,
				},
				SecurityContext: &corev1.SecurityContext{
					ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("12Mi"),
				}},
			}},
		},
	}
	return d
}

// load is the query for the items that a namespace's order-service takes a second. Its
// window is short, so that a run does not last for hours.
const load = `sum(rate(order_items_total{namespace=$namespace, deployment="` + service + `"}[15s]))`

// profile asks Prometheus for a query.
func profile(name, query string) *v1alpha1.MetricProfile {
	p := builders.MakeMetricProfile(name).Obj()
	p.Spec.Query = query
	return p
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.client.Create(w.Context(), o))
	}
}

// remove deletes objects, and waits until they and their pods are gone.
func (w *world) remove(objects ...client.Object) {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	for _, o := range objects {
		err := w.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationForeground))
		require.NoError(w, client.IgnoreNotFound(err))
	}
	for _, o := range objects {
		require.NoError(w, poll(ctx, soon, func(ctx context.Context) error {
			if err := w.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return client.IgnoreNotFound(err)
			}
			return fmt.Errorf("%T %s is still there", o, o.GetName())
		}))
	}
}

// order sets the load on the service, in items a second.
func (w *world) order(items int) {
	w.Helper()
	w.until("the load to be set", soon, func(ctx context.Context) error {
		return w.clientset.CoreV1().RESTClient().Post().Namespace(shop).Resource("services").Name("http:generator:http").
			SubResource("proxy").Suffix("load").Param("items", strconv.Itoa(items)).Do(ctx).Error()
	})
}

// orders is what became of the load.
type orders struct {
	Answered, Failed int
	Failures         []struct {
		Time  time.Time
		Error string
	}
	// First is when each replica, by the name of its pod, first answered.
	First map[string]time.Time
}

func (w *world) orders() orders {
	w.Helper()
	body, err := w.clientset.CoreV1().Services(shop).ProxyGet("http", "generator", "http", "report", nil).DoRaw(w.Context())
	require.NoError(w, err)
	var o orders
	require.NoError(w, json.Unmarshal(body, &o))
	return o
}

// measured is what Prometheus answers; not there is an error.
func (w *world) measured(ctx context.Context, query string) (float64, error) {
	body, err := w.clientset.CoreV1().Services(monitoring).
		ProxyGet("http", "prometheus", "http", "api/v1/query", map[string]string{"query": query}).DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, err
	}
	if n := len(answer.Data.Result); n != 1 {
		return 0, fmt.Errorf("%s has %d series", query, n)
	}
	text, _ := answer.Data.Result[0].Value[1].(string)
	return strconv.ParseFloat(text, 64)
}

func (w *world) autoscaler(ctx context.Context, namespace, name string) (*v1alpha1.AutoScaler, error) {
	a := &v1alpha1.AutoScaler{}
	return a, w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, a)
}

func (w *world) binding(ctx context.Context, namespace, name string) (*v1alpha1.ScaleBinding, error) {
	b := &v1alpha1.ScaleBinding{}
	return b, w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b)
}

// counts are a Deployment's wanted and ready replicas.
func (w *world) counts(ctx context.Context, namespace, name string) (wanted, ready int32, err error) {
	var d appsv1.Deployment
	err = w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d)
	if err == nil {
		wanted, ready = *d.Spec.Replicas, d.Status.ReadyReplicas
	}
	return wanted, ready, err
}

// reaches waits until a Deployment has a count, and all of it is ready.
func (w *world) reaches(namespace, name string, count int32, within time.Duration) time.Duration {
	w.Helper()
	return w.until(fmt.Sprintf("%s to have %d ready replicas", name, count), within, func(ctx context.Context) error {
		wanted, ready, err := w.counts(ctx, namespace, name)
		if err == nil && (wanted != count || ready != count) {
			err = fmt.Errorf("%d are wanted, %d are ready", wanted, ready)
		}
		return err
	})
}

// keeps is for throughout: a Deployment of the shop has a count.
func (w *world) keeps(name string, count int32) func(context.Context) error {
	return func(ctx context.Context) error {
		wanted, _, err := w.counts(ctx, shop, name)
		if err == nil && wanted != count {
			err = fmt.Errorf("%s has %d replicas, not %d", name, wanted, count)
		}
		return err
	}
}

// says waits until a condition of an AutoScaler has a reason, and gives its message.
func (w *world) says(namespace, name, condition, reason string) string {
	w.Helper()
	var message string
	w.until(name+": "+condition+" "+reason, soon, func(ctx context.Context) error {
		a, err := w.autoscaler(ctx, namespace, name)
		if err != nil {
			return err
		}
		for _, c := range a.Status.Conditions {
			if c.Type == condition && c.Reason == reason {
				message = c.Message
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", a.Status.Conditions)
	})
	return message
}
