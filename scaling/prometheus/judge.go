package prometheus

import (
	"fmt"
	"math"
	"time"

	"example.com/platform/autoscale-operator/scaling"
)

// reading is a question with its newest answer.
type reading struct {
	question *Question
	answer   *answer
	// previous is the answer before, if it is known.
	previous *answer
	// late is the reason why the next answer is late, if it is.
	late string
}

// whyLate says it in words that a message ends with.
var whyLate = map[string]string{
	ReasonBudgetExceeded: "the query waits for the budget",
	ReasonEndpointBusy:   "the query waits for its turn behind others that take too long",
}

// judge takes the sample of one measure out of answers.
type judge struct {
	Namespace, Target string
	// MaxAge is how old a sample may be on arrival, and for how long after its
	// time it may be used; the latter is never less than patience, the time in
	// which the next answer is due. Otherwise a sample of each minute would be
	// stale for a moment before the next one.
	MaxAge, patience time.Duration
	// sourceMaxAge and sourceShare bound the answer of the freshness question.
	sourceMaxAge time.Duration
	sourceShare  float64
	now          time.Time
	// used is when the load arrived that the sample is from.
	used time.Time
}

// sample judges the load, then the arrivals, then the freshness of the source.
// A nil answer asks for nothing. The worst validity counts.
func (j *judge) sample(load, arrivals, fresh reading) scaling.Sample {
	s, from := j.believed(load, fresh)
	j.used = from.arrived
	if s.Validity == scaling.Invalid {
		return s
	}
	if arrivals.answer != nil {
		rate, _ := j.believed(arrivals, fresh)
		if rate.Validity < s.Validity {
			s.Validity, s.Reason, s.Message = rate.Validity, rate.Reason, "arrival rate: "+rate.Message
		}
		if s.Validity == scaling.Invalid {
			s.Value = 0
			return s
		}
		s.ArrivalRate = rate.Value
	}
	if fresh.answer == nil {
		return s
	}
	return j.withFreshness(s, fresh)
}

// believed is the value of a load or an arrival rate, and the answer it is from. It may
// be newer than what is known of its source's freshness, and what a source that was
// lost meanwhile measures would fall, so a lower value than the one before is not
// believed yet. Nor is the one before, where it is newer than the freshness too.
func (j *judge) believed(r, fresh reading) (scaling.Sample, *answer) {
	s := j.value(r)
	switch {
	case s.Validity == scaling.Invalid || fresh.answer == nil || !fresh.answer.arrived.Before(r.answer.asked):
		return s, r.answer
	case r.previous == nil || fresh.answer.arrived.Before(r.previous.asked):
		return upOnly(s), r.answer
	}
	before := r
	before.answer = r.previous
	switch b := j.value(before); {
	case b.Validity == scaling.Invalid:
		return upOnly(s), r.answer
	case b.Value > s.Value:
		s.Value = b.Value
		return s, r.previous
	}
	return s, r.answer
}

// upOnly makes a sample one that nothing is scaled down on.
func upOnly(s scaling.Sample) scaling.Sample {
	if s.Validity == scaling.Valid {
		s.Validity, s.Reason = scaling.ScaleUpOnly, ReasonFreshnessUnknown
		s.Message = "freshness: the answer for the newest sample is not there yet, so nothing is scaled down"
	}
	return s
}

// withFreshness lowers the validity of a sample whose source is not fresh.
func (j *judge) withFreshness(s scaling.Sample, r reading) scaling.Sample {
	q := *r.question
	q.OnEmptyZero = false // no answer is no freshness
	r.question = &q
	switch f := j.value(r); {
	case f.Reason == ReasonNoData:
		return r.answer.invalid(ReasonFreshnessUnknown, "freshness: the query matched no series, so nothing is known of the source (%s)", f.Reason)
	case f.Validity == scaling.Invalid:
		return invalid(ReasonFreshnessUnknown, "freshness: %s (%s)", f.Message, f.Reason)
	case j.sourceMaxAge > 0 && f.Value > j.sourceMaxAge.Seconds():
		return r.answer.invalid(ReasonStaleSource, "what the query rests on is older than the %s that the profile allows: more than %s", j.sourceMaxAge, doubled(j.sourceMaxAge, f.Value))
	case j.sourceMaxAge <= 0 && f.Value < j.sourceShare:
		return r.answer.invalid(ReasonStaleSource, "the share of healthy sources is below the %g that the profile asks for: it is %.1f, cut to a tenth", j.sourceShare, math.Floor(f.Value*10)/10)
	case f.Validity < s.Validity:
		s.Validity, s.Reason, s.Message = f.Validity, f.Reason, "freshness: "+f.Message
	}
	return s
}

