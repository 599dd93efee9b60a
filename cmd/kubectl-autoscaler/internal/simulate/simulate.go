// Package simulate plays recorded load to autoscalers, in simulated time: the policy that
// the operator runs, other ones, and Kubernetes' own. Each has a Deployment of its own,
// whose pods become ready some time after they were asked for, and decides once in its
// interval. What they are told, what they decide and what came of it is a Step each; what
// is missing is measured in Moments, which are the same for all.
package simulate

import (
	"context"
	"time"
)

// Autoscaler decides how many replicas there are.
type Autoscaler interface {
	// Interval is the time between two decisions.
	Interval() time.Duration
	// Decide is asked once in that time. What it says counts as written.
	Decide(at time.Time, current, ready int32, load []Load) (Verdict, error)
}

// Load is what was recorded of one metric for one moment: always that of the whole
// service, whatever the metric's semantics are.
type Load struct {
	// Value is the load, or a backlog's length. It may be no load at all, as NaN.
	Value float64
	// Arrivals is, for a backlog, how many items arrive per second.
	Arrivals float64
	// Absent says that nothing was recorded for that time.
	Absent bool
}

// Verdict is a decision with what explains it.
type Verdict struct {
	// Recommended is the raw demand, Desired that after bounds and windows.
	Recommended, Desired int32
	// Replicas is what is asked for.
	Replicas int32
	// Rule is what kept Replicas from being Recommended; empty where nothing did.
	Rule string
	// Min and Max are the bounds at that time, which schedules may have moved.
	Min, Max int32
	// Schedules are those in force.
	Schedules []string
	// Invalid has, for each metric, why its sample is not valid; empty where it is.
	Invalid []string
	// Blind says that no metric can be used, and Recommended is no recommendation.
	Blind bool
}

// Step is one decision of one autoscaler, and the state until its next one.
type Step struct {
	Verdict
	// Of is the autoscaler's index.
	Of int
	At time.Time
	// For is how long the step lasts.
	For time.Duration
	// Before is the count that the decision saw, Ready how many are ready after it.
	Before, Ready int32
	// Load is what was recorded, by metric. It is the simulation's: the next step is
	// written over it.
	Load []Load
	// Needed is how many replicas bear the load of that time by the first autoscaler's own
	// measure, whatever the bounds are; Known is false where that cannot be said.
	Needed int32
	Known  bool
	// Under is the time of the step in which ready replicas were missing, Worst the first
	// of the worst moments of it, and Unknown the time in which nobody can say.
	Under, Unknown time.Duration
	Worst          Shortfall
}

// measure counts a moment of the step.
func (s *Step) measure(m *Moment) {
	if m.Invalid != nil {
		s.Unknown += m.For
	}
	if short := m.Short(s.Of); short > 0 {
		s.Under += m.For
		if short > s.Worst.Missing() {
			s.Worst = Shortfall{At: m.At, Needed: m.Needed, Ready: m.Ready[s.Of]}
		}
	}
}

// Moment is a time in which nothing changes: neither the load nor what anybody has. All
// autoscalers are measured by the same moments, whatever their intervals are.
type Moment struct {
	At  time.Time
	For time.Duration
	// Load is what was recorded, and Ready what each autoscaler has. They are the
	// simulation's, as a step's load is.
	Load  []Load
	Ready []int32
	// Needed is how many replicas bear the load, as a step's is.
	Needed int32
	// Invalid has, for each metric, why it is not valid for the first autoscaler; nil where
	// all are, and only then Needed can be said.
	Invalid []string
}

// Short is how many ready replicas an autoscaler is missing.
func (m *Moment) Short(of int) int32 {
	if m.Invalid != nil {
		return 0
	}
	return max(0, m.Needed-m.Ready[of])
}

// Source gives the load of each metric at one time after the other.
type Source interface {
	// At fills in the load; over says that the recording has ended.
	At(at time.Time, load []Load) (over bool, err error)
	// Next is when the load changes after that time; ok is false where it never does.
	Next() (at time.Time, ok bool)
}

// Recorder takes what happens, in the order in which it ends: a step after its moments.
type Recorder interface {
	Moment(m *Moment)
	Step(s *Step) error
}

