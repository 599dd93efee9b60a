package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/platform/autoscale-operator/api/v1alpha1"
)

// The series of each AutoScaler are computed at scrape time from what the cache
// holds, so that none is left behind.

func aboutAutoScaler(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"namespace", "autoscaler"}, labels...), nil)
}

var (
	descInfo = aboutAutoScaler("autoscale_autoscaler_info",
		"The AutoScaler, its Deployment, and its mode: Active, Paused or DryRun. Always 1.", "deployment", "mode")
	descRecommended = aboutAutoScaler("autoscale_recommended_replicas",
		"The raw demand of the usable metrics, before any bound; absent where no metric is usable.")
	descDesired = aboutAutoScaler("autoscale_desired_replicas",
		"The demand after bounds and stabilization: the count that the steps move to.")
	descApplied = aboutAutoScaler("autoscale_applied_replicas",
		"The last count that this AutoScaler wrote.")
	descTarget = aboutAutoScaler("autoscale_target_replicas",
		"The Deployment's spec.replicas.")
	descReady = aboutAutoScaler("autoscale_ready_replicas",
		"The Deployment's status.readyReplicas.")
	descMin = aboutAutoScaler("autoscale_min_replicas",
		"The minReplicas in force, schedules included.")
	descMax = aboutAutoScaler("autoscale_max_replicas",
		"The maxReplicas in force, schedules included.")
	descShadow = aboutAutoScaler("autoscale_shadow_replicas",
		"The count that a dry run keeps, as if it had written each of its decisions.")
	descDivergence = aboutAutoScaler("autoscale_shadow_divergence_replicas",
		"A dry run's count less the Deployment's: above 0, it would run more than there are.")
	descCovered = aboutAutoScaler("autoscale_scale_down_window_covered",
		"1 where the scale-down windows of all metrics are covered by observations, 0 where a scale-down waits for that.")
	descContention = aboutAutoScaler("autoscale_contention_changes",
		"Changes of the replica count by another writer in a row; absent where there is none.")
	descCondition = aboutAutoScaler("autoscale_condition",
		"A condition of the AutoScaler: 1 is True, 0 False, -1 Unknown.", "type")
	descAutoScalers = prometheus.NewDesc("autoscale_autoscalers",
		"AutoScalers, by a condition's type, status and reason.", []string{"type", "status", "reason"}, nil)
	descLeader = prometheus.NewDesc("autoscale_leader",
		"1 on the replica that decides, and tells of the AutoScalers.", nil, nil)
)

// Describe names every metric.
func (t *Telemetry) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descInfo, descRecommended, descDesired, descApplied, descTarget, descReady, descMin, descMax,
		descShadow, descDivergence, descCovered, descContention, descCondition, descAutoScalers, descLeader,
	} {
		ch <- desc
	}
	for _, c := range t.collectors() {
		c.Describe(ch)
	}
}

// Collect tells of the AutoScalers, on the leader, and of what has happened.
func (t *Telemetry) Collect(ch chan<- prometheus.Metric) {
	leading := t.leading.Load()
	if leading == nil {
		gauge(ch, descLeader, 0)
	} else {
		gauge(ch, descLeader, 1)
		t.endProfiles(leading)
		t.collectAutoScalers(ch, leading)
	}
	for _, c := range t.collectors() {
		c.Collect(ch)
	}
}

