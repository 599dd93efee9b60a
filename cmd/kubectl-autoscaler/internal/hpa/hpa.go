// Package hpa is the algorithm of Kubernetes' own HorizontalPodAutoscaler, as a pure
// function of time, count and metrics, for metrics of type External or Object with a
// target of type AverageValue: those that a Prometheus adapter serves. What it decides is
// compared with what the controller of Kubernetes decided in testdata/.
//
// For each metric, with pods = the replicas that exist:
//
//	ratio    = usage / (target * pods)
//	proposed = pods                     where 1-tolerance <= ratio <= 1+tolerance
//	         = ceil(usage / target)     otherwise
//
// The highest proposal counts; with a metric that has no value, only if it does not
// remove any. Then the stabilization windows and the policies limit it (behavior.go), or,
// where the object has no behavior, the defaults of old (legacy.go).
package hpa

import (
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

const (
	// SyncPeriod is how often the controller looks at an HPA, where its flag
	// --horizontal-pod-autoscaler-sync-period does not say otherwise.
	SyncPeriod = 15 * time.Second
	// tolerance and downWindow are the defaults of its flags for what a behavior does not
	// say.
	tolerance  = 0.1
	downWindow = 5 * time.Minute
)

// Usage is the value of one metric, in thousandths, as its API has it.
type Usage struct {
	Milli int64
	// Known is false where the metric has no value.
	Known bool
}

// Decision is what the controller would do at one moment.
type Decision struct {
	// Recommended is the highest proposal, before windows, policies and bounds; 0 where
	// there is none.
	Recommended int32
	// Desired is Recommended after the windows.
	Desired int32
	// Replicas is what it asks for.
	Replicas int32
	// Reason is why Replicas is not Recommended, as the object's conditions say it.
	Reason string
}

// Reasons beside those of the controller's conditions.
const (
	// ReasonNoMetric: no metric has a value, or one has none and replicas would go.
	ReasonNoMetric = "FailedGetMetric"
	// ReasonDown and ReasonUp: a window holds.
	ReasonDown = "ScaleDownStabilized"
	ReasonUp   = "ScaleUpStabilized"
	// ReasonUpLimit and ReasonDownLimit: the policies of the way up and down.
	ReasonUpLimit   = "ScaleUpLimit"
	ReasonDownLimit = "ScaleDownLimit"
	// ReasonTooMany and ReasonTooFew: the bounds.
	ReasonTooMany = "TooManyReplicas"
	ReasonTooFew  = "TooFewReplicas"
)

// Autoscaler is one HPA with what the controller remembers of it.
type Autoscaler struct {
	min, max int32
	targets  []int64 // of the metrics, in thousandths
	rules    *rules  // nil: no behavior
	memory   memory
}

// memory is kept as the controller keeps it: entries that are too old are written over,
// one at a time, and not dropped, which is seen in what a window remembers.
type memory struct {
	begun           bool
	recommendations []recommendation
	ups, downs      []event
}

type recommendation struct {
	replicas int32
	at       time.Time
}

// event is a change of the count by so many replicas.
type event struct {
	replicas int32
	at       time.Time
	outdated bool
}

// rules are an HPA's behavior with its defaults filled in.
type rules struct {
	up, down *autoscalingv2.HPAScalingRules
	// The windows, and the tolerances.
	upWindow, downWindow       time.Duration
	upTolerance, downTolerance float64
}

// Decide evaluates the metrics at a time, at which so many replicas are asked for and
// exist. What it decides counts as written. usages[i] is that of metric i.
func (a *Autoscaler) Decide(now time.Time, current int32, usages []Usage) Decision {
	if !a.memory.begun {
		a.memory.begun = true
		a.memory.recommendations = append(a.memory.recommendations, recommendation{current, now})
	}
	proposed, ok := a.propose(current, usages)
	d := Decision{Recommended: proposed}
	switch {
	case current == 0:
		// A count of 0 turns the HPA off.
		return d
	case current > a.max:
		d.Desired, d.Replicas, d.Reason = a.max, a.max, ReasonTooMany
	case current < a.min:
		d.Desired, d.Replicas, d.Reason = a.min, a.min, ReasonTooFew
	case !ok:
		d.Desired, d.Replicas, d.Reason = current, current, ReasonNoMetric
		return d
	case a.rules == nil:
		a.legacy(now, current, &d)
	default:
		a.behave(now, current, &d)
	}
	if d.Replicas != current && a.rules != nil {
		a.memory.store(now, current, d.Replicas, a.rules)
	}
	return d
}

// propose gives the highest proposal of the metrics.
func (a *Autoscaler) propose(current int32, usages []Usage) (replicas int32, ok bool) {
	unknown := 0
	for i, target := range a.targets {
		if i >= len(usages) || !usages[i].Known {
			unknown++
			continue
		}
		// A later proposal takes the place of one of 0, whatever it is.
		if p := a.proposal(current, usages[i].Milli, target); replicas == 0 || p > replicas {
			replicas = p
		}
	}
	return replicas, unknown < len(a.targets) && (unknown == 0 || replicas >= current)
}

func (a *Autoscaler) proposal(pods int32, usage, target int64) int32 {
	up, down := tolerance, tolerance
	if a.rules != nil {
		up, down = a.rules.upTolerance, a.rules.downTolerance
	}
	ratio := float64(usage) / (float64(target) * float64(pods))
	if 1.0-down <= ratio && ratio <= 1.0+up {
		return pods
	}
	// As a float first: a larger number than an int32 holds has no defined conversion.
	return int32(math.Min(math.Ceil(float64(usage)/float64(target)), math.MaxInt32))
}
