// Package builders makes objects for tests: valid by default, changed by what a
// test is about.
package builders

import (
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// AutoScaler builds an AutoScaler.
type AutoScaler struct{ obj v1alpha1.AutoScaler }

// MakeAutoScaler gives one for the Deployment "web" with bounds 2 to 20, polled
// every 15 s, with no limit on steps and no window.
func MakeAutoScaler(namespace, name string) *AutoScaler {
	return &AutoScaler{v1alpha1.AutoScaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AutoScaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.AutoScalerSpec{
			TargetRef:           v1alpha1.TargetReference{Name: "web"},
			MinReplicas:         2,
			MaxReplicas:         20,
			PollIntervalSeconds: 15,
			Behavior:            &v1alpha1.Behavior{ScaleDownStabilizationSeconds: new(int32)},
		},
	}}
}

// Obj is the object.
func (b *AutoScaler) Obj() *v1alpha1.AutoScaler {
	if len(b.obj.Spec.Metrics) == 0 {
		b.Metric("load", "total", "100")
	}
	return b.obj.DeepCopy()
}

// UID sets the UID, as storage would.
func (b *AutoScaler) UID(uid string) *AutoScaler { b.obj.UID = types.UID(uid); return b }

// Target sets the Deployment.
func (b *AutoScaler) Target(name string) *AutoScaler { b.obj.Spec.TargetRef.Name = name; return b }

// Bounds sets minReplicas and maxReplicas.
func (b *AutoScaler) Bounds(low, high int32) *AutoScaler {
	b.obj.Spec.MinReplicas, b.obj.Spec.MaxReplicas = low, high
	return b
}

// Poll sets pollIntervalSeconds.
func (b *AutoScaler) Poll(seconds int32) *AutoScaler {
	b.obj.Spec.PollIntervalSeconds = seconds
	return b
}

// ClaimPolicy sets what happens while another AutoScaler holds the target.
func (b *AutoScaler) ClaimPolicy(p v1alpha1.ClaimPolicy) *AutoScaler {
	b.obj.Spec.ClaimPolicy = p
	return b
}

// Paused sets paused.
func (b *AutoScaler) Paused() *AutoScaler { b.obj.Spec.Paused = true; return b }

// DryRun sets dryRun.
func (b *AutoScaler) DryRun() *AutoScaler { b.obj.Spec.DryRun = true; return b }

// Metric adds a metric of a profile.
func (b *AutoScaler) Metric(name, profile, targetPerReplica string) *AutoScaler {
	b.obj.Spec.Metrics = append(b.obj.Spec.Metrics, v1alpha1.MetricSpec{
		Name: name, Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: profile,
		TargetPerReplica: targetPerReplica, MaxAgeSeconds: 45,
	})
	return b
}

// Steps sets the common behavior's steps.
func (b *AutoScaler) Steps(up, down int32) *AutoScaler {
	b.obj.Spec.Behavior.ScaleUpMaxStep, b.obj.Spec.Behavior.ScaleDownMaxStep = &up, &down
	return b
}

// Window sets the common behavior's scale-down window.
func (b *AutoScaler) Window(seconds int32) *AutoScaler {
	b.obj.Spec.Behavior.ScaleDownStabilizationSeconds = &seconds
	return b
}

// DownInterval sets the common behavior's least time between scale-downs.
func (b *AutoScaler) DownInterval(seconds int32) *AutoScaler {
	b.obj.Spec.Behavior.ScaleDownMinIntervalSeconds = &seconds
	return b
}

// MetricProfile builds a MetricProfile.
type MetricProfile struct{ obj v1alpha1.MetricProfile }

// MakeMetricProfile gives one that every namespace may use, asked of the endpoint
// "main".
func MakeMetricProfile(name string) *MetricProfile {
	return &MetricProfile{v1alpha1.MetricProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MetricProfile"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MetricProfileSpec{
			Endpoint: "main",
			// The profile's name in the query lets a fixture answer each by itself.
			Query:             "sum(rate(requests_total{profile='" + name + "', namespace=$namespace, deployment=$target}[1m]))",
			Semantics:         v1alpha1.SemanticsTotal,
			AllowedNamespaces: []v1alpha1.NamespaceName{v1alpha1.AllNamespaces},
			TimeoutSeconds:    2,
		},
	}}
}

// Obj is the object.
func (b *MetricProfile) Obj() *v1alpha1.MetricProfile { return b.obj.DeepCopy() }

// Query sets the query.
func (b *MetricProfile) Query(q string) *MetricProfile { b.obj.Spec.Query = q; return b }

// Endpoint sets the endpoint.
func (b *MetricProfile) Endpoint(name string) *MetricProfile { b.obj.Spec.Endpoint = name; return b }

// Allow sets the namespaces that may use it.
func (b *MetricProfile) Allow(namespaces ...v1alpha1.NamespaceName) *MetricProfile {
	b.obj.Spec.AllowedNamespaces = namespaces
	return b
}

// Deployment gives a Deployment with this many replicas; a negative number leaves
// spec.replicas out.
func Deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/" + name}}},
			},
		},
	}
	if replicas >= 0 {
		d.Spec.Replicas = &replicas
	}
	return d
}

// HPA gives a HorizontalPodAutoscaler of a Deployment.
func HPA(namespace, name, deployment string) *autoscalingv2.HorizontalPodAutoscaler {
	low := int32(1)
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
			MinReplicas:    &low,
			MaxReplicas:    10,
		},
	}
}