// Options of a simulation.
type Options struct {
	// Start is the time of the first decisions.
	Start time.Time
	// Metrics is the number of metrics.
	Metrics int
	// Replicas is the count at the beginning, all of them ready.
	Replicas int32
	// ReadyAfter is the time from when a pod is asked for until it is ready.
	ReadyAfter time.Duration
	// Yardstick says how many replicas bear a load in the eyes of the first autoscaler,
	// which measures all of them, or why a metric is not valid.
	Yardstick func(at time.Time, load []Load) (needed int32, invalid []string, err error)
}

// contender is an autoscaler with its Deployment.
type contender struct {
	Autoscaler
	pods pods
	next time.Time
	// last is its newest step, which lasts until the next.
	last  Step
	begun bool
}

// Run plays the whole recording.
func Run(ctx context.Context, o Options, source Source, autoscalers []Autoscaler, to Recorder) error {
	s := simulation{Options: o, source: source, to: to, load: make([]Load, o.Metrics)}
	for _, a := range autoscalers {
		s.contenders = append(s.contenders, &contender{Autoscaler: a, pods: newPods(o.Replicas, o.ReadyAfter), next: o.Start})
	}
	s.moment.Ready = make([]int32, len(autoscalers))
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		over, err := s.tick()
		if err != nil || over {
			return err
		}
	}
}

type simulation struct {
	Options
	source     Source
	to         Recorder
	contenders []*contender
	load       []Load
	// moment is the one that lasts until the next tick.
	moment Moment
	begun  bool
	// changed says that the load of this tick is not that of the last.
	changed bool
}

// tick goes on to the next time at which anything changes.
func (s *simulation) tick() (over bool, err error) {
	now := s.next()
	if over, err = s.source.At(now, s.load); err != nil {
		return false, err
	}
	s.end(now)
	for _, c := range s.contenders {
		if !c.begun || !over && !c.next.Equal(now) {
			continue
		}
		c.last.For = now.Sub(c.last.At)
		if err := s.to.Step(&c.last); err != nil {
			return false, err
		}
	}
	if over {
		return true, nil
	}
	return false, s.begin(now)
}

// next is when anybody decides, pods become ready, or the load changes.
func (s *simulation) next() time.Time {
	now := s.contenders[0].next
	sooner := func(at time.Time) {
		if at.Before(now) {
			now = at
		}
	}
	for _, c := range s.contenders {
		sooner(c.next)
		if at, ok := c.pods.next(); ok {
			sooner(at)
		}
	}
	s.changed = false
	if at, ok := s.source.Next(); ok && s.begun {
		sooner(at)
		s.changed = at.Equal(now)
	}
	return now
}

// end ends the moment.
func (s *simulation) end(now time.Time) {
	if !s.begun {
		return
	}
	s.moment.For = now.Sub(s.moment.At)
	for _, c := range s.contenders {
		c.last.measure(&s.moment)
	}
	s.to.Moment(&s.moment)
}

// begin begins one, with the decisions that are due.
func (s *simulation) begin(now time.Time) (err error) {
	m := &s.moment
	s.begun, m.At, m.Load = true, now, append(m.Load[:0], s.load...)
	if s.changed && !s.contenders[0].next.Equal(now) {
		if m.Needed, m.Invalid, err = s.Yardstick(now, s.load); err != nil {
			return err
		}
	}
	for i, c := range s.contenders {
		if c.next.Equal(now) {
			if err := s.decide(i, c, now); err != nil {
				return err
			}
		}
		m.Ready[i] = c.pods.ready(now)
	}
	return nil
}

func (s *simulation) decide(i int, c *contender, now time.Time) error {
	ready, before := c.pods.ready(now), c.pods.asked
	verdict, err := c.Decide(now, before, ready, s.load)
	if err != nil {
		return err
	}
	if i == 0 { // it has just said what the yardstick would
		s.moment.Needed, s.moment.Invalid = verdict.Recommended, verdict.Invalid
	}
	c.last.Load = append(c.last.Load[:0], s.load...)
	c.pods.scale(now, verdict.Replicas)
	c.last = Step{
		Verdict: verdict, Of: i, At: now, Before: before, Ready: c.pods.ready(now), Load: c.last.Load,
		Needed: s.moment.Needed, Known: s.moment.Invalid == nil,
	}
	c.begun, c.next = true, now.Add(c.Interval())
	return nil
}
