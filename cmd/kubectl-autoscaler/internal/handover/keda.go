package handover

import (
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// scaledObject is what of KEDA's ScaledObject is looked at (keda.sh/v1alpha1).
type scaledObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"scaleTargetRef"`
		PollingInterval  *int32 `json:"pollingInterval"`
		CooldownPeriod   *int32 `json:"cooldownPeriod"`
		IdleReplicaCount *int32 `json:"idleReplicaCount"`
		MinReplicaCount  *int32 `json:"minReplicaCount"`
		MaxReplicaCount  *int32 `json:"maxReplicaCount"`
		Triggers         []struct {
			Type       string            `json:"type"`
			Name       string            `json:"name"`
			MetricType string            `json:"metricType"`
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
		Fallback *struct {
			FailureThreshold int32 `json:"failureThreshold"`
			Replicas         int32 `json:"replicas"`
		} `json:"fallback"`
		Advanced *struct {
			Restore bool `json:"restoreToOriginalReplicaCount"`
			HPA     *struct {
				Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior"`
			} `json:"horizontalPodAutoscalerConfig"`
			ScalingModifiers map[string]any `json:"scalingModifiers"`
		} `json:"advanced"`
	} `json:"spec"`
}

// What KEDA does where a ScaledObject says nothing.
const (
	kedaMaxReplicas = 100
	kedaPolling     = 30
)

// FromScaledObject translates a ScaledObject that scales a Deployment.
func FromScaledObject(u *unstructured.Unstructured, f Facts) (*Draft, error) {
	var s scaledObject
	if err := decode(u, &s); err != nil {
		return nil, err
	}
	if ref := s.Spec.ScaleTargetRef; ref.Kind != "" && ref.Kind != "Deployment" {
		return nil, fmt.Errorf("ScaledObject %s/%s scales %s %q, and an AutoScaler scales Deployments only", s.Namespace, s.Name, ref.Kind, ref.Name)
	}
	d := newDraft("scaledobject "+s.Name, s.Namespace, s.Name, s.Spec.ScaleTargetRef.Name, ptr.Deref(s.Spec.MinReplicaCount, 0), ptr.Deref(s.Spec.MaxReplicaCount, kedaMaxReplicas))
	a := &d.AutoScaler.Spec
	a.PollIntervalSeconds = max(ptr.Deref(s.Spec.PollingInterval, kedaPolling), 5)
	d.triggers(&s, f)
	var behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
	if adv := s.Spec.Advanced; adv != nil {
		if adv.HPA != nil {
			behavior = adv.HPA.Behavior
		}
		if len(adv.ScalingModifiers) > 0 {
			d.note("scalingModifiers are not translated: one query that says the same takes the place of the metrics that they combine.")
		}
		if adv.Restore {
			d.note("restoreToOriginalReplicaCount would set the count back when the ScaledObject is deleted: it is switched off first.")
			d.Before = append(d.Before, fmt.Sprintf(`kubectl -n %s patch scaledobject %s --type=merge -p '{"spec":{"advanced":{"restoreToOriginalReplicaCount":false}}}'`, s.Namespace, s.Name))
		}
	}
	a.Behavior = d.hpaBehavior(behavior, f)
	d.kedaFallback(&s)
	if s.Spec.IdleReplicaCount != nil || s.Spec.CooldownPeriod != nil {
		d.note("idleReplicaCount and cooldownPeriod are about zero replicas and have no counterpart.")
	}
	if _, paused := s.Annotations["autoscaling.keda.sh/paused"]; paused {
		d.note("The ScaledObject is paused; the draft is not.")
	}
	d.check()
	return d, nil
}

func (d *Draft) triggers(s *scaledObject, f Facts) {
	for i := range s.Spec.Triggers {
		t := &s.Spec.Triggers[i]
		name := t.Name
		if name == "" {
			name = t.Type + "-" + strconv.Itoa(i)
		}
		if t.Type == "cron" {
			d.cron(name, t.Metadata)
			continue
		}
		if t.Type != "prometheus" {
			d.note("Trigger %s of type %s is not translated: %s.", name, t.Type, instead(t.Type))
			continue
		}
		threshold, err := strconv.ParseFloat(t.Metadata["threshold"], 64)
		if err != nil {
			threshold = math.NaN() // and so to be set
		}
		semantics := v1alpha1.SemanticsTotal
		if t.MetricType == "Value" {
			semantics = v1alpha1.SemanticsPerReplicaAverage
		}
		query := placeholders(t.Metadata["query"], s.Namespace, d.AutoScaler.Spec.TargetRef.Name)
		if !strings.Contains(query, "$namespace") {
			d.note("The query of trigger %s selects no namespace: with namespace=$namespace in each selector the profile can serve others, and requireNamespaceMatcher can be set.", name)
		}
		d.measure(name, query, semantics, threshold, f.Endpoint)
		profile := d.Profiles[len(d.Profiles)-1]
		if t.Metadata["ignoreNullValues"] != "false" {
			d.note("KEDA takes no data of trigger %s for 0 and scales down; here it is no data, and nothing is removed. onEmpty: Zero in MetricProfile %s is KEDA's way.", name, profile.Name)
		}
		d.note("Trigger %s asks %s: that must be the endpoint %q of the operator's configuration, with its credentials.", name, address(t.Metadata["serverAddress"]), f.Endpoint)
		if activation := t.Metadata["activationThreshold"]; activation != "" && activation != "0" {
			d.note("activationThreshold of trigger %s is about zero replicas and has no counterpart.", name)
		}
	}
	if len(d.AutoScaler.Spec.Metrics) == 0 {
		d.note("There is no trigger that could be translated: the draft has no metric yet.")
	}
}

// address is where a trigger asks, without what may be a secret.
func address(given string) string {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" {
		return "an address that the ScaledObject does not have"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// instead is what takes the place of a trigger.
func instead(kind string) string {
	if kind == "cpu" || kind == "memory" {
		return "a profile with semantics: PerReplicaAverage whose query gives what a replica uses"
	}
	return "what it reads must be a metric in Prometheus, by an exporter"
}

// placeholders puts $namespace and $target where a query has the very names as the values
// of matchers.
func placeholders(query, namespace, target string) string {
	for _, p := range []struct{ pattern, value, with string }{
		{`(namespace\s*=\s*)`, namespace, "$namespace"}, {`([a-zA-Z_][a-zA-Z0-9_]*\s*=\s*)`, target, "$target"},
	} {
		matcher := regexp.MustCompile(p.pattern + `["'` + "`]" + regexp.QuoteMeta(p.value) + `["'` + "`]")
		query = matcher.ReplaceAllString(query, "${1}"+strings.ReplaceAll(p.with, "$", "$$"))
	}
	return query
}

func (d *Draft) kedaFallback(s *scaledObject) {
	f := s.Spec.Fallback
	if f == nil || f.Replicas < 1 {
		return
	}
	after := int32(min(max(int64(f.FailureThreshold)*int64(d.AutoScaler.Spec.PollIntervalSeconds), 15), 86400))
	d.AutoScaler.Spec.Fallback = &v1alpha1.Fallback{FloorReplicas: min(f.Replicas, d.AutoScaler.Spec.MaxReplicas), AfterSeconds: after}
	d.note("fallback only raises the count to %d, after %d s without any metric; KEDA's also lowers it.", d.AutoScaler.Spec.Fallback.FloorReplicas, after)
}
