// Package simulate plays recorded load to autoscalers, in simulated time: the policy that
// the operator runs, other ones, and Kubernetes' own. Each has a Deployment of its own,
// whose pods become ready some time after they were asked for, and decides once in its
// interval. What they are told, what they decide and what came of it is a Step each.
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
	// Needed is how many replicas bear the load by the first autoscaler's own measure,
	// whatever the bounds are; Known is false where that cannot be said.
	Needed int32
	Known  bool
}

// Short is how many ready replicas are missing.
func (s *Step) Short() int32 {
	if !s.Known {
		return 0
	}
	return max(0, s.Needed-s.Ready)
}

// Source gives the load of each metric at one time after the other.
type Source interface {
	// At fills in the load; over says that the recording has ended.
	At(at time.Time, load []Load) (over bool, err error)
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
	// which measures all of them.
	Yardstick func(at time.Time, load []Load) (needed int32, known bool, err error)
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

// Run plays the whole recording and gives each step to record, in the order in which they
// end.
func Run(ctx context.Context, o Options, source Source, autoscalers []Autoscaler, record func(*Step) error) error {
	s := simulation{Options: o, source: source, load: make([]Load, o.Metrics)}
	for _, a := range autoscalers {
		s.contenders = append(s.contenders, &contender{Autoscaler: a, pods: newPods(o.Replicas, o.ReadyAfter), next: o.Start})
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		over, err := s.tick(record)
		if err != nil || over {
			return err
		}
	}
}

type simulation struct {
	Options
	source     Source
	contenders []*contender
	load       []Load
}

// tick goes on to the next time at which anybody decides.
func (s *simulation) tick(record func(*Step) error) (over bool, err error) {
	now := s.contenders[0].next
	for _, c := range s.contenders[1:] {
		if c.next.Before(now) {
			now = c.next
		}
	}
	if over, err = s.source.At(now, s.load); err != nil {
		return false, err
	}
	for i, c := range s.contenders {
		if over {
			c.last.For = min(c.last.For, now.Sub(c.last.At))
		} else if !c.next.Equal(now) {
			continue
		}
		if c.begun {
			if err := record(&c.last); err != nil {
				return false, err
			}
		}
		if over {
			continue
		}
		if err := s.decide(i, c, now); err != nil {
			return false, err
		}
	}
	return over, nil
}

// measure says how many replicas the load needs: what the first autoscaler has just said,
// or would say.
func (s *simulation) measure(now time.Time) (needed int32, known bool, err error) {
	if first := &s.contenders[0].last; first.At.Equal(now) {
		return first.Recommended, first.Invalid == nil, nil
	}
	return s.Yardstick(now, s.load)
}

func (s *simulation) decide(i int, c *contender, now time.Time) error {
	ready, before := c.pods.ready(now), c.pods.asked
	verdict, err := c.Decide(now, before, ready, s.load)
	if err != nil {
		return err
	}
	c.last.Load = append(c.last.Load[:0], s.load...)
	c.pods.scale(now, verdict.Replicas)
	c.last = Step{Verdict: verdict, Of: i, At: now, For: c.Interval(), Before: before, Ready: c.pods.ready(now), Load: c.last.Load}
	c.begun, c.next = true, now.Add(c.Interval())
	c.last.Needed, c.last.Known, err = s.measure(now)
	return err
}
