package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/platform/autoscale-operator/api/v1alpha1"
	"example.com/platform/autoscale-operator/scaling"
)

// Telemetry is what the operator tells of its decisions: a collector of metrics,
// which docs/metrics.md explains, and the log's line per change of a decision.
//
// Labels are bounded: endpoints and profiles are the administrator's, reasons are
// constants, and who has a series of its own (an AutoScaler, a MetricProfile) loses
// it by being deleted.
//
// It is a runnable of the leader: the others decide nothing, and would double in
// every sum what the leader says of an AutoScaler.
type Telemetry struct {
	reader  client.Reader
	clock   clock.PassiveClock
	leading atomic.Pointer[leadership]

	mu   sync.Mutex
	seen map[types.NamespacedName]*subject
	// profiles are those that have series.
	profiles map[string]bool

	instruments
}

// leadership is since when this process leads, and its way to what it then tells of.
type leadership struct {
	since time.Time
	list  func(into client.ObjectList) error
	get   func(key types.NamespacedName, into client.Object) error
}

// NewTelemetry gives one that reads objects from a cache.
func NewTelemetry(cached client.Reader, c clock.PassiveClock) *Telemetry {
	return &Telemetry{
		reader: cached, clock: c, instruments: newInstruments(),
		seen: map[types.NamespacedName]*subject{}, profiles: map[string]bool{},
	}
}

// Start tells of the AutoScalers as long as this process leads. What the cache gives
// is only read, so that a scrape copies no object.
func (t *Telemetry) Start(ctx context.Context) error {
	t.leading.Store(&leadership{
		since: t.clock.Now(),
		list: func(into client.ObjectList) error {
			return t.reader.List(ctx, into, client.UnsafeDisableDeepCopy)
		},
		get: func(key types.NamespacedName, into client.Object) error {
			return t.reader.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
		},
	})
	<-ctx.Done()
	t.leading.Store(nil)
	return nil
}

// subject is what this process has told of an AutoScaler, and what it has yet to tell.
type subject struct {
	uid types.UID
	// woken is when the sampler woke it for the evaluation that is yet to come, and
	// arrived the same of the one under way; zero: something else did.
	woken, arrived time.Time
	// decided is when the last decision was made; zero: there is none that stands.
	decided time.Time
	// first: its first decision under this leader has been told of.
	first bool
	// recommended is nil where no metric is usable.
	recommended        *int32
	desired, low, high int32
	coveredFrom        time.Time // when the scale-down windows are complete; zero: they are not begun
	unready            unready
	explained          explained
}

// unready is a scale-up whose replicas are not all ready yet.
type unready struct {
	target   types.UID
	replicas int32
	since    time.Time
}

// Woken notes that a sample arrived for an AutoScaler: the time until its decision
// is the decision lag. It comes before the AutoScaler is added to the queue.
func (t *Telemetry) Woken(key types.NamespacedName) {
	now := t.clock.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[key]
	if s == nil {
		s = &subject{}
		t.seen[key] = s
	}
	if s.woken.IsZero() {
		s.woken = now
	}
}

// begins notes the begin of an evaluation. Arrivals until now are its own; one that
// comes while it runs is the next one's.
func (t *Telemetry) begins(a *v1alpha1.AutoScaler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[nameOf(a)]
	if s == nil || s.uid != "" && s.uid != a.UID {
		next := &subject{}
		if s != nil {
			next.woken = s.woken
		}
		s = next
		t.seen[nameOf(a)] = s
	}
	s.uid = a.UID
	s.arrived, s.woken = s.woken, time.Time{}
}

// sampled counts the samples of an evaluation. A metric counts by its profile, if
// there is one: a name that names none is a tenant's text, and no label. at is when
// the newest of the answers arrived, zero where there is none.
func (t *Telemetry) sampled(e *evaluation, profiles []*v1alpha1.MetricProfile, at time.Time) {
	for i, profile := range profiles {
		name, reason := "", e.samples[i].Reason
		if profile != nil {
			name = profile.Name
		}
		if e.samples[i].Validity == scaling.Valid {
			reason = e.samples[i].Validity.String()
		}
		t.samples.WithLabelValues(name, reason).Inc()
		t.hasSeries(name)
	}
	if !at.IsZero() {
		t.sampleAge.Observe(max(0, e.now.Sub(at).Seconds()))
	}
}

// Asked counts an exchange with an endpoint; with Delayed and Forgotten it makes this
// the sampler's observer. The reason is empty where there was an answer, whatever it
// says: what is wrong with one is counted with the samples.
func (t *Telemetry) Asked(profile, endpoint, reason string, took time.Duration) {
	if reason == "" {
		reason = "Answered"
	}
	t.queries.WithLabelValues(profile, endpoint, reason).Inc()
	t.queryTime.WithLabelValues(profile, endpoint).Observe(took.Seconds())
	t.hasSeries(profile)
}

