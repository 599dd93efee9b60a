package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"example.com/platform/autoscale-operator/scaling"
)

// Labels are bounded: profiles are the administrator's, reasons are constants.
var (
	samplesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "autoscale_metric_samples_total",
		Help: "Samples taken, by MetricProfile and reason; a valid sample has the reason Valid.",
	}, []string{"profile", "reason"})
	scalesTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "autoscale_scale_writes_total",
		Help: "Attempts to write a Deployment's scale, by result.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(samplesTotal, scalesTotal) }

func countSample(profile string, s scaling.Sample) {
	reason := s.Reason
	if s.Validity == scaling.Valid {
		reason = s.Validity.String()
	}
	samplesTotal.WithLabelValues(profile, reason).Inc()
}

func countScale(result string) { scalesTotal.WithLabelValues(result).Inc() }