// doubled is the bound of an age, doubled as often as the age in seconds is above it. A
// message that named each age would be another one with each answer.
func doubled(bound time.Duration, age float64) time.Duration {
	for 2*bound.Seconds() < age && bound <= math.MaxInt64/2 {
		bound *= 2
	}
	return bound
}

// value takes the one number that is for this measure out of an answer.
func (j *judge) value(r reading) scaling.Sample {
	a := r.answer
	if a.failed() {
		return scaling.Sample{Validity: scaling.Invalid, Reason: a.reason, Message: a.message}
	}
	p, missing := j.pick(r)
	if missing.Reason != "" {
		return missing
	}
	if s := j.check(r, p); s.Validity != scaling.Valid || !a.partial {
		return s
	}
	return a.partialSample(p.value + 0)
}

// pick finds the point, or says why there is not exactly one.
func (j *judge) pick(r reading) (point, scaling.Sample) {
	a, p, found := r.answer, r.answer.first, r.answer.count > 0
	if !r.question.Series.single() {
		p, found = a.targets[target{j.Namespace, j.Target}]
	} else if a.count > 1 {
		return p, a.invalid(ReasonMultipleSeries, "the query returned %d series; aggregate them into one, for example with sum()", a.count)
	}
	switch {
	case !found && r.question.OnEmptyZero && !a.nameless():
		return point{at: a.arrived}, scaling.Sample{}
	case !found && r.question.Series.single():
		return p, a.invalid(ReasonNoData, "the query matched no series; where that means zero load, set the profile's onEmpty to Zero")
	case !found:
		return p, a.invalid(ReasonNoData, "the query returned no series whose labels %s and %s name this Deployment",
			r.question.Series.Namespace, r.question.Series.Target)
	case p.kind == duplicate:
		return p, a.invalid(ReasonDuplicateSeries, "the query returned several series for this Deployment; aggregate them into one, for example with sum by (%s, %s)",
			r.question.Series.Namespace, r.question.Series.Target)
	case p.kind == histogram:
		return p, a.invalid(ReasonHistogramSample, "the query returned a native histogram; reduce it to a number, for example with histogram_count()")
	}
	return p, scaling.Sample{}
}

// check tests the value and the time of a point.
func (j *judge) check(r reading, p point) scaling.Sample {
	a := r.answer
	switch lag := a.arrived.Sub(p.at); {
	case math.IsNaN(p.value):
		return a.invalid(ReasonInvalidValue, "the query returned NaN, often a division by zero; the value must be a finite number of at least 0")
	case math.IsInf(p.value, 0):
		return a.invalid(ReasonInvalidValue, "the query returned an infinite value; the value must be a finite number of at least 0")
	case p.value < 0:
		return a.invalid(ReasonInvalidValue, "the query returned a negative value; the value must be a finite number of at least 0")
	case lag < -MaxClockSkew:
		return a.invalid(ReasonFutureSample, "the sample lies more than %s ahead of the operator's clock; compare the clocks", MaxClockSkew)
	case j.MaxAge <= 0 || lag <= j.MaxAge && j.now.Sub(p.at) <= max(j.MaxAge, j.patience):
		// The sum turns -0 into 0.
		return scaling.Sample{Value: p.value + 0, Validity: scaling.Valid}
	case r.late != "":
		return a.invalid(r.late, "the sample is older than the %s that the metric allows: %s", j.MaxAge, whyLate[r.late])
	}
	return a.invalid(ReasonStaleSample, "the sample is older than the %s that the metric allows", j.MaxAge)
}

// partialSample is a good sample from a server that says that something is missing.
func (a *answer) partialSample(value float64) scaling.Sample {
	text := "the server marked the answer as incomplete"
	if a.warning != "" {
		text = "the server warns: " + a.warning
	}
	return scaling.Sample{
		Value:    value,
		Validity: scaling.ScaleUpOnly,
		Reason:   ReasonPartialResponse,
		Message:  fmt.Sprintf("endpoint %q: the answer may be incomplete, so nothing is scaled down; %s", a.endpoint, text),
	}
}

func (a *answer) invalid(reason, format string, args ...any) scaling.Sample {
	s := invalid(reason, format, args...)
	s.Message = fmt.Sprintf("endpoint %q: %s", a.endpoint, s.Message)
	return s
}

func invalid(reason, format string, args ...any) scaling.Sample {
	return scaling.Sample{Validity: scaling.Invalid, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
