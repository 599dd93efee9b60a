package controller

import (
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// What came of a decision, where nothing was in its way. Else it is the reason of the
// AbleToScale condition.
const (
	outcomeWritten   = "Written"
	outcomeUnchanged = "Unchanged"
)

// explained is what a line of the log was about: while it is the same there is nothing
// to add. What only wavers with the load is not in it: the recommendation, and which
// of the harmless limits binds.
type explained struct {
	generation int64
	target     types.UID
	decided    bool
	result     int32
	rule       scaling.Rule
	// why nothing may be written; empty where it may.
	why     string
	metrics [scaling.MaxMetrics]struct {
		validity scaling.Validity
		reason   string
	}
}

// metricSummary is a metric as the log shows it. Value and arrival rate have six
// digits; they and the counts are left out where they say nothing.
type metricSummary struct {
	Name        string   `json:"name"`
	Value       *float64 `json:"value,omitempty"`
	ArrivalRate *float64 `json:"arrivalRate,omitempty"`
	Validity    string   `json:"validity"`
	Reason      string   `json:"reason,omitempty"`
	*stages
}

// stages are a metric's count after each stage.
type stages struct {
	Raw        int32  `json:"raw"`
	Tolerated  int32  `json:"tolerated"`
	Bounded    int32  `json:"bounded"`
	Stabilized int32  `json:"stabilized"`
	Limited    int32  `json:"limited"`
	Rule       string `json:"rule,omitempty"`
}

// explain logs the decision of an evaluation that has ended, if it, or what came of
// it, differs from the last one of that AutoScaler; a count that was written always
// does. The log has no query, no address and no text of a metric source. It is called
// before the status is written, and once per evaluation.
func (t *Telemetry) explain(log logr.Logger, e *evaluation) {
	if !slices.Contains(e.looked, v1alpha1.ConditionAbleToScale) {
		return // it ended without a result, to be made anew
	}
	now := e.explained()
	if !t.changed(e, &now) && !e.scaled {
		return
	}
	a := e.autoscaler
	log = log.WithValues("uid", a.UID, "generation", a.Generation, "target", a.Spec.TargetRef.Name, "targetUID", e.target.uid)
	if !now.decided {
		log.Info("nothing decided", "outcome", now.why, "why", e.condition(v1alpha1.ConditionAbleToScale).Message)
		return
	}
	d, trace := &e.decision, a.Status.LastDecision
	values := []any{
		"current", trace.Current, "ready", e.target.ready, "recommended", d.Recommended, "desired", d.Desired, "result", d.Replicas,
		"rule", d.Rule.String(), "minReplicas", e.policy.MinReplicas, "maxReplicas", e.policy.MaxReplicas,
		"metrics", e.summary(), "written", e.scaled, "outcome", e.outcome(now.why),
	}
	if now.why != "" {
		values = append(values, "why", e.condition(v1alpha1.ConditionAbleToScale).Message)
	}
	log.Info("decision changed", values...)
}

// changed keeps what the last line was about, and forgets the last decision where
// none stands any more.
func (t *Telemetry) changed(e *evaluation, now *explained) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[nameOf(e.autoscaler)]
	if s == nil {
		return false // deleted meanwhile
	}
	if e.autoscaler.Status.LastDecision == nil {
		s.decided = time.Time{}
	}
	changed := s.explained != *now
	s.explained = *now
	return changed
}

func (e *evaluation) explained() explained {
	x := explained{generation: e.autoscaler.Generation, target: e.target.uid, decided: e.decision.TotalMetrics > 0 || e.decision.Rule != scaling.RuleNone}
	if able := e.condition(v1alpha1.ConditionAbleToScale); able.Status != metav1.ConditionTrue {
		x.why = able.Reason
	}
	if !x.decided {
		return x
	}
	x.result = e.decision.Replicas
	if limit := limits[e.decision.Rule]; isProblem(&metav1.Condition{
		Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: limit.reason,
	}) {
		x.rule = e.decision.Rule
	}
	for i := range e.decision.TotalMetrics {
		m := &e.decision.Metrics[i]
		x.metrics[i].validity, x.metrics[i].reason = m.Validity, m.Reason
	}
	return x
}

// outcome is what came of a decision.
func (e *evaluation) outcome(why string) string {
	switch {
	case e.scaled:
		return outcomeWritten
	case why != "":
		return why
	}
	return outcomeUnchanged
}

// summary is every metric's way through the stages.
func (e *evaluation) summary() []metricSummary {
	traces := e.autoscaler.Status.LastDecision.Metrics
	all := make([]metricSummary, len(traces))
	for i := range traces {
		m := &traces[i]
		all[i] = metricSummary{Name: m.Name, Validity: m.Validity, Reason: m.Reason}
		if m.Validity == scaling.Invalid.String() {
			continue
		}
		all[i].stages = &stages{m.Raw, m.Tolerated, m.Bounded, m.Stabilized, m.Limited, m.Rule}
		if i < len(e.samples) {
			all[i].Value = new(sixDigits(e.samples[i].Value))
			if e.policy.Metrics[i].Semantics == scaling.Backlog {
				all[i].ArrivalRate = new(sixDigits(e.samples[i].ArrivalRate))
			}
		}
	}
	return all
}

// sixDigits rounds to six significant digits. Beyond the range of that it is exact.
func sixDigits(v float64) float64 {
	if v == 0 {
		return 0
	}
	scale := math.Pow10(5 - int(math.Floor(math.Log10(math.Abs(v)))))
	if rounded := math.Round(v*scale) / scale; !math.IsInf(rounded, 0) && !math.IsNaN(rounded) {
		return rounded
	}
	return v
}
