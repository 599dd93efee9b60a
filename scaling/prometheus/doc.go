// Package prometheus measures demand: it asks a Prometheus-compatible server
// for numbers and says how far they can be trusted.
//
// A [Measure] is what one metric of one AutoScaler needs: up to three questions,
// for the load, for the arrivals at a backlog, and for the freshness of what the
// load rests on. A [Sampler] asks the questions of all subscribers, each distinct
// one once per interval, and keeps the newest answers; nobody waits for the
// network. One answer may serve many: its points are picked by labels, and
// judged for each measure by itself.
//
// A measure either yields a valid [scaling.Sample] or one with an enumerated
// reason (reasons.go). It never returns an error, because a policy treats every
// failure alike: it is missing knowledge, not zero load. Addresses and
// credentials come from the operator's configuration only ([Endpoint]); they
// never appear in a sample's message, which ordinary users can read.
//
// The two result types that hold one number are accepted: a vector of exactly
// one sample, and a scalar. PromQL's scalar() of anything but one series is
// NaN, which is refused like every other NaN, so accepting scalars does not
// hide missing or surplus series. docs/metric-answers.md has every kind of
// answer and what comes of it.
package prometheus
