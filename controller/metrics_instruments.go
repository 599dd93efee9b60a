package controller

import (
	"github.com/prometheus/client_golang/prometheus"
)

// instruments are the metrics of what happens, as opposed to what is.
type instruments struct {
	decisions, limited, scales       *prometheus.CounterVec
	samples, queries, queriesDelayed *prometheus.CounterVec
	queryTime                        *prometheus.HistogramVec
	sampleAge, takeover              prometheus.Histogram
	decisionLag, writeLag, readyLag  prometheus.Histogram
}

// lagBuckets show a decision or a write against its aim of 2 s, and a poll missed.
var lagBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 2.5, 5, 10, 30}

func newInstruments() instruments {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	return instruments{
		decisions: counter("autoscale_decisions_total",
			"Decisions made, by where they move the count: up, down or hold.", "direction"),
		limited: counter("autoscale_decisions_limited_total",
			"Decisions whose result is not the recommendation, by the reason of the ScalingLimited condition.", "reason"),
		scales: counter("autoscale_scale_writes_total",
			"Attempts to write a Deployment's scale, by result: written, or the reason of the AbleToScale condition.", "result"),
		samples: counter("autoscale_metric_samples_total",
			"Samples used, by MetricProfile (empty where there is none) and reason; a valid sample has the reason Valid.", "profile", "reason"),
		queries: counter("autoscale_queries_total",
			"Queries asked, by MetricProfile, endpoint and reason; one that got an answer has the reason Answered.", "profile", "endpoint", "reason"),
		queriesDelayed: counter("autoscale_queries_delayed_total",
			"Queries that had to wait for a budget, the profile's or the endpoint's.", "profile", "endpoint"),
		queryTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "autoscale_query_duration_seconds", Help: "Time from a query to its answer, or to giving it up.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"profile", "endpoint"}),
		sampleAge: histogram("autoscale_sample_age_seconds",
			"Age of the newest answer when an evaluation used it.", 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 900),
		decisionLag: histogram("autoscale_decision_lag_seconds",
			"Time from the arrival of a sample to the decision on it.", lagBuckets...),
		writeLag: histogram("autoscale_write_lag_seconds",
			"Time from a decision to the Deployment's written scale.", lagBuckets...),
		readyLag: histogram("autoscale_ready_lag_seconds",
			"Time from a written scale-up to the first evaluation that saw all its replicas Ready.", 5, 10, 15, 30, 45, 60, 90, 120, 180, 300, 600, 1800),
		takeover: histogram("autoscale_takeover_seconds",
			"Time from becoming the leader to the first decision about each AutoScaler that was there before.", 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300),
	}
}

// collectors are all of them.
func (i *instruments) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		i.decisions, i.limited, i.scales, i.samples, i.queries, i.queriesDelayed, i.queryTime,
		i.sampleAge, i.takeover, i.decisionLag, i.writeLag, i.readyLag,
	}
}

// forgetProfile ends the series of a profile.
func (i *instruments) forgetProfile(name string) {
	of := prometheus.Labels{"profile": name}
	i.samples.DeletePartialMatch(of)
	i.queries.DeletePartialMatch(of)
	i.queriesDelayed.DeletePartialMatch(of)
	i.queryTime.DeletePartialMatch(of)
}
