package handover

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/cmd/kubectl-autoscaler/internal/cli"
	"example.com/platform/autoscale-operator/scaling/spec"
)

// Draft is what would stand in the place of another replica manager, and what of it could
// not be translated.
type Draft struct {
	// From is the kubectl name of what it is made from, as "hpa web".
	From       string
	AutoScaler *v1alpha1.AutoScaler
	Profiles   []*v1alpha1.MetricProfile
	// Notes say what a person must look at, one sentence each.
	Notes []string
	// Before are commands that are to be run before anything else.
	Before []string
}

// Facts are what the translation needs to know beside the object itself.
type Facts struct {
	// Endpoint is the name of the Prometheus endpoint for the profiles.
	Endpoint string
	// Replicas is the Deployment's count, 0 if that is not known: shares for scaling down
	// are shares of it.
	Replicas int32
	// Requests are the Deployment's requests by container and resource, in cores and
	// bytes; nil if they are not known.
	Requests map[string]map[string]float64
}

// newDraft is the part that does not depend on what is translated. Recommending beside the
// other manager comes first, and waiting for its end after that.
func newDraft(from, namespace, name, target string, low, high int32) *Draft {
	d := &Draft{From: from, AutoScaler: &v1alpha1.AutoScaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "AutoScaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}}
	d.AutoScaler.Spec = v1alpha1.AutoScalerSpec{
		TargetRef: v1alpha1.TargetReference{Name: target}, MinReplicas: low, MaxReplicas: high,
		PollIntervalSeconds: v1alpha1.DefaultPollIntervalSeconds, DryRun: true, ClaimPolicy: v1alpha1.ClaimWait,
	}
	if low < 1 {
		d.AutoScaler.Spec.MinReplicas = 1
		d.note("minReplicas is 1 and was %d: there is no scaling to zero. A Deployment that is at 0 when it is handed over stays there; scale it to 1 first.", low)
	}
	return d
}

func (d *Draft) note(format string, args ...any) {
	d.Notes = append(d.Notes, cli.Plain(fmt.Sprintf(format, args...)))
}

// maxName is the longest name that is made, a DNS label.
const maxName = 63

// measure adds a metric with a profile of its own.
func (d *Draft) measure(name, query string, semantics v1alpha1.MetricSemantics, target float64, endpoint string) {
	a := d.AutoScaler
	name = unique(label(name), func(s string) bool {
		for i := range a.Spec.Metrics {
			if a.Spec.Metrics[i].Name == s {
				return true
			}
		}
		return false
	})
	if !(target > 0) || math.IsInf(target, 0) { // NaN, too
		d.note("The target of metric %q is %v, and must be above 0: targetPerReplica is 1 and must be set.", name, target)
		target = 1
	}
	profile := &v1alpha1.MetricProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MetricProfile"},
		ObjectMeta: metav1.ObjectMeta{Name: label(a.Namespace + "-" + a.Name + "-" + name)},
		Spec: v1alpha1.MetricProfileSpec{
			Endpoint: endpoint, Query: query, Semantics: semantics, AllowedNamespaces: []v1alpha1.NamespaceName{v1alpha1.NamespaceName(a.Namespace)},
		},
	}
	d.Profiles = append(d.Profiles, profile)
	a.Spec.Metrics = append(a.Spec.Metrics, v1alpha1.MetricSpec{
		Name: name, Type: v1alpha1.MetricTypePrometheus, MetricProfileRef: profile.Name, TargetPerReplica: decimal(target),
	})
}

// check holds the draft to what admission would say.
func (d *Draft) check() {
	for _, err := range spec.ValidateAutoScaler(d.AutoScaler, v1alpha1.DefaultLimits) {
		d.note("The AutoScaler would be refused as it is: %s", err)
	}
	for _, p := range d.Profiles {
		for _, err := range spec.ValidateMetricProfile(p) {
			d.note("MetricProfile %s would be refused as it is: %s", p.Name, err)
		}
	}
}

var notInLabels = regexp.MustCompile(`[^a-z0-9-]+`)

// label makes a DNS label of a text. One that is too long is cut; unique tells equal ones
// apart.
func label(s string) string {
	s = strings.Trim(notInLabels.ReplaceAllString(strings.ToLower(s), "-"), "-")
	if len(s) > maxName {
		s = strings.Trim(s[:maxName], "-")
	}
	if s == "" {
		return "metric"
	}
	return s
}

// unique adds a number to a name that is taken.
func unique(name string, taken func(string) bool) string {
	for n, tried := 2, name; ; n++ {
		if !taken(tried) {
			return tried
		}
		suffix := "-" + strconv.Itoa(n)
		tried = strings.Trim(name[:min(len(name), maxName-len(suffix))], "-") + suffix
	}
}

// decimal is a number as the API takes it: six digits after the point at most.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// selector is a PromQL selector of a metric of whatever name, with matchers that have
// their values already.
func selector(metric string, matchers []string) string {
	if !metricName.MatchString(metric) {
		matchers = append([]string{"__name__=" + strconv.Quote(metric)}, matchers...)
		metric = ""
	}
	return metric + "{" + strings.Join(matchers, ", ") + "}"
}

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
