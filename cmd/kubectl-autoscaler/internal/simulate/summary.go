package simulate

import "time"

// FlapsWithin is how soon after a change one in the other direction makes a flap.
const FlapsWithin = 5 * time.Minute

// Shortfall is a moment at which ready replicas were missing.
type Shortfall struct {
	At            time.Time
	Needed, Ready int32
}

// Missing is how many were missing.
func (s *Shortfall) Missing() int32 { return s.Needed - s.Ready }

// Summary is what came of a recording for one autoscaler.
type Summary struct {
	// Played is the time that was simulated.
	Played time.Duration
	// ReplicaSeconds is the time for which each replica was asked for, summed up. A
	// Duration would overflow with a thousand replicas in a year.
	ReplicaSeconds float64
	// Lowest and Highest count that was asked for.
	Lowest, Highest int32
	// Under is the time with fewer ready replicas than the load needed, and Worst the
	// first of the worst moments of it.
	Under time.Duration
	Worst Shortfall
	// Unknown is the time in which a metric was not valid, so that nobody can say.
	Unknown time.Duration
	// Ups and Downs are the changes of the count; Flaps are those that turned back
	// within FlapsWithin.
	Ups, Downs, Flaps int
	// Limited is the time for which each rule kept the count from the raw demand.
	Limited map[string]time.Duration

	lastChange time.Time
	lastUp     bool
}

// Add counts a step.
func (s *Summary) Add(step *Step) {
	if s.Limited == nil {
		s.Limited = map[string]time.Duration{}
		s.Lowest = step.Replicas
	}
	s.Played += step.For
	s.ReplicaSeconds += float64(step.Replicas) * step.For.Seconds()
	s.Lowest, s.Highest = min(s.Lowest, step.Replicas), max(s.Highest, step.Replicas)
	if step.Rule != "" {
		s.Limited[step.Rule] += step.For
	}
	s.Unknown += step.Unknown
	s.Under += step.Under
	if step.Worst.Missing() > s.Worst.Missing() {
		s.Worst = step.Worst
	}
	if step.Replicas != step.Before {
		s.changed(step)
	}
}

func (s *Summary) changed(step *Step) {
	up := step.Replicas > step.Before
	if up {
		s.Ups++
	} else {
		s.Downs++
	}
	if !s.lastChange.IsZero() && up != s.lastUp && step.At.Sub(s.lastChange) <= FlapsWithin {
		s.Flaps++
	}
	s.lastChange, s.lastUp = step.At, up
}

// ReplicaHours is ReplicaSeconds in hours.
func (s *Summary) ReplicaHours() float64 { return s.ReplicaSeconds / time.Hour.Seconds() }

// Mean is the count that was asked for on average.
func (s *Summary) Mean() float64 {
	if s.Played == 0 {
		return 0
	}
	return s.ReplicaSeconds / s.Played.Seconds()
}
