package prometheus

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"example.com/platform/autoscale-operator/scaling"
)

// sample takes the one number out of a result.
func (e *endpointClient) sample(result model.Value, now time.Time, maxAge time.Duration) scaling.Sample {
	switch r := result.(type) {
	case model.Vector:
		switch {
		case len(r) == 0:
			return e.invalid(ReasonNoData, "the query matched no series; where that means zero load, add \"or vector(0)\" to the query")
		case len(r) > 1:
			return e.invalid(ReasonMultipleSeries, "the query returned %d series; aggregate them into one, for example with sum()", len(r))
		case r[0] == nil:
			return e.invalid(ReasonBadResponse, "the sample is not a time and a value")
		case r[0].Histogram != nil:
			return e.invalid(ReasonHistogramSample, "the query returned a native histogram; reduce it to a number, for example with histogram_count()")
		}
		return e.check(float64(r[0].Value), r[0].Timestamp, now, maxAge)
	case *model.Scalar:
		return e.check(float64(r.Value), r.Timestamp, now, maxAge)
	}
	return e.invalid(ReasonUnexpectedResultType, "the query must return a vector of one series, or a scalar")
}

// check tests the value and the time of the sample.
func (e *endpointClient) check(value float64, at model.Time, now time.Time, maxAge time.Duration) scaling.Sample {
	switch age := now.Sub(at.Time()); {
	case math.IsNaN(value):
		return e.invalid(ReasonInvalidValue, "the query returned NaN, often a division by zero; the value must be a finite number of at least 0")
	case math.IsInf(value, 0):
		return e.invalid(ReasonInvalidValue, "the query returned an infinite value; the value must be a finite number of at least 0")
	case value < 0:
		return e.invalid(ReasonInvalidValue, "the query returned a negative value; the value must be a finite number of at least 0")
	case age < -MaxClockSkew:
		return e.invalid(ReasonFutureSample, "the sample lies more than %s ahead of the operator's clock; compare the clocks", MaxClockSkew)
	case maxAge > 0 && age > maxAge:
		return e.invalid(ReasonStaleSample, "the sample is older than the %s that the metric allows", maxAge)
	}
	// The sum turns -0 into 0.
	return scaling.Sample{Value: value + 0, Validity: scaling.Valid}
}

// partial is a good sample from a server that says that something is missing.
func (e *endpointClient) partial(value float64, warnings []string) scaling.Sample {
	text := "the server marked the answer as incomplete"
	if len(warnings) > 0 {
		// Servers send warnings in no fixed order; the message must not flap.
		text = "the server warns: " + excerpt(slices.Min(warnings))
	}
	return scaling.Sample{
		Value:    value,
		Validity: scaling.ScaleUpOnly,
		Reason:   ReasonPartialResponse,
		Message:  fmt.Sprintf("endpoint %q: the answer may be incomplete, so nothing is scaled down; %s", e.name, text),
	}
}

func (e *endpointClient) invalid(reason, format string, args ...any) scaling.Sample {
	s := invalid(reason, format, args...)
	s.Message = fmt.Sprintf("endpoint %q: %s", e.name, s.Message)
	return s
}

func invalid(reason, format string, args ...any) scaling.Sample {
	return scaling.Sample{Validity: scaling.Invalid, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