// endProfiles ends the series of MetricProfiles that are gone. The empty name stands
// for no profile.
func (t *Telemetry) endProfiles(l *leadership) {
	var list v1alpha1.MetricProfileList
	if l.list(&list) != nil {
		return // shutting down
	}
	exist := map[string]bool{"": true}
	for i := range list.Items {
		exist[list.Items[i].Name] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.profiles {
		if !exist[name] {
			delete(t.profiles, name)
			t.forgetProfile(name)
		}
	}
}

func (t *Telemetry) collectAutoScalers(ch chan<- prometheus.Metric, l *leadership) {
	var list v1alpha1.AutoScalerList
	if l.list(&list) != nil {
		return // shutting down
	}
	now := t.clock.Now()
	states := map[state]int{}
	for i := range list.Items {
		a := &list.Items[i]
		t.collectAutoScaler(ch, l, a, now)
		for c := range a.Status.Conditions {
			states[stateOf(&a.Status.Conditions[c])]++
		}
	}
	for s, count := range states {
		gauge(ch, descAutoScalers, float64(count), s.kind, s.status, s.reason)
	}
}

// state is a condition without what is of one object alone.
type state struct{ kind, status, reason string }

func stateOf(c *metav1.Condition) state { return state{c.Type, string(c.Status), c.Reason} }

// collectAutoScaler tells of one: of its last decision in this process, which runs
// ahead of the status, or else what the status has kept.
func (t *Telemetry) collectAutoScaler(ch chan<- prometheus.Metric, l *leadership, a *v1alpha1.AutoScaler, now time.Time) {
	of := []*dto.LabelPair{label("autoscaler", a.Name), label("namespace", a.Namespace)}
	tell := func(desc *prometheus.Desc, value float64) {
		ch <- &level{desc: desc, labels: of, value: value}
	}
	known := func(desc *prometheus.Desc, value *int32) {
		if value != nil {
			tell(desc, float64(*value))
		}
	}
	s, d := &a.Status, t.decisionOf(a, now)
	ch <- &level{desc: descInfo, value: 1, labels: []*dto.LabelPair{
		of[0], label("deployment", a.Spec.TargetRef.Name), label("mode", mode(a, now)), of[1],
	}}
	known(descRecommended, d.recommended)
	known(descDesired, d.desired)
	known(descApplied, s.AppliedReplicas)
	tell(descMin, float64(d.low))
	tell(descMax, float64(d.high))
	if d.covered != nil {
		tell(descCovered, *d.covered)
	}
	var deployment appsv1.Deployment
	if l.get(types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.TargetRef.Name}, &deployment) == nil {
		count := replicas(&deployment)
		tell(descTarget, float64(count))
		tell(descReady, float64(deployment.Status.ReadyReplicas))
		if shadow := s.Shadow; a.Spec.DryRun && shadow != nil && shadow.TargetUID == deployment.UID {
			tell(descShadow, float64(shadow.Replicas))
			tell(descDivergence, float64(shadow.Replicas-count))
		}
	}
	if s.Contention != nil {
		tell(descContention, float64(s.Contention.Changes))
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		ch <- &level{desc: descCondition, value: truth(c.Status), labels: []*dto.LabelPair{of[0], of[1], label("type", c.Type)}}
	}
}

// told is what the series of an AutoScaler say of its last decision.
type told struct {
	recommended, desired *int32
	low, high            int32
	covered              *float64 // nil: nothing was decided in this process
}

func (t *Telemetry) decisionOf(a *v1alpha1.AutoScaler, now time.Time) told {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.seen[nameOf(a)]; s != nil && s.uid == a.UID && !s.decided.IsZero() {
		covered := 0.0
		if !s.coveredFrom.IsZero() && !now.Before(s.coveredFrom) {
			covered = 1
		}
		return told{recommended: s.recommended, desired: new(s.desired), low: s.low, high: s.high, covered: &covered}
	}
	d := told{recommended: a.Status.RecommendedReplicas, desired: a.Status.DesiredReplicas, low: a.Spec.MinReplicas, high: a.Spec.MaxReplicas}
	if last := a.Status.LastDecision; last != nil && last.MaxReplicas > 0 {
		d.low, d.high = last.MinReplicas, last.MaxReplicas
	}
	return d
}

// mode is what the spec asks for.
func mode(a *v1alpha1.AutoScaler, now time.Time) string {
	switch {
	case a.Spec.DryRun:
		return v1alpha1.ReasonDryRun
	case a.PausedAt(now):
		return v1alpha1.ReasonPaused
	}
	return "Active"
}

// truth is a condition's status as a number.
func truth(s metav1.ConditionStatus) float64 {
	switch s {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	}
	return -1
}

func gauge(ch chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// level is a gauge like the library's constant ones, whose labels the many series of an
// AutoScaler share.
type level struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // in the order of their names
	value  float64
}

// Desc is its description.
func (l *level) Desc() *prometheus.Desc { return l.desc }

// Write gives its value.
func (l *level) Write(out *dto.Metric) error {
	out.Label, out.Gauge = l.labels, &dto.Gauge{Value: &l.value}
	return nil
}

func label(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