// Delayed counts a query that has to wait for a budget.
func (t *Telemetry) Delayed(profile, endpoint string) {
	t.queriesDelayed.WithLabelValues(profile, endpoint).Inc()
	t.hasSeries(profile)
}

// Forgotten ends the series of a profile that nobody asks for any more.
func (t *Telemetry) Forgotten(profile string) { t.forgetProfile(profile) }

// decided counts the decision of an evaluation, right after it was described.
func (t *Telemetry) decided(e *evaluation) {
	now := t.clock.Now()
	d := &e.decision
	t.decisions.WithLabelValues(direction(e)).Inc()
	if reason := limits[d.Rule].reason; reason != "" {
		t.limited.WithLabelValues(reason).Inc()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[nameOf(e.autoscaler)]
	if s == nil {
		return // deleted meanwhile
	}
	if !s.arrived.IsZero() {
		t.decisionLag.Observe(now.Sub(s.arrived).Seconds())
		s.arrived = time.Time{}
	}
	t.takenOver(e, s, now)
	t.becameReady(e, s, now)
	s.decided, s.desired, s.recommended = now, d.Desired, nil
	if usable(d) {
		s.recommended = new(d.Recommended)
	}
	s.low, s.high = e.policy.MinReplicas, e.policy.MaxReplicas
	s.coveredFrom = coveredFrom(e)
}

// direction is where a decision moves the count: the Deployment's, or the one that a
// dry run keeps.
func direction(e *evaluation) string {
	switch from, to := e.autoscaler.Status.LastDecision.Current, e.decision.Replicas; {
	case to > from:
		return "up"
	case to < from:
		return "down"
	}
	return "hold"
}

// takenOver tells how long this leader took to come to an AutoScaler that was there
// before it led.
func (t *Telemetry) takenOver(e *evaluation, s *subject, now time.Time) {
	leading := t.leading.Load()
	if leading == nil || s.first {
		return
	}
	s.first = true
	if e.before.CreationTimestamp.Time.Before(leading.since) {
		t.takeover.Observe(now.Sub(leading.since).Seconds())
	}
}

// becameReady tells how long the replicas of a scale-up took to be ready, as soon as
// an evaluation sees it. A count that somebody lowered again never gets there.
func (t *Telemetry) becameReady(e *evaluation, s *subject, now time.Time) {
	switch u := s.unready; {
	case u.since.IsZero():
		return
	case u.target != e.target.uid, e.target.replicas < u.replicas:
	case e.target.ready < u.replicas:
		return
	default:
		t.readyLag.Observe(now.Sub(u.since).Seconds())
	}
	s.unready = unready{}
}

// coveredFrom is when the scale-down window of every metric is covered by
// observations; zero while one has not begun, as without a valid sample.
func coveredFrom(e *evaluation) time.Time {
	var from time.Time
	for i := range e.policy.Metrics {
		m := &e.policy.Metrics[i]
		w := &e.record.memory.Windows[i].Down
		if m.Behavior.DownStabilization == 0 {
			continue
		}
		if w.Since == 0 {
			return time.Time{}
		}
		if at := time.UnixMicro(w.Since).Add(m.Behavior.DownStabilization); at.After(from) {
			from = at
		}
	}
	if from.IsZero() {
		return e.now // no window at all
	}
	return from
}

// wrote counts a scale that was written.
func (t *Telemetry) wrote(e *evaluation) {
	now := t.clock.Now()
	t.scales.WithLabelValues("written").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[nameOf(e.autoscaler)]
	if s == nil {
		return // deleted meanwhile
	}
	t.writeLag.Observe(now.Sub(s.decided).Seconds())
	switch {
	case direction(e) != "up":
		s.unready = unready{}
	case s.unready.since.IsZero() || s.unready.target != e.target.uid:
		// A ramp is told of by its first step: each further one would start anew what
		// then never ends.
		s.unready = unready{target: e.target.uid, replicas: e.decision.Replicas, since: now}
	}
}

// notWritten counts a scale that was tried in vain, by the reason of AbleToScale.
func (t *Telemetry) notWritten(reason string) { t.scales.WithLabelValues(reason).Inc() }

// forget drops what is known of an AutoScaler that is gone; its series are gone with
// the object.
func (t *Telemetry) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, key)
}

// hasSeries notes a profile, so that its series can end with it: after they were made,
// or a scrape in between would end them, and forget the profile, too early.
func (t *Telemetry) hasSeries(profile string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.profiles[profile] = true
}

var _ prometheus.Collector = (*Telemetry)(nil)
