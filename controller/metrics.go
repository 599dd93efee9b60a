package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// Labels are bounded: profiles are the administrator's, reasons are constants.
var (
	samplesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "autoscale_metric_samples_total",
		Help: "Samples taken, by MetricProfile (empty where there is none) and reason; a valid sample has the reason Valid.",
	}, []string{"profile", "reason"})
	scalesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "autoscale_scale_writes_total",
		Help: "Attempts to write a Deployment's scale, by result.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(samplesTotal, scalesTotal) }

// countSample counts by profile, if there is one: a name that names none is a
// tenant's text, and no label.
func countSample(profile *v1alpha1.MetricProfile, s scaling.Sample) {
	name, reason := "", s.Reason
	if profile != nil {
		name = profile.Name
	}
	if s.Validity == scaling.Valid {
		reason = s.Validity.String()
	}
	samplesTotal.WithLabelValues(name, reason).Inc()
}

func countScale(result string) { scalesTotal.WithLabelValues(result).Inc() }
